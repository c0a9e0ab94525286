"""Logs of other harnesses with odd numbers, and texts around the stated limits."""

import json
import math
import shutil
import zipfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from generated.boundary import Boundary
from generated.commands import EndError, call, refusing
from generated.elsewhere import ending
from generated.mutations import NUMBERS, changed_json, changed_value, json_bytes
from medexam.companions.harnesses.imports.inspect_logs import _read_archive
from medexam.companions.harnesses.imports.lines import read_lines
from medexam.companions.harnesses.imports.reading import read_results
from medexam.companions.harnesses.imports.samples import ResultsError
from medexam.datasets import read_file

LOGS = Path(__file__).parents[1] / "companions" / "harnesses" / "imports" / "logs"
SAMPLES = 3
"""Samples of each log, so that changes meet each of its fields."""
IMPORTED_SHARE = 10
"""One log in so many becomes a run; the others are only read."""
LIMIT = 300
"""Characters that stand for `LONGEST_TEXT` here."""


def odd_numbers(folder: Path, closing: ExitStack) -> Boundary:
    """Logs of every harness in which numbers are infinite, huge, negative, texts or lists."""
    seeds = {name: [json.loads(content)] for name, content in _documents().items()}
    lines = {name: [[json.loads(line) for line in content]] for name, content in _lines().items()}
    either: dict[str, st.SearchStrategy[bytes]] = {
        name: st.one_of(changed_json(seed), _odd(seed).map(json_bytes)) for name, seed in seeds.items()
    } | {
        name: st.one_of(changed_value(rows), _odd(rows)).map(
            lambda value: b"".join(json_bytes(row) + b"\n" for row in (value if isinstance(value, list) else [value]))
        )
        for name, rows in lines.items()
    }
    inputs = st.sampled_from(list(either)).flatmap(
        lambda name: st.tuples(st.just(name), either[name], st.integers(1, IMPORTED_SHARE))
    )

    def trial(one: tuple[str, bytes, int]) -> None:
        name, content, share = one
        path = folder / "log" / name
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()
        for other, document in _documents().items():
            (path.parent / other).write_text(document, encoding="utf-8")
        path.write_bytes(content)
        # What stands beside a log is read with it.
        read = path.with_name("scenario_state.json") if name in ("stats.json", "run_spec.json") else path
        with ending(), refusing():
            for result in read_results(read):
                for sample in result.samples:
                    _check(sample)
        if share == 1:
            shutil.rmtree(folder / "runs", ignore_errors=True)
            call("import", read, "--dataset", "headqa_sample", "--runs-dir", folder / "runs")

    return Boundary(inputs, trial)


def _check(sample: Any) -> None:
    for value in (sample.prompt_tokens, sample.completion_tokens, sample.latency_s, *(sample.scores or ())):
        if value is not None and not (math.isfinite(value) and abs(value) < 2**63):
            raise EndError("a number that is none is kept", repr(sample))


@st.composite
def _odd(draw: st.DrawFn, seeds: list[Any]) -> Any:
    """One of `seeds` in which one to three of its numbers, or of the texts that are numbers, are odd."""
    document = json.loads(json.dumps(draw(st.sampled_from(seeds))))
    places = list(_numbers(document))
    if not places:
        return draw(changed_value(seeds))
    for holder, key in draw(st.lists(st.sampled_from(places), min_size=1, max_size=3)):
        holder[key] = draw(st.sampled_from((*NUMBERS, [1], [[1]], {"a": 1}, None)))
    return document


def _numbers(document: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(document, dict | list):
        for key in list(document) if isinstance(document, dict) else range(len(document)):
            if isinstance(document[key], int | float):
                yield document, key
            yield from _numbers(document[key])


def _documents() -> dict[str, str]:
    """JSON logs of a few samples, by the names that they need."""
    if not _DOCUMENTS:
        header, samples = _read_archive(LOGS / "inspect_headqa.eval")
        inspect = header | {"samples": [sample for sample, _ in zip(samples, range(SAMPLES), strict=False)]}
        _DOCUMENTS["inspect.json"] = json.dumps(inspect)
        with zipfile.ZipFile(LOGS / "helm_run.zip") as archive:
            for name in archive.namelist():
                document = json.loads(archive.read(name))
                if name == "scenario_state.json":
                    document["request_states"] = document["request_states"][:SAMPLES]
                elif isinstance(document, list):
                    document = document[: SAMPLES * 2]
                _DOCUMENTS[name] = json.dumps(document)
    return _DOCUMENTS


def _lines() -> dict[str, list[str]]:
    found = {
        path.name: path.read_text(encoding="utf-8").splitlines()[:SAMPLES] for path in LOGS.glob("samples_*.jsonl")
    }
    with zipfile.ZipFile(LOGS / "every_eval_ever.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".jsonl"):
                found[f"every-{len(found)}_samples.jsonl"] = archive.read(name).decode().splitlines()[:SAMPLES]
    found["plain.jsonl"] = [json.dumps({"question": str(n), "answer": n, "score": 0.5, "model": "m"}) for n in (1, 2)]
    return found


_DOCUMENTS: dict[str, str] = {}


def limits(folder: Path, closing: ExitStack) -> Boundary:
    """Cells and lines around the limit, which is small here: what is longer is refused, and what is not is read."""
    own = ("medexam.datasets.own.formats", "medexam.datasets.own.texts")
    for module in ("medexam.inputs", "medexam.companions.harnesses.imports.lines", *own):
        closing.enter_context(patch(f"{module}.LONGEST_TEXT", LIMIT))
    lengths = st.one_of(st.integers(0, 4 * LIMIT), st.integers(LIMIT - 40, LIMIT + 3))
    signs = st.sampled_from(["x", "é", "🩺", " ", '"', "\\", "\n", "\r", ",", "\t", "'", "\u2028", "\x00"])
    texts = st.lists(st.tuples(signs, lengths), min_size=1, max_size=3).map(
        lambda parts: "".join(sign * length for sign, length in parts)
    )
    inputs = st.tuples(st.sampled_from(["t.csv", "t.tsv", "t.jsonl", "t.json"]), texts, st.booleans())

    def trial(one: tuple[str, str, bool]) -> None:
        name, text, quoted = one
        path = folder / name
        mark = "\t" if name.endswith("tsv") else ","
        cell = '"' + text.replace('"', '""') + '"' if quoted else text
        if name.endswith(("jsonl", "json")):
            row = json.dumps({"stem": text, "A": "a", "B": "b", "answer": "A"}, ensure_ascii=not quoted)
            content = row + "\n" if name.endswith("jsonl") else f"[{row}]"
        else:
            content = "\n".join([mark.join(("stem", "A", "B", "answer")), mark.join((cell, "a", "b", "A")), ""])
        path.write_text(content, encoding="utf-8", newline="")
        rows: list[Any] = []
        with refusing():
            rows = [row.record for row in read_file(path).rows if not isinstance(row.record, str)]
        if any(len(value) > LIMIT for row in rows for value in row.values() if isinstance(value, str)):
            raise EndError("a cell is longer than the limit", repr(text[:200]))
        if name.endswith("jsonl"):
            _read_as_log(path, content)

    return Boundary(inputs, trial)


def _read_as_log(path: Path, content: str) -> None:
    longest = max(map(len, content.encode().split(b"\n")))
    try:
        list(read_lines(path))
    except ResultsError:
        return
    if longest > LIMIT:
        raise EndError("a line is longer than the limit", content[:200])
