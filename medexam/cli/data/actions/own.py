"""What `medexam init` does with questions of one's own, and how other commands find questions of one's own."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import typer
import yaml

from medexam.cli.options import INCOMPLETE
from medexam.cli.views.questions import print_task
from medexam.datasets.own.proposals.proposing import dataset_lines, propose
from medexam.datasets.rows import Row
from medexam.errors import SpecError
from medexam.experiments.entry.terminal import Terminal
from medexam.files import write_whole
from medexam.specs import DatasetSpec, load_document
from medexam.specs.columns import KeySpec
from medexam.specs.dataset import OwnKind
from medexam.specs.validation import validate

SHOWN = 3

_PROGRAMS: Mapping[str, dict[str, str]] = {
    "choice": {"kind": "zero_shot", "answer_format": "guided"},
    "short_answer": {"kind": "short_answer"},
    "spans": {"kind": "quote"},
}

_WITHOUT_WORDS = ("fr", "ja", "zh")
"""Languages in which the prompts of exams have no words."""


def write_spec(
    file: Path, out: Path | None, kind: str | None, answers: Path | None, on: str | None, endpoint: str | None
) -> None:
    """Look at a file of your own questions and write a spec that asks them; exit code 3 if something is to decide."""
    out = out or file.with_name(f"{file.name.split('.')[0]}.yaml")
    if out.exists():
        raise SpecError(f"{out} exists and is kept: name another with --out")
    key = None if answers is None else KeySpec(path=answers.absolute(), on=on)
    proposal = propose(file, _check_kind(kind), key)
    console = Terminal(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{file}: kind {proposal.kind}", style="bold")
    for line in proposal.notes:
        console.print(f"  {line}")
    console.print()
    for row in proposal.rows[:SHOWN]:
        if isinstance(row, Row):
            for line in row.question.printed.splitlines():
                right = any(line.startswith(f"{number}. ") for number in (row.gold, *row.others))
                console.print(f"{'*' if right else ' '} {line}", style="green" if right else None)
        else:
            print_task(console, row.task, row.gold)
        console.print()
    inside = out.absolute().parent == file.absolute().parent
    lines = dataset_lines(proposal, Path(file.name) if inside else file.absolute())
    program = dict(_PROGRAMS[proposal.kind])
    if proposal.kind == "choice" and proposal.language in _WITHOUT_WORDS:
        program["prompt_language"] = "en"
    model = {"engine": "embedded"} if endpoint is None else {"engine": "vllm", "endpoints": endpoint}
    tail = yaml.safe_dump({"model": model, "program": program}, sort_keys=False, default_flow_style=None)
    head = yaml.safe_dump(
        {"name": re.sub(r"[^A-Za-z0-9_-]+", "_", file.name.split(".")[0])[:64].strip("_") or "questions"}
    )
    body = "".join(f"  {line}\n" for line in lines)
    write_whole(out, f"# Written by `medexam init {file.name}`.\n{head}dataset:\n{body}{tail}")
    if proposal.open:
        for name, decision in proposal.open.items():
            console.print(f"to decide, dataset.{name}: {decision}", style="yellow")
        console.print(f"{out} is written; fill in what ends in `# decide:`", style="yellow")
        raise typer.Exit(INCOMPLETE)
    console.print(f"{out} is written; ask the questions with: medexam run {out}", style="green")


def find_own(name: str | None, path: Path | None, kind: str | None) -> DatasetSpec | None:
    """Find the questions of one's own that a command line means, by a spec file or by --path and --kind; None if none.

    Raises `SpecError` if it names neither these nor a data set.
    """
    if kind is not None:
        if path is None:
            raise SpecError("--kind and --path belong together: give both, the format of your questions and their file")
        return validate(DatasetSpec, {"kind": _check_kind(kind), "path": path})
    if name is not None and name.endswith((".yaml", ".yml")):
        tree = load_document(name).get("dataset", {})
        spec = validate(DatasetSpec, {"name": tree} if isinstance(tree, str) else tree)
        if spec.kind is None:
            raise SpecError(f"{name} asks {spec.name}, which ships: give that name instead of a file")
        return spec
    if name is None:
        raise SpecError("give the name of a data set, a spec of your own questions, or --path with --kind")
    return None


def _check_kind(kind: str | None) -> Any:
    if kind is not None and kind not in get_args(OwnKind):
        raise SpecError(f"--kind {kind}: the kinds are {', '.join(get_args(OwnKind))}")
    return kind
