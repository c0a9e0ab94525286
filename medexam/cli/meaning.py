"""What the short flags of `medexam run` and `medexam plan` mean: keys of a spec, and the YAML that says the same."""

import re
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from medexam.errors import SpecError
from medexam.files import write_whole
from medexam.specs.matrix import merge

_YEARS = re.compile(r"(\d{4})-(\d{4})")
_FORMATTED = re.compile(r"(\w+)-(guided|free)")
"""A program as tables name it."""


FLAGS = ("model", "program", "language", "years")
"""Keys of a spec that have a flag of their own; each may be repeated, and hold values with commas between them."""


def apply_flags(
    document: Mapping[str, Any], flags: Mapping[str, Sequence[str]]
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the document and what these flags set in it, by dotted keys; several values of one are a matrix.

    Raises `SpecError` for what a flag cannot mean.
    """
    words = {name: _words(f"--{name}", flags[name]) for name in FLAGS if name != "years"}
    values: dict[str, list[Any]] = {
        "model": words["model"],
        "program": [_program(word, document) for word in words["program"]],
        "dataset.language": words["language"],
    }
    keys = {key: value if len(value) > 1 else value[0] for key, value in values.items() if value}
    if isinstance(program := keys.get("program"), Mapping) and set(program) == {"kind"}:
        # One kind alone picks the file's own program of that kind.
        keys = {"program.kind" if key == "program" else key: value for key, value in keys.items()}
        keys["program.kind"] = program["kind"]
    years = [_years(text) for text in flags["years"]]
    if len(years) > 1:
        return {**document, "matrix": {**(document.get("matrix") or {}), "dataset.years": years}}, keys
    return document, keys | ({"dataset.years": years[0]} if years else {})


def state_meaning(document: Mapping[str, Any], overrides: Mapping[str, Any], file: Path | None) -> None:
    """Write the spec that says the same without flags to `file`, and print on standard error what the flags changed.

    Raises `SpecError` if the file exists or cannot be written.
    """
    tree = merge(document, overrides)
    if file is not None:
        write_spec(file, _as_yaml(tree), "name another file with --save")
    parts = {"name", "dataset", "matrix"} | {key.partition(".")[0] for key in overrides}
    changed_parts = {key: value for key, value in tree.items() if key in parts}
    lines = "".join(f"  {line}\n" for line in _as_yaml(changed_parts).splitlines())
    keeps = "--save FILE keeps it" if file is None else f"kept as {file}"
    sys.stderr.write(f"medexam: as a spec ({keeps}):\n{lines}")


def write_spec(file: Path, text: str, advice: str) -> None:
    """Write a spec that is not there yet; raises `SpecError` with the advice if it is, or cannot be written."""
    if file.exists():
        raise SpecError(f"{file} exists: {advice}")
    try:
        write_whole(file, text)
    except OSError as error:
        raise SpecError(f"cannot write {file}: {error.strerror}; {advice}") from None


def _as_yaml(tree: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(tree), sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)


def _words(flag: str, texts: Sequence[str]) -> list[str]:
    words = [[word.strip() for word in text.split(",") if word.strip()] for text in texts]
    if not all(words):
        raise SpecError(f"{flag} is empty: give a value, or leave the flag out")
    return list(chain.from_iterable(words))


def _years(text: str) -> list[int]:
    """Read `2016`, `2013,2016` or `2013-2016`."""
    years: list[int] = []
    for word in _words("--years", [text]):
        if span := _YEARS.fullmatch(word):
            years += range(int(span[1]), int(span[2]) + 1)
        elif word.isdecimal():
            years.append(int(word))
        else:
            years.clear()
            break
    if not years:
        raise SpecError(f"--years {text}: give a year, several such as 2013,2016, or a span such as 2013-2016")
    return years


def _program(word: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document's own program of this kind, else one with the document's keys that the kind takes."""
    from medexam.specs.programs.kinds import find_kind

    base = document.get("program")
    programs = [*(document.get("matrix") or {}).get("program", ()), base]
    kind, answer_format = (labelled[1], labelled[2]) if (labelled := _FORMATTED.fullmatch(word)) else (word, None)
    own = [program for program in programs if isinstance(program, Mapping) and program.get("kind") == kind]
    program = dict(own[0]) if own else {"kind": kind}
    if not own and isinstance(base, Mapping) and (spec := find_kind(kind)) is not None:
        program |= {key: value for key, value in base.items() if key in spec.model_fields and key != "kind"}
    return program | ({"answer_format": answer_format} if answer_format else {})
