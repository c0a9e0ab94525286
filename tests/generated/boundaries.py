"""Every place where something from outside comes in: what is drawn, and what is done with it."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import yaml
from hypothesis import strategies as st
from wire_server import Wire, serving

import medexam
from generated.commands import EndError, call, refusing
from generated.values import anything, by_schema, json_near, lines, names, near, spoilt, to_json
from medexam.cli import walk_commands
from medexam.plugins import added_names
from medexam.serve import TIMING
from medexam.specs import build_cells, load_document
from medexam.text import writable
from table_cases import FOLDER, write_rows

Boundary = tuple[st.SearchStrategy[Any], Callable[[Any], None]]
"""What is drawn, and what is done with it: `EndError` unless it ends as it should."""
EXAMPLES = json.loads((FOLDER / "inputs_from_outside.json").read_text(encoding="utf-8"))
"""What inputs are drawn near to: a spec that runs, rows of each kind of file, and replies of servers."""
SPEC, PASSAGES, KEY = EXAMPLES["spec"], EXAMPLES["passages"], EXAMPLES["key"]
BEHIND = EXAMPLES["programs"][-1]
REPLIES = b"'*': '{Answer: 1}'\n"


def _write_scene(folder: Path, **changes: Any) -> Path:
    """A spec that runs in this process, its replies and its corpus."""
    (folder / "replies.yaml").write_bytes(REPLIES)
    (folder / "corpus.jsonl").write_bytes(lines(PASSAGES))
    path = folder / "scene.yaml"
    path.write_text(yaml.safe_dump({**SPEC, **changes}, allow_unicode=True), encoding="utf-8")
    return path


def _ask(folder: Path, **changes: Any) -> str:
    shutil.rmtree(folder / "runs", ignore_errors=True)
    return call("run", _write_scene(folder, **changes), "--runs-dir", folder / "runs")


def _either(kinds: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[tuple[str, Any]]:
    return st.sampled_from(list(kinds)).flatmap(lambda name: st.tuples(st.just(name), kinds[name]))


def specs(folder: Path, closing: ExitStack) -> Boundary:
    """Documents that the schema allows, documents near to one that runs, and files that are no YAML."""
    path = _write_scene(folder)
    known = [SPEC, *({**SPEC, "program": program} for program in EXAMPLES["programs"])]
    schema = json.loads(Path(medexam.__file__).with_name("specs").joinpath("spec.schema.json").read_text())
    allowed = by_schema(schema, schema).map(lambda value: {**SPEC, **value})
    texts = st.one_of(allowed, *map(near, known)).map(yaml.safe_dump)

    def trial(content: bytes) -> None:
        path.write_bytes(content)
        with refusing():
            build_cells(load_document(path), {})
        if b"headqa_sample" in content and b"scripted" in content:
            call("plan", path, "--runs-dir", folder / "runs")

    return st.one_of(texts.map(str.encode), spoilt(yaml.safe_dump(SPEC).encode())), trial


def commands(folder: Path, closing: ExitStack) -> Boundary:
    """Words after any command, and settings of any part of a spec."""
    _write_scene(folder)
    fields = [f"{part}.{name}" for part, held in SPEC.items() if isinstance(held, dict) for name in held]
    keys = st.sampled_from([*SPEC, *fields, "matrix.program", "metrics", "dataset.years", "", ".", "a.b.c", "dataset."])
    values = anything.map(lambda value: yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip())
    settings = st.tuples(keys, values).map(lambda pair: ["plan", "scene.yaml", "--set", "=".join(pair)])
    known = {name.split()[0] for name, _ in walk_commands()} - {"ui", "serve", "demo", *added_names("medexam.commands")}
    given = ["--json", "--limit", "--out", "--runs-dir", "scene.yaml", "corpus.jsonl", "-1", "headqa_sample", "="]
    more = st.lists(st.one_of(st.sampled_from(given), names.map(lambda name: name.replace("\0", ""))), max_size=3)

    def trial(words: list[str]) -> None:
        call(*words)

    return st.one_of(settings, st.builds(lambda name, rest: [name, *rest], st.sampled_from(sorted(known)), more)), trial


def files(folder: Path, closing: ExitStack) -> Boundary:
    """Published exams, questions of one's own in every format, spans, and passages."""

    def parquet(rows: list[dict[str, Any]]) -> st.SearchStrategy[bytes]:
        def pack(value: Any) -> bytes:
            try:
                return write_rows(folder / "packed.parquet", value).read_bytes()
            except (
                pa.ArrowException,
                TypeError,
                AttributeError,
                LookupError,
                ValueError,
                OverflowError,
                RecursionError,
            ):
                return to_json(value)

        return st.one_of(near(rows).map(pack), spoilt(pack(rows)))

    _write_scene(folder)
    own = EXAMPLES["own"]
    csv = write_rows(folder / "seed.csv", own).read_bytes()
    kinds = {
        "headqa_v1/HEAD_EN.json": json_near(EXAMPLES["headqa_v1"]),
        "headqa_v2/en.jsonl": near(EXAMPLES["headqa_v2"]).map(lines),
        "headqa_v2/en.parquet": parquet(EXAMPLES["headqa_v2"]),
        "spans/en.json": json_near(EXAMPLES["spans"]),
        "own/own.csv": st.one_of(spoilt(csv), spoilt(csv.replace(b",", b";"))),
        "own/own.json": json_near({"questions": own}),
        "own/own.jsonl": near(own).map(lines),
        "own/own.parquet": parquet(own),
        "corpus/c.jsonl": near(PASSAGES).map(lines),
        "corpus/c.jsonl.gz": spoilt(gzip.compress(lines(PASSAGES), mtime=0)),
        "corpus/c.parquet": parquet(PASSAGES),
    }

    def trial(one: tuple[str, bytes]) -> None:
        (kind, _, name), content = one[0].partition("/"), one[1]
        path, spec = folder / name, folder / "own.yaml"
        path.write_bytes(content)
        if kind == "corpus":
            _ask(folder, program={**BEHIND, "retriever": {"kind": "bm25", "corpus": str(path)}})
        elif kind == "own":
            spec.unlink(missing_ok=True)
            call("init", path, "--out", spec)
            if spec.exists():
                call("plan", spec, "--runs-dir", folder / "runs")
            _ask(folder, dataset={"kind": "choice", "name": "own", "path": str(path)}, program="random")
        elif kind == "spans":
            _ask(folder, dataset={"kind": "spans", "name": "own", "path": str(path)}, program="abstain")
        else:
            call("data", "check", kind, "--path", path, "--language", "en")
            _ask(folder, dataset={"name": kind, "path": str(path), "language": "en"}, program="random")

    return _either(kinds), trial


KINDS: dict[str, Callable[[Path], object]] = {
    "folder": lambda path: (path / "spec.json").mkdir(parents=True),
    "loop": lambda path: path.symlink_to(path.name),
    "gone": lambda path: None,
    "deep": lambda path: path.write_bytes(b"[" * 100_000),
}
"""What may lie where a file of a run should."""


def _make_run(folder: Path) -> Path:
    """A whole run that holds names of others."""
    rows = "".join(f"q{n},Is it {n}?,a,b,B,NAME\n" for n in (1, 2))
    (folder / "own.csv").write_text(f"id,stem,A,B,answer,subject\n{rows}")
    (folder / "scores.py").write_text("def score(question, gold, prediction):\n    return {'NAME-m': 1.0}\n")
    dataset = {"kind": "choice", "name": "NAME", "path": "own.csv", "columns": {"options": ["A", "B"]}}
    spec = _write_scene(folder, dataset=dataset, description="NAME", metrics=["./scores.py:score"])
    call("run", spec, "--runs-dir", folder / "made")
    (whole,) = (path.parent for path in (folder / "made").glob("*/spec.json"))
    return whole


def run_folders(folder: Path, closing: ExitStack) -> Boundary:
    """A run folder in which a file is changed, is of another kind or holds other names: no command loses an answer."""
    whole = _make_run(folder)
    run, page = folder / "runs" / whole.name, folder / "page.html"
    documents = {path.name: json.loads(path.read_bytes()) for path in whole.glob("*.json")}
    rows = [json.loads(line) for line in (whole / "predictions.jsonl").read_bytes().splitlines()]
    changes = {name: json_near(document) for name, document in documents.items()}
    changes |= {"predictions.jsonl": near(rows).map(lines), "names": names.map(writable)}
    places = st.sampled_from([*documents, "predictions.jsonl", "report.md", "parts"])
    words: dict[str, list[object]] = {
        "report": ["report", run],
        "page": ["report", run, "--html", page],
        "show": ["show", run],
        "list": ["list", "--runs-dir", run.parent],
        "compare": ["compare", run, whole],
        "export": ["export", run, "--to", "lm-eval", "--out", run.parent / "exported"],
        "resume": ["run", "--resume", run],
    }

    def trial(one: tuple[tuple[str, Any], str]) -> None:
        (name, held), command = one
        shutil.rmtree(run.parent, ignore_errors=True)
        shutil.copytree(whole, run)
        if name == "names":
            for each in documents:
                text = (whole / each).read_text(encoding="utf-8").replace("NAME", json.dumps(held)[1:-1])
                (run / each).write_text(text, encoding="utf-8")
        elif isinstance(held, str):
            (run / name).unlink(missing_ok=True)
            KINDS[held](run / name)
        else:
            (run / name).write_bytes(held)
        answers = run / "predictions.jsonl"
        kept = b"" if name == answers.name and isinstance(held, str) else answers.read_bytes()
        call(*words[command])
        if kept and not answers.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1]):
            raise EndError(f"answers were lost by {command}\n{kept!r}\n{answers.read_bytes()!r}")
        if command == "page" and page.exists() and "<script>alert(1)" in page.read_text(encoding="utf-8"):
            raise EndError("the page holds a tag of others")

    return st.tuples(
        st.one_of(_either(changes), st.tuples(places, st.sampled_from([*KINDS]))), st.sampled_from([*words])
    ), trial


@dataclass
class Changed(Wire):
    """A server that answers with `content`, at every path or at one, from some request on."""

    status: int = 200
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    after: int = 0
    path: str | None = None

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        if len(self.requests) <= self.after or self.path not in (None, path):
            return None
        return {":status": str(self.status), **self.headers}, iter([self.content])


def servers(folder: Path, closing: ExitStack) -> Boundary:
    """What a server says of itself or replies, to a run and to `medexam doctor`: no key of it is quoted or kept."""
    wire = closing.enter_context(serving(Changed()))
    closing.enter_context(patch.object(TIMING, "attempts", 1))
    closing.enter_context(patch.dict("os.environ", {"GENERATED_API_KEY": KEY}))
    bodies = st.one_of(*map(json_near, EXAMPLES["replies"]), st.just(f"<html>{KEY}".encode()))
    engines = st.sampled_from([("litellm", "openai/tiny"), ("litellm", "hosted_vllm/tiny"), ("vllm", "tiny"), None])
    paths = st.sampled_from([None, None, "/version", "/v1/models", "/tokenize", "/v1/chat/completions"])
    statuses = st.sampled_from([200, 200, 200, 204, 301, 400, 401, 403, 404, 413, 422, 429, 500, 503, 529])
    afters = st.sampled_from([0, 0, 1, 3, 6])

    def trial(one: tuple[int, bytes, dict[str, str], int, str | None, tuple[str, str] | None]) -> None:
        wire.status, wire.content, wire.headers, wire.after, wire.path, model = one
        wire.requests.clear()
        if model is None:
            said = call("doctor", wire.address, "--burst", "0")
        else:
            asked = {"engine": model[0], "name": model[1], "endpoints": [wire.address], "timeout_s": 5, "wait_s": 1}
            said = _ask(folder, model={**asked, "api_key_env": "GENERATED_API_KEY"})
        kept = "".join(path.read_text(errors="replace") for path in folder.glob("runs/*/*.json*"))
        if KEY in said + kept:
            raise EndError(f"a key is quoted\n{said}")

    return st.tuples(statuses, bodies, st.sampled_from(EXAMPLES["headers"]), afters, paths, engines), trial


BOUNDARIES: dict[str, Callable[[Path, ExitStack], Boundary]] = {
    "specs": specs,
    "commands": commands,
    "files": files,
    "run folders": run_folders,
    "servers": servers,
}
"""Name -> what makes it, of a folder of its own and of what is closed behind it."""
