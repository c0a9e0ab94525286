"""Every place where something from outside comes in: what is changed, and what is done with it."""

import io
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from hypothesis import strategies as st

from generated.boundary import Boundary
from generated.commands import EndError, call, refusing
from generated.elsewhere import forged_specs, kinds_of_files
from generated.logs import limits, odd_numbers
from generated.mutations import changed_bytes, changed_json, changed_value, hostile_values, json_bytes
from generated.names import runs_of_names, written_names
from generated.refusals import refusals
from generated.servers import probes, replies
from medexam.datasets import SAMPLE_FOLDER, read_file, read_squad
from medexam.experiments import RunFolder
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.predictions import Prediction
from medexam.retrievers import load_corpus
from medexam.specs import build_cells, library_names, load_document
from medexam.specs.loading import LIBRARY

SPEC: dict[str, Any] = {
    "name": "generated",
    "dataset": {"name": "headqa_sample", "language": "en", "limit": 3},
    "model": {"engine": "scripted", "path": "replies.yaml"},
    "program": {"kind": "zero_shot", "answer_format": "free"},
}
PROGRAMS: tuple[Any, ...] = (
    {"kind": "few_shot", "answer_format": "guided", "examples": "paper"},
    {"kind": "chain_of_thought", "max_tokens": 20, "answer_form": "angles"},
    {"kind": "self_consistency", "samples": 2, "temperature": 0.5},
    {"kind": "likelihood", "read": "option_text", "norm": "tokens", "orders": "cyclic"},
    {"kind": "retrieve_then_answer", "k": 1, "retriever": {"kind": "bm25", "corpus": "corpus.jsonl", "language": "en"}},
    {"kind": "random"},
    "longest",
)
ROWS = [
    {"id": str(number), "title": "T", "content": f"Passage {number} of excitatory potentials.", "source": "book"}
    for number in range(4)
]
OWN = [
    {"stem": f"Which {number}?", "A": "one", "B": "two", "C": "three", "answer": "ABC"[number % 3], "year": 2020}
    for number in range(5)
]


def _specs(folder: Path, closing: ExitStack) -> Boundary:
    write_scene(folder)
    specs = [SPEC, *({**SPEC, "program": program} for program in PROGRAMS)]
    specs.append({**SPEC, "matrix": {"program": ["zero_shot", "random"], "dataset.language": ["en", "es"]}})
    texts = [yaml.safe_dump(spec).encode() for spec in specs]
    shipped = [(LIBRARY / f"{name}.yaml").read_text(encoding="utf-8") for name in library_names()]
    values = st.one_of(changed_value(specs), changed_value([yaml.safe_load(text) for text in shipped]))
    written = values.map(lambda value: yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass"))

    def trial(content: bytes) -> None:
        path = folder / "spec.yaml"
        path.write_bytes(content)
        with refusing():
            build_cells(load_document(path), {})
        if b"headqa_sample" in content and b"scripted" in content:
            call("plan", path, "--runs-dir", folder / "runs")

    return Boundary(st.one_of(written, changed_bytes([*texts, *(text.encode() for text in shipped)])), trial)


def _settings(folder: Path, closing: ExitStack) -> Boundary:
    write_scene(folder)
    keys = [
        *("dataset.limit", "dataset.years", "dataset.path", "dataset.language", "dataset.name", "dataset.seed"),
        *("model.path", "model.engine", "model.temperature", "model.max_tokens", "model.extra_body", "model.name"),
        *("program", "program.kind", "program.answer_format", "program.prompt", "program.max_tokens", "matrix"),
        *("matrix.program", "name", "description", "metrics", "optimizer", "", ".", "a.b.c", "dataset.", "\udcff"),
    ]
    values = st.one_of(
        hostile_values.map(lambda value: yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()),
        changed_bytes([b"[2016, 2017]", b"{a: 1, b: [x]}", b"*a", b"&a [*a]"]).map(
            lambda content: content.decode("utf-8", "surrogateescape")
        ),
    )
    inputs = st.lists(st.tuples(st.sampled_from(keys), values), min_size=1, max_size=2)

    def trial(settings: Sequence[tuple[str, str]]) -> None:
        words = [word for key, value in settings for word in ("--set", f"{key}={value}")]
        call("plan", folder / "scene.yaml", "--runs-dir", folder / "runs", *words)

    return Boundary(inputs, trial)


def _headqa(folder: Path, closing: ExitStack) -> Boundary:
    write_scene(folder)
    document = json.loads((SAMPLE_FOLDER / "HEAD_EN.json").read_text(encoding="utf-8"))
    names = list(document["exams"])[:2]
    exams = {name: {**document["exams"][name], "data": document["exams"][name]["data"][:2]} for name in names}
    path = folder / "HEAD_EN.json"

    def trial(content: bytes) -> None:
        path.write_bytes(content)
        call("data", "check", "headqa_v1", "--path", path, "--language", "en")
        ask(folder, {"name": "headqa_v1", "path": str(path), "language": "en"})

    return Boundary(changed_json([{**document, "exams": exams}]), trial)


def _parquet(folder: Path, closing: ExitStack) -> Boundary:
    write_scene(folder)
    exam = [
        {
            "name": "Cuaderno_2020_1_B",
            "year": 2020,
            "category": "biology",
            "qid": number,
            "qtext": "Which?",
            "ra": 1,
            "image": None,
            "answers": [{"aid": each, "atext": f"text {each}"} for each in range(1, 5)],
        }
        for number in range(1, 4)
    ]
    seeds = {"exam": exam, "corpus": ROWS, "own": OWN}
    values = {name: changed_value([rows]) for name, rows in seeds.items()}
    bytes_ = {name: changed_bytes([_parquet_bytes(rows)]) for name, rows in seeds.items()}
    either = {name: st.one_of(values[name], bytes_[name], bytes_[name]) for name in seeds}
    inputs = st.sampled_from(list(seeds)).flatmap(lambda name: st.tuples(st.just(name), either[name]))
    path = folder / "en.parquet"

    def trial(one: tuple[str, Any]) -> None:
        kind, content = one
        path.write_bytes(content if isinstance(content, bytes) else _parquet_bytes(content))
        if kind == "exam":
            ask(folder, {"name": "headqa_v2", "path": str(path), "language": "en", "years": None})
        elif kind == "corpus":
            with refusing():
                load_corpus(path)
        else:
            ask(folder, {"kind": "choice", "name": "own", "path": str(path), "language": "en"})

    return Boundary(inputs, trial)


def _corpora(folder: Path, closing: ExitStack) -> Boundary:
    write_scene(folder)
    lines = b"".join(json_bytes(row) + b"\n" for row in ROWS)
    changed = changed_value([ROWS]).map(
        lambda rows: b"".join(json_bytes(row) + b"\n" for row in (rows if isinstance(rows, list) else [rows]))
    )
    packed = changed_bytes([_packed(lines)])
    inputs = st.tuples(
        st.one_of(
            st.tuples(st.just("c.jsonl"), st.one_of(changed, changed_bytes([lines]))),
            st.tuples(st.just("c.jsonl.gz"), packed),
            st.tuples(st.just("spans.json"), changed_json([SPANS])),
        ),
        st.booleans(),
    )

    def trial(one: tuple[tuple[str, bytes], bool]) -> None:
        (name, content), skip_bad = one
        path = folder / name
        path.write_bytes(content)
        with refusing():
            if name == "spans.json":
                read_squad(path)
                return
            load_corpus(path, skip_bad=skip_bad)
        if skip_bad:
            retriever = {"kind": "bm25", "corpus": str(path), "skip_bad": True}
            program = {"kind": "retrieve_then_answer", "k": 1, "retriever": retriever}
            ask(folder, SPEC["dataset"], program)

    return Boundary(inputs, trial)


SPANS = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "The heart beats.",
                    "qas": [
                        {"id": "1", "question": "What beats?", "answers": [{"text": "heart", "answer_start": 4}]},
                        {"id": "2", "question": "What?", "answers": {"text": ["beats"], "answer_start": [10]}},
                    ],
                }
            ]
        }
    ]
}


MOODLE = b"""<quiz><question type="multichoice"><questiontext><text>Which?</text></questiontext>
<answer fraction="0"><text>x</text></answer><answer fraction="100"><text>y</text></answer></question></quiz>"""
QTI = b"""<assessmentItem identifier="i"><responseDeclaration identifier="R"><correctResponse><value>b</value>
</correctResponse></responseDeclaration><itemBody>Which?<choiceInteraction responseIdentifier="R">
<simpleChoice identifier="a">x</simpleChoice><simpleChoice identifier="b">y</simpleChoice></choiceInteraction>
</itemBody></assessmentItem>"""


def _tables(folder: Path, closing: ExitStack) -> Boundary:
    write_scene(folder)
    header = ",".join(OWN[0])
    csv = "\n".join([header, *(",".join(map(str, row.values())) for row in OWN)]).encode()
    either = {
        "own.csv": changed_bytes([csv, csv.replace(b",", b";")]),
        "own.json": changed_json([OWN, {"questions": OWN}]),
        "own.jsonl": changed_bytes([b"".join(json_bytes(row) + b"\n" for row in OWN)]),
        "own.xlsx": changed_bytes([_excel(OWN)]),
        "own.txt": changed_bytes(
            [b"Which?\nA. x\nB. y\nANSWER: B\n", b"#separator:tab\n#tags column:2\na\tb\tc\n", csv]
        ),
        "own.gift": changed_bytes([b"::t::Which? {~%50%x#no =y}\n\nIs it? {T}\n"]),
        "own.xml": changed_bytes([MOODLE, QTI]),
    }
    inputs = st.sampled_from(list(either)).flatmap(lambda name: st.tuples(st.just(name), either[name]))

    def trial(one: tuple[str, bytes]) -> None:
        name, content = one
        path, spec = folder / name, folder / "own.yaml"
        path.write_bytes(content)
        spec.unlink(missing_ok=True)
        with refusing():
            read_file(path)
        call("data", "init", path, "--out", spec)
        if spec.exists():
            call("plan", spec, "--runs-dir", folder / "runs")
        ask(folder, {"kind": "choice", "name": "own", "path": str(path), "language": "en"})

    return Boundary(inputs, trial)


RUN_FILES = ("spec.json", "environment.json", "models.json", "metrics.json", "made_from.json", PREDICTIONS)


def _run_folders(folder: Path, closing: ExitStack) -> Boundary:
    write_scene(folder)
    made = folder / "made"
    call("run", folder / "scene.yaml", "--runs-dir", made, "--limit", "2")
    (whole,) = (path for path in made.iterdir() if (path / "spec.json").exists())
    documents = {name: json.loads((whole / name).read_bytes()) for name in RUN_FILES if name != PREDICTIONS}
    lines = [json.loads(line) for line in (whole / PREDICTIONS).read_bytes().splitlines()]
    either = {name: changed_json([document]) for name, document in documents.items()}
    either[PREDICTIONS] = st.one_of(
        changed_bytes([(whole / PREDICTIONS).read_bytes()]),
        changed_value([lines]).map(
            lambda rows: b"".join(json_bytes(row) + b"\n" for row in (rows if isinstance(rows, list) else [rows]))
        ),
    )
    either["predictions.parquet"] = changed_bytes([(whole / "predictions.parquet").read_bytes()])
    either["replies.yaml"] = changed_bytes([(folder / "replies.yaml").read_bytes()])
    inputs = st.tuples(
        st.sampled_from(list(either)).flatmap(lambda name: st.tuples(st.just(name), either[name])),
        st.sampled_from(["report", "page", "list", "resume", "compare", "report and resume"]),
    )
    run = folder / "runs" / whole.name

    def trial(one: tuple[tuple[str, bytes], str]) -> None:
        (name, content), then = one
        shutil.rmtree(run.parent, ignore_errors=True)
        shutil.copytree(whole, run)
        place = folder / name if name == "replies.yaml" else run / name
        before = place.read_bytes()
        place.write_bytes(content)
        kept = (run / PREDICTIONS).read_bytes()
        try:
            if "report" in then:
                call("report", run)
            if then == "page":
                call("report", run, "--html", folder / "page.html")
            if then == "list":
                call("list", "--runs-dir", run.parent)
            if then == "compare":
                call("compare", run, whole)
            if "resume" in then:
                call("run", "--resume", run)
        finally:
            if name == "replies.yaml":
                place.write_bytes(before)
        after = (run / PREDICTIONS).read_bytes()
        if not after.startswith(kept[: kept.rfind(b"\n") + 1]):
            raise EndError(f"predictions were lost by {then} with another {name}", f"{kept!r}\n{after!r}")

    return Boundary(inputs, trial)


def _lines(folder: Path, closing: ExitStack) -> Boundary:
    """Lines of predictions, as parts of any run: what is read is written back as it was."""
    line = {
        "schema": 1,
        "question": "q",
        "program": "p",
        "spec_digest": "d",
        "status": "answered",
        "answer": 1,
        "reply": "{Answer: 1}",
        "prompt_tokens": 3,
        "completion_tokens": 1,
        "latency_s": 0.5,
        "model": "m",
        "option_scores": {"1": -0.5, "2": -1.0},
        "passages": [{"id": "a", "source": "b", "score": 1.0}],
    }

    def trial(content: bytes) -> None:
        path = folder / PREDICTIONS
        path.write_bytes(content + b"\n")
        with refusing():
            for prediction in RunFolder(folder, "d").scan_predictions():
                again = Prediction.model_validate_json(json.dumps(prediction.to_json()))
                if again.to_json() != prediction.to_json() and again == again:
                    raise EndError("a line is not read as it was written", repr(prediction))

    return Boundary(changed_json([line]), trial)


def _booklets(folder: Path, closing: ExitStack) -> Boundary:
    from typesetting.booklet import Press, Style
    from typesetting.texts import sample_questions

    asked = sample_questions(6, 0, 4)
    seeds = [
        Press(Style(cover=False, columns=columns, seed=columns)).set(asked, folder / "seed.pdf").read_bytes()
        for columns in (1, 2)
    ]
    key = b"question,answer\n" + b"".join(b"%d,1\n" % one.number for one in asked)
    corrections = b"1: {stem: Which?, reason: typo}\n2: {options: {1: a, 5: null}, answer: 2, reason: b}\n"
    either = {
        "booklet.pdf": changed_bytes(seeds),
        "key.csv": changed_bytes([key, key.replace(b",", b";")]),
        "corrections.yaml": changed_bytes([corrections]),
    }
    inputs = st.sampled_from(["booklet.pdf", "booklet.pdf", "key.csv", "corrections.yaml"]).flatmap(
        lambda name: st.tuples(st.just(name), either[name])
    )

    def trial(one: tuple[str, bytes]) -> None:
        name, content = one
        for usual, bytes_ in {"booklet.pdf": seeds[0], "key.csv": key, "corrections.yaml": corrections}.items():
            (folder / usual).write_bytes(content if usual == name else bytes_)
        shutil.rmtree(folder / "built", ignore_errors=True)
        words = ["--booklet", folder / "booklet.pdf", "--key", folder / "key.csv", "--out", folder / "built"]
        more = ["--corrections", folder / "corrections.yaml"] if name == "corrections.yaml" else []
        call("data", "build", *words, "--name", "Cuaderno_2020_0_B", *more)

    return Boundary(inputs, trial)


def write_scene(folder: Path) -> None:
    """A spec that runs in this process, its replies and its corpus."""
    (folder / "replies.yaml").write_text("'*': '{Answer: 1}'\n", encoding="utf-8")
    (folder / "corpus.jsonl").write_bytes(b"".join(json_bytes(row) + b"\n" for row in ROWS))
    (folder / "scene.yaml").write_text(yaml.safe_dump(SPEC), encoding="utf-8")


def ask(folder: Path, dataset: Any, program: Any = "random") -> None:
    """Ask the questions of a data set."""
    spec = {**SPEC, "dataset": dataset, "program": program}
    (folder / "asked.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True), encoding="utf-8")
    shutil.rmtree(folder / "runs", ignore_errors=True)
    call("run", folder / "asked.yaml", "--runs-dir", folder / "runs")


def _parquet_bytes(rows: Any) -> bytes:
    """Rows as Parquet if they can be, else as text that is none."""
    out = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(rows), out)
    except (pa.ArrowException, TypeError, AttributeError, ValueError, OverflowError, RecursionError):
        return json_bytes(rows)
    return out.getvalue()


def _packed(content: bytes) -> bytes:
    import gzip

    return gzip.compress(content, mtime=0)


def _excel(rows: Sequence[dict[str, Any]]) -> bytes:
    import openpyxl

    book, out = openpyxl.Workbook(), io.BytesIO()
    book.active.append(list(rows[0]))
    for row in rows:
        book.active.append(list(row.values()))
    book.save(out)
    return out.getvalue()


BOUNDARIES: dict[str, Callable[[Path, ExitStack], Boundary]] = {
    "specs": _specs,
    "settings (--set)": _settings,
    "HEAD-QA files": _headqa,
    "Parquet": _parquet,
    "corpora and spans": _corpora,
    "own tables": _tables,
    "run folders": _run_folders,
    "prediction lines": _lines,
    "booklets and keys": _booklets,
    "replies": replies,
    "doctor": probes,
    "names": written_names,
    "runs of names": runs_of_names,
    "kinds of files": kinds_of_files,
    "forged specs": forged_specs,
    "odd numbers": odd_numbers,
    "limits": limits,
    "refusals": refusals,
}
"""Name -> what makes it, of a folder of its own and of what is closed behind it."""
