"""A suite: several experiments that are planned, run and ranked together, as a YAML file lists them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.specs.loading import SpecSource, load_document

SUITE = "suite"
"""The key whose value lists the specs of a suite; every other key of its file is set in each of them."""
_PARTS = frozenset({"program", "model"})
"""Whole parts that a suite gives instead of a spec's, so that `--set` changes them as it changes a spec's."""
_ABOUT = ("name", "description")


@dataclass(frozen=True)
class SuiteEntry:
    """One experiment of a suite."""

    document: Mapping[str, Any]
    overrides: Mapping[str, Any]
    """What the suite sets in it, by dotted keys."""


def load_entries(
    specs: Sequence[SpecSource], read: Callable[[SpecSource], dict[str, Any]] = load_document
) -> list[SuiteEntry]:
    """Load specs by `read`, and those that a suite among them lists; raises `SpecError` as `read` does."""
    entries: list[SuiteEntry] = []
    for spec in specs:
        document = read(spec)
        if SUITE in document:
            entries += _expand(document, Path(spec).parent if isinstance(spec, str | Path) else Path(), read)
        else:
            entries.append(SuiteEntry(document, {}))
    return entries


def _expand(
    document: Mapping[str, Any], folder: Path, read: Callable[[SpecSource], dict[str, Any]]
) -> Iterable[SuiteEntry]:
    """Yield the experiments of a suite.

    An entry is a spec's name or path, or a mapping with that under `spec` and keys that are set in this one.
    """
    members = document[SUITE]
    if not isinstance(members, list) or not members:
        raise SpecError(f"{SUITE}: expected a list of specs, found {members!r}")
    shared = {key: value for key, value in document.items() if key not in {SUITE, *_ABOUT}}
    for member in members:
        settings = dict(member) if isinstance(member, Mapping) else {"spec": member}
        name = settings.pop("spec", None)
        if not isinstance(name, str):
            raise SpecError(f"{SUITE}: {member!r} names no spec: give its name or path, alone or under `spec`")
        path = folder / name
        entry = read(str(path) if path.is_file() else name)
        if SUITE in entry:
            raise SpecError(f"{SUITE}: {name} is a suite itself: list its specs instead")
        settings = {**shared, **settings}
        axes = entry.get("matrix")
        for part in _PARTS & settings.keys():
            entry[part] = settings.pop(part)
            if isinstance(axes, Mapping):
                entry["matrix"] = axes = {axis: values for axis, values in axes.items() if axis != part}
        yield SuiteEntry(entry, settings)
