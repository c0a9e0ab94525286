"""The commands that a soak kills: what each begins with, what it keeps on the disk meanwhile, and what comes out."""

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrievers.tiny_models import WORDS, save_bert
from soak import elsewhere, names, pairs, refusals
from soak.results import (
    encoded,
    hashes,
    indexes,
    lines,
    optimizations,
    read,
    runs_and_copies,
    timeless,
    translations,
)
from soak.server import LATEST
from soak.stage import Stage

BOOKLET = Path(__file__).parents[1] / "companions" / "booklets" / "booklets" / "libreoffice.pdf"
EMPTY_STORE = "empty.db"
PASSAGES = 1_500


@dataclass(frozen=True)
class Work:
    """One command and its folder."""

    name: str
    words: tuple[str, ...]
    """What follows `medexam`; the command runs in its folder."""
    result: Callable[[Path], Any]
    """What came out, without times: equal for each one that was carried out whole. Called in a fork."""
    kept: Callable[[Path], Iterable[str]] = lambda _: ()
    """What is safely on the disk, each piece by a name: none of it may be gone later."""
    replies: tuple[str, ...] = ()
    """Patterns of the files that hold replies."""
    begins_with: str | None = None
    """What of the inputs is copied into its new folder."""
    earlier: tuple[str, ...] = ()
    """The command that makes this in the folder of the inputs."""
    store: str = "runs/mlflow.db"
    """Where its MLflow store is."""
    over: str | None = None
    """A folder that, once it is there, is whole, and makes the command refuse to do it again."""
    also: tuple[tuple[str, ...], ...] = ()
    """Commands of its trials beside `words`, in order: what they import is imported before."""
    play: Callable[[Stage], None] | None = None
    """What its trials do; None: they disturb the command, and compare what comes out."""

    def begin(self, folder: Path, inputs: Path, *, with_store: bool = True) -> None:
        """Make a folder for it; without a store of MLflow it makes one, which takes longer than most of its work."""
        folder.mkdir(parents=True)
        if self.begins_with is not None:
            ignored = shutil.ignore_patterns("mlflow.db", "mlartifacts")
            shutil.copytree(inputs / self.begins_with, folder / self.begins_with, ignore=ignored)
        if with_store and self.store:
            (folder / self.store).parent.mkdir(exist_ok=True)
            shutil.copy(inputs / EMPTY_STORE, folder / self.store)

    def reply_files(self, folder: Path) -> list[Path]:
        """The files that hold replies now."""
        return sorted(path for pattern in self.replies for path in folder.glob(pattern))


def make_works(inputs: Path, specs: Path, address: str) -> dict[str, Work]:
    """The commands by name; what they read is in `inputs`, and the server at `address`."""
    model = {"engine": "vllm", "endpoints": [address], "timeout_s": 10}
    dataset = {"name": "headqa_sample", "language": "en"}
    # Where nothing is found the prompt is that of `zero_shot`; the budget tells the questions apart.
    looking_up = {
        "kind": "retrieve_then_answer",
        "k": 2,
        "retriever": {"kind": "bm25", "corpus": f"{inputs}/corpus.jsonl"},
        "max_tokens": 300,
    }
    run = {
        "name": "soak",
        "dataset": {**dataset, "limit": 30},
        "model": model,
        "program": {"kind": "zero_shot"},
        "matrix": {"program": [{"kind": "zero_shot"}, {"kind": "chain_of_thought"}, looking_up]},
    }
    pair = {
        **run,
        "name": pairs.NAME,
        "model": {**model, "extra_body": {LATEST: 0.4}},
        "matrix": {"program.kind": ["zero_shot", "chain_of_thought"]},
    }
    made = {
        "name": elsewhere.MADE,
        "dataset": {**dataset, "limit": 12},
        "model": {"engine": "scripted", "path": f"{inputs}/replies.yaml"},
        "metrics": [f"{inputs}/marking.py:longest"],
        "program": {"kind": "zero_shot"},
        "matrix": {"program.kind": ["zero_shot", "chain_of_thought"]},
    }
    answering = {"name": "openai/tiny", "answer_format": "free"}
    refused = refusals.make_spec(address, "none", 0, "baseline", **answering)
    optimizer = {"kind": "random_search", "candidates": 3, "attempts": 6}
    optimization = {
        "name": "soak",
        "dataset": {**dataset, "split": "test"},
        "model": model,
        "program": {"kind": "zero_shot"},
        "optimizer": optimizer,
    }
    documents = {"run": run, "optimize": optimization, "pairs": pair, "elsewhere": made, "refusals": refused}
    for name, document in documents.items():
        (specs / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    running, pairing, refusing = (
        ("run", str(specs / f"{name}.json"), "--runs-dir", "runs") for name in ("run", "pairs", "refusals")
    )
    making = ("run", str(specs / "elsewhere.json"), "--runs-dir", elsewhere.MADE)
    shown = ("report", "runs", "--html", "page.html", "--markdown", "report.md")
    building = f"data build --booklet {BOOKLET} --key {inputs}/key.csv --without-images --out built --name".split()
    translating = f"--set model.engine=vllm --set model.endpoints=[{address}] --set dataset.option_counts=[4] --limit 8"
    training = f"--model {inputs}/base --train {inputs}/train.jsonl --validation {inputs}/train.jsonl --epochs 8"
    found = (
        Work("run", running, runs_and_copies, lines("runs/*/predictions.jsonl"), ("runs/*/predictions.jsonl",)),
        Work(
            "optimize",
            ("optimize", str(specs / "optimize.json"), "--runs-dir", "runs"),
            optimizations,
            lines("runs/*/calls.jsonl"),
            ("runs/*/calls.jsonl",),
        ),
        Work(
            "translate",
            ("data", "translate", "headqa_sample", *translating.split(), "--runs-dir", "runs", "--out", "out"),
            translations,
            lines("out/replies/*/predictions.jsonl"),
            ("out/replies/*/predictions.jsonl",),
        ),
        Work(
            "index",
            tuple(f"index build --corpus {inputs}/corpus.jsonl --encoder {inputs}/base --out index".split()),
            indexes,
            encoded,
            store="",
        ),
        Work(
            "build",
            (*building, "Cuaderno_2020_0_B"),
            lambda folder: hashes(folder / "built", "*/*.parquet", "*.html", "README.md"),
            lambda folder: [json.dumps(hashes(folder, "built/*/Cuaderno_2019_0_B.parquet"))],
            begins_with="built",
            store="",
            earlier=(*building, "Cuaderno_2019_0_B"),
        ),
        Work(
            "finetune",
            (*f"finetune {training} --device cpu --out tuned --tracking-uri sqlite:///mlflow.db".split(),),
            lambda folder: [
                hashes(folder, "tuned/*.s*", "tuned/*.jsonl"),
                timeless(read(folder / "tuned/finetuning.json")),
            ],
            lambda folder: [str(hashes(folder, "tuned/*"))] if (folder / "tuned").exists() else [],
            store="mlflow.db",
            over="tuned",
        ),
        Work(
            "track",
            ("track", "runs"),
            runs_and_copies,
            lines("runs/*/predictions.jsonl"),
            begins_with="runs",
            earlier=running,
        ),
        Work(
            "pairs",
            pairing,
            pairs.result,
            lines(pairs.REPLIES),
            (pairs.REPLIES,),
            begins_with="runs",
            earlier=running,
            also=tuple(
                tuple(words.split())
                for words in (
                    *(" ".join(shown), "list --runs-dir runs", "track runs", "compare runs"),
                    *(f"export runs --to {name} --out exported" for name in pairs.FORMATS),
                    f"{' '.join(pairs.import_words(inputs))} --runs-dir runs",
                )
            ),
            play=pairs.pair_up,
        ),
        Work(
            "elsewhere",
            making,
            lambda folder: hashes(folder, f"{elsewhere.MADE}/*/predictions.parquet"),
            begins_with=elsewhere.MADE,
            store=f"{elsewhere.MADE}/mlflow.db",
            earlier=making,
            also=(("report", elsewhere.MADE), ("compare", elsewhere.MADE)),
            play=elsewhere.look_at_runs,
        ),
        Work(
            "names",
            (*pairs.import_words(inputs), "--runs-dir", "runs"),
            refusals.result,
            also=(shown,),
            play=names.name_things,
        ),
        Work("refusals", refusing, refusals.result, play=refusals.be_refused),
    )
    return {work.name: work for work in found}


def write_inputs(inputs: Path, works: Iterable[Work]) -> None:
    """What the commands read, and the exam that stands beside the one that is built. Called in a fork."""
    from medexam.experiments import open_store
    from medexam.experiments.track.store import SQLITE

    if any(work.store for work in works):
        with open_store(f"{SQLITE}{inputs / EMPTY_STORE}") as client:
            client.search_experiments()
    if any(f"{inputs}/base" in work.words for work in works):
        save_bert(inputs / "base", 1)
    from medexam.datasets import load_exam_set
    from medexam.specs import DatasetSpec

    keys = [question.key for question in load_exam_set(DatasetSpec(name="headqa_sample", language="en")).questions]
    (inputs / "keys.txt").write_text("\n".join(keys), encoding="utf-8")
    answers = ["question,answer", *(f"{key},{1 + place % 4}" for place, key in enumerate(keys))]
    (inputs / "answers.csv").write_text("\n".join(answers), encoding="utf-8")
    (inputs / "marking.py").write_text(elsewhere.MARKING, encoding="utf-8")
    (inputs / "replies.yaml").write_text('{"*": "{Answer: 2}"}', encoding="utf-8")
    with (inputs / "corpus.jsonl").open("w", encoding="utf-8") as stream:
        for number in range(PASSAGES):
            words = [WORDS[(number * 7 + place * place) % len(WORDS)] for place in range(12)]
            row = {"id": str(number), "title": f"Passage {number}", "content": " ".join(words)}
            stream.write(json.dumps(row) + "\n")
    with (inputs / "train.jsonl").open("w", encoding="utf-8") as stream:
        for number in range(16):
            context = " ".join(WORDS[(number + place) % len(WORDS)] for place in range(8))
            answer = {"text": context.split()[2], "answer_start": context.index(context.split()[2])}
            row = {"id": str(number), "question": "what is", "context": context, "answers": [answer]}
            stream.write(json.dumps(row) + "\n")
    rows = [f"{number},{1 + number % 4}" for number in range(1, 25)]
    (inputs / "key.csv").write_text("\n".join(["pregunta,respuesta", *rows]) + "\n", encoding="utf-8")
