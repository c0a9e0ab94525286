"""Names from outside, through every place where a name goes: MLflow, Markdown, a page, files, exports, the terminal."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param_name, _validate_tag_name

from generated.boundary import Boundary
from generated.commands import Ended, EndError, call
from generated.mutations import TEXTS
from markdown_tags import LINKS, outside_of_blocks, render, types_in
from medexam.experiments import disarm
from medexam.experiments.report.escaping import heading, paragraphs
from medexam.experiments.report.markdown import render_table
from medexam.experiments.track.names import original_names, storable_names
from medexam.files import file_name
from medexam.tables import Table
from medexam.text import writable
from soak.names import PIECES

EVIL = "<script>alert(1)</script>"
_MARKUP = (
    "[x]: http://x",
    "[x]",
    "[x][x]",
    "![x]",
    "](",
    "<a@b>",
    "<http://x>",
    "&lt;",
    "&#60;",
    "\\",
    "`",
    "\n\n",
    "| ",
)
_RULES = ("\n===", "\n---", "\n# ", "\n> ", "\n- ", "\n1. ", "\n    ", "\n| --- |\n", "\n:-:|:-:\n", "~~~", "\r")
names = st.one_of(
    st.lists(st.sampled_from((*PIECES, *TEXTS, *_MARKUP, *_RULES)), max_size=4).map("".join), st.text(max_size=20)
)
"""Texts that somebody may take for a name."""
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys, and no text may hold that is printed."""
PLACES = ("model", "description", "discipline", "metric", "dataset", "warning")
"""Where a run's files hold a name of others."""
METRIC = """def score(question, gold, prediction):
    return {"NAME-metric": 1.0, "right": 1.0}
"""


def written_names(folder: Path, closing: ExitStack) -> Boundary:
    """Names alone: what MLflow, a file system and a renderer of Markdown make of them."""

    def trial(given: list[str]) -> None:
        texts = [writable(name) for name in given]
        _store(texts)
        for name in texts:
            _name_file(folder, name)
            _draw(name)

    return Boundary(st.lists(names, max_size=4), trial)


def _store(texts: list[str]) -> None:
    stored = storable_names(texts)
    try:
        for name in stored.values():
            _validate_metric_name(name)
            _validate_param_name(name)
        for tag in original_names(stored):
            _validate_tag_name(tag)
    except Exception as error:
        raise EndError("MLflow refuses a name", f"{texts!r}\n{error}") from None
    if len({*stored.values()}) < len({*texts}) or stored.keys() != {*texts}:
        raise EndError("two names are one in MLflow", repr(stored))


def _name_file(folder: Path, name: str) -> None:
    path = folder / file_name(name)
    if path.parent != folder or path.name in (".", "..") or len(path.name.encode()) > 255:
        raise EndError("a name leads elsewhere", repr(name))
    path.touch()
    path.unlink()


def _draw(name: str) -> None:
    cells = Table(name, ("a", name), ((name, "b"), ("c", name)), text_columns=1)
    title = disarm(f"{heading(2, f'a {name}')}\n\nbehind")
    table, text = disarm(render_table(cells)), disarm(paragraphs(name))
    blocks = [token.type for token in render(table) if token.type in ("td_open", "th_open")]
    if blocks != ["th_open"] * 2 + ["td_open"] * 4 or render(table)[-1].type != "table_close":
        raise EndError("a name leaves its cell", table)
    if [token.type for token in render(title) if token.block][:3:2] != ["heading_open", "heading_close"]:
        raise EndError("a name leaves its heading", title)
    if found := types_in(text) & _SECTIONS:
        raise EndError(f"a name makes {found}", text)
    for shown in (title, table, text):
        if found := types_in(shown) & LINKS:
            raise EndError(f"a name makes {found}", shown)


_SECTIONS = {"heading_open", "table_open", "hr", "bullet_list_open", "ordered_list_open", "blockquote_open", "fence"}


def runs_of_names(folder: Path, closing: ExitStack) -> Boundary:
    """A run whose files hold names of others, read by every command that shows it or writes it in another form."""
    whole = _make_run(folder)
    documents = {path: json.loads(path.read_bytes()) for path in whole.glob("*.json")}
    out = folder / "out"
    commands: Mapping[str, Callable[[Path], list[object]]] = {
        "markdown": lambda run: ["report", run, "--markdown", out / "report.md"],
        "page": lambda run: ["report", run, "--html", out / "page.html"],
        "show": lambda run: ["show", run],
        "list": lambda run: ["list", "--runs-dir", run.parent],
        "compare": lambda run: ["compare", run, whole],
        **{
            name: lambda run, name=name: ["export", run, "--to", name, "--out", out / name]
            for name in ("lm-eval", "inspect", "every-eval-ever", "hub")
        },
    }
    inputs = st.tuples(st.dictionaries(st.sampled_from(PLACES), names, min_size=1), st.sampled_from(list(commands)))
    run = folder / "runs" / whole.name

    def trial(one: tuple[Mapping[str, str], str]) -> None:
        given, command = one
        shutil.rmtree(run.parent, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(whole, run)
        out.mkdir()
        marks = {f"NAME-{place}": writable(name) for place, name in given.items()}
        for path, document in documents.items():
            (run / path.name).write_text(json.dumps(_rename(document, marks)), encoding="utf-8")
        around = {*folder.iterdir()}
        check_shown(call(*commands[command](run)), command)
        if {*folder.iterdir()} != around:
            raise EndError(f"{command} writes elsewhere", repr({*folder.iterdir()} - around))
        for path in out.rglob("*"):
            if path.is_file() and path.suffix in (".md", ".html"):
                _check_text(path)

    return Boundary(inputs, trial)


def check_shown(ended: Ended, what: str) -> None:
    """Raise `EndError` where a terminal would obey what a command printed."""
    if found := UNSEEN.search(ended.out + ended.err):
        raise EndError(f"{what} prints {found[0]!r}", ended.out[-2000:] + ended.err[-2000:])


def _check_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md" and (found := types_in(outside_of_blocks(text).partition("\n---\n")[2] or text) & LINKS):
        raise EndError(f"{path.name} holds {found}", text)
    if path.suffix == ".html" and EVIL in text:
        raise EndError("the page holds a tag of others", text[text.index(EVIL) - 200 :][:400])
    if path.name == "README.md":
        yaml.safe_load(text.split("---\n")[1])


def _make_run(folder: Path) -> Path:
    """A run of questions and a metric of one's own, whose names begin with `NAME-`."""
    rows = [f"Which is {number}?,a,b,c,d,B,NAME-discipline" for number in range(4)]
    (folder / "own.csv").write_text("\n".join(["stem,A,B,C,D,answer,subject", *rows]), encoding="utf-8")
    (folder / "scores.py").write_text(METRIC, encoding="utf-8")
    (folder / "names.yaml").write_text("'*': '{Answer: 2}'\n", encoding="utf-8")
    columns = {"stem": "stem", "options": ["A", "B", "C", "D"], "answer": "answer", "subject": "subject"}
    spec = {
        "name": "named",
        "description": "NAME-description",
        "dataset": {"kind": "choice", "name": "NAME-dataset", "path": str(folder / "own.csv"), "columns": columns},
        "model": {"engine": "scripted", "name": "NAME-model", "path": str(folder / "names.yaml")},
        "metrics": [f"{folder / 'scores.py'}:score"],
        "program": "zero_shot",
    }
    (folder / "named.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    call("run", folder / "named.yaml", "--runs-dir", folder / "made")
    (whole,) = (path.parent for path in (folder / "made").glob("*/spec.json"))
    record = json.loads((whole / "spec.json").read_bytes())
    (whole / "spec.json").write_text(json.dumps({**record, "warnings": ["NAME-warning"]}), encoding="utf-8")
    return whole


def _rename(value: Any, marks: Mapping[str, str]) -> Any:
    """A document with other names in its keys and values."""
    if isinstance(value, dict):
        return {_rename(key, marks): _rename(each, marks) for key, each in value.items()}
    if isinstance(value, list):
        return [_rename(each, marks) for each in value]
    if isinstance(value, str):
        for mark, name in marks.items():
            value = value.replace(mark, name)
    return value
