"""What the short flags of `medexam run` and `medexam plan` mean: keys of a spec, and the YAML that says the same."""

import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from medexam.errors import SpecError
from medexam.files import write_whole
from medexam.process import errors_only
from medexam.specs.matrix import merge

FLAGS = ("model", "program", "language", "years")
"""Keys of a spec that have a flag of their own; each may be repeated, and hold values with commas between them."""


def read_flags(flags: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return what these flags set, by dotted keys; several values of one are a list. Raises `SpecError` for an empty
    one, and for what is no year.
    """
    values: dict[str, list[Any]] = {
        **{name: _words(f"--{name}", flags[name]) for name in ("model", "program")},
        "dataset.language": _words("--language", flags["language"]),
        "dataset.years": [_years(text) for text in flags["years"]],
    }
    return {key: value if len(value) > 1 else value[0] for key, value in values.items() if value}


def state_meaning(document: Mapping[str, Any], overrides: Mapping[str, Any], file: Path | None) -> None:
    """Write the spec that says the same without flags to `file`, and print on standard error what the flags changed.

    Raises `SpecError` if the file exists or cannot be written.
    """
    with errors_only(merge.__module__):
        # The plan has told what is left out.
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
    try:
        spans = [[int(end) for end in word.split("-")] for word in _words("--years", [text])]
        years = [year for span in spans for year in range(span[0], span[-1] + 1)]
    except ValueError:
        years = []
    if not years:
        raise SpecError(f"--years {text}: give a year, several such as 2013,2016, or a span such as 2013-2016")
    return years
