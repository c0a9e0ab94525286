"""From what the user wrote to the cells that run: one document that says everything, then the product of its matrix.

One rule: a change is a dotted path and a value, and shorter paths are put first. A value of the matrix replaces the
spec's own, and an override both. `program.KIND.field` changes the programs of that kind. A list for a whole part, or
for a field that takes one value (`dataset.language=[en, es]`), is an axis, and so is a list of lists. A mapping for a
whole part changes its fields one by one, unless it names another data set, program or engine than the spec. A text
stands for a part: `program: longest` is `program: {kind: longest}`. A model that an override names by a text keeps how
the spec samples. A program, with or without its format as in `longest-guided`, keeps what else the spec's own program
of that kind has, or its first one.
"""

import copy
import itertools
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from medexam.errors import SpecError
from medexam.specs.base import SourceText, find_source, takes_one, validate
from medexam.specs.catalogue import SAMPLE
from medexam.specs.dataset import check_named
from medexam.specs.experiment import CellSpec, ExperimentSpec
from medexam.specs.model import SAMPLING, ModelSpec, read_model
from medexam.specs.programs.kinds import find_kind
from medexam.specs.programs.steps import as_program

Tree = dict[str, Any]
_log = logging.getLogger(__name__)
SHORT_FORMS: Mapping[str, str] = {"program": "kind", "dataset": "name", "model": "engine"}
"""Part of a spec -> the field that a text in its place means, of a model if it is an engine."""
CELLS = "cells"
"""The axis of the matrix whose values change several keys together."""


def build_cells(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[ExperimentSpec, list[CellSpec]]:
    """Build the experiment and its cells, in the order of the matrix.

    Raises `SpecError` for a key that does not exist, a value of the wrong type, a `dataset` part that names no data
    set, or two cells that are equal.
    """
    tree = merge(document, overrides)
    experiment = validate(ExperimentSpec, tree)
    cells: list[CellSpec] = []
    axes = tree.get("matrix", {})
    if "metrics" in _paths(axes):
        raise SpecError(f"{find_source(tree, 'matrix')}matrix: a run has all its metrics: list them under metrics")
    for values in itertools.product(*axes.values()):
        cell = copy.deepcopy({key: value for key, value in tree.items() if key in CellSpec.model_fields})
        changes = [pair for item in zip(axes, values, strict=True) for pair in _changes(*item).items()]
        for path, value in sorted(changes, key=lambda change: change[0].count(".")):
            put(cell, path, copy.deepcopy(value))
        cells.append(validate(CellSpec, cell))
        if isinstance(cell.get("dataset"), Mapping):
            check_named(cell["dataset"])
        try:
            cells[-1].check_fit()
        except SpecError as error:
            raise SpecError(f"{find_source(cell, 'program.kind')}{error}") from None
    for first, second in itertools.combinations(range(len(cells)), 2):
        if cells[first] == cells[second]:
            raise SpecError(
                f"{find_source(tree, 'matrix')}matrix: cells {first + 1} and {second + 1} are the same run; remove one"
            )
    return experiment, cells


def merge(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> Tree:
    """Return the document that says by itself what `document` says under `overrides`; raises as `build_cells` does."""
    tree: Tree = copy.deepcopy(dict(document))
    tree.setdefault("program", "zero_shot")
    axes = tree.pop("matrix", None) or {}
    if any(path.split(".")[0] == "matrix" for path in overrides):
        raise SpecError("--set matrix: give the key itself a list, such as --set dataset.language=[en, es]")
    cells = axes.get(CELLS, []) if isinstance(axes, Mapping) else None
    if not isinstance(cells, list) or not all(isinstance(cell, Mapping) and cell for cell in cells):
        raise SpecError(
            f"{find_source(document, 'matrix')}matrix: expected a mapping of dotted keys to lists, of which {CELLS} "
            f"holds mappings of dotted keys to values, found {axes!r}"
        )
    axes = {path: _spell_out(path, value) for path, value in axes.items()}
    # A list instead of a whole part is none, and is refused as it was written.
    tree |= {path: _spell_out(path, part) for path, part in tree.items() if not isinstance(part, list)}
    if tree.get("dataset", {}) == {} and "dataset" not in {*overrides, *_paths(axes)}:
        tree["dataset"] = {"name": SAMPLE.name}
    changes: Tree = {
        SourceText(path, getattr(item[0], "source", "")): value
        for item in overrides.items()
        for path, value in _flatten(*item, tree, axes)
    }
    parts = {path: changes.pop(path) for path in SHORT_FORMS if isinstance(changes.get(path), list)}
    axes = parts | {path: values for path, values in axes.items() if path not in parts}
    for path, value in sorted(changes.items(), key=lambda change: change[0].count(".")):
        names, programs = path.split(".", 2), [tree["program"], *axes.get("program", [])]
        own = [each for each in programs if isinstance(each, dict) and ["program", each.get("kind")] == names[:2]]
        if own and len(names) > 2:
            for program in own:
                put(program, names[2], value)
            continue
        is_axis = isinstance(value, list) and (takes_one(CellSpec, path) or {*map(type, value)} == {list})
        if is_axis and path.split(".")[0] in SHORT_FORMS:
            _assign(axes, path, value)
            continue
        axes.pop(path, None)
        if any(f"{path}.".startswith(f"{varied}.") for varied in _paths(axes)):
            axes[path] = [value]
        else:
            put(tree, path, value)
    if "program" in axes or all("program" in cell for cell in axes.get(CELLS, [{}])):
        del tree["program"]
    return tree | ({"matrix": axes} if axes else {})


def put(tree: Tree, path: str, value: Any) -> None:
    """Set the value at a dotted path; raises `SpecError` if something on the way is no mapping."""
    *parents, leaf = (SourceText(key, getattr(path, "source", "")) for key in path.split("."))
    for key in parents:
        child = tree.setdefault(key, {})
        if not isinstance(child, dict):
            raise SpecError(f"{path}: {key} is {child!r}, which has no key {leaf!r}")
        tree = child
    _assign(tree, leaf, value)


def _assign(tree: Tree, key: str, value: Any) -> None:
    """Set a value in its place under this very key, which knows where it was written."""
    entries = {**tree, key: value}
    tree.clear()
    tree.update((key if name == key else name, entry) for name, entry in entries.items())


def _flatten(path: str, value: Any, tree: Tree, axes: Tree) -> Iterator[tuple[str, Any]]:
    """Yield the changes that an override means."""
    if path == "program.kind" and isinstance(value, str):
        path = "program"
    part, listed = tree.get(path, {}), value if isinstance(value, list) else [value]
    if path == "program" and any(isinstance(one, str) for one in listed):
        own = axes.get("program", [part])
        programs = [_named_program(one, own) if isinstance(one, str) else one for one in listed]
        yield path, _spell_out(path, programs if isinstance(value, list) else programs[0])
        return
    if path == "model" and isinstance(part, Mapping):
        models = [read_model(one) for one in listed if isinstance(one, str)]
        if models not in ([], [{"engine": part.get("engine", "embedded")}]):
            # Another model keeps how the spec samples, and a key that does not exist, which is refused then.
            sampling = {name: part[name] for name in part if name in SAMPLING or name not in ModelSpec.model_fields}
            filled = [sampling | read_model(one) if isinstance(one, str) else one for one in listed]
            yield path, filled if isinstance(value, list) else filled[0]
            return
    value = _spell_out(path, value)
    if isinstance(value, Mapping) and isinstance(part, Mapping) and path in (*SHORT_FORMS, "optimizer"):
        names, own = (
            {name: one[name] for name in {"kind", SHORT_FORMS.get(path, "kind")} if one.get(name)}
            for one in (value, part)
        )
        if not names or (path not in _paths(axes) and (names.items() <= own.items() or not own)):
            yield from ((f"{path}.{name}", setting) for name, setting in value.items())
            return
    yield path, value


def _named_program(name: str, programs: list[Any]) -> Tree:
    """Return the one of a spec's programs that has this name, else the first one as a program of this name: what it has
    and the kind has not is left out, and that is logged.
    """
    kind, _, answer_format = name.rpartition("-") if name.endswith(("-guided", "-free")) else (name, "", "")
    mappings = (program for program in programs if isinstance(program, Mapping))
    base: Mapping[str, Any] = min(mappings, key=lambda program: program.get("kind") != kind, default={})
    known = base if (spec := find_kind(kind)) is None else spec.model_fields
    if left_out := ", ".join(key for key in base if key not in known):
        _log.warning("medexam: %s has no %s: left out", kind, left_out)
    fields = {key: base[key] for key in base if key in known} | {"kind": kind}
    return fields | ({"answer_format": answer_format} if answer_format else {})


def _spell_out(path: str, value: Any) -> Any:
    if path not in SHORT_FORMS:
        return value
    if isinstance(value, list):
        return [_spell_out(path, entry) for entry in value]
    if path == "program":
        return as_program(value)
    if not isinstance(value, str):
        return value
    return read_model(value) if path == "model" else {SHORT_FORMS[path]: value}


def _paths(axes: Mapping[str, Any]) -> set[str]:
    return {*axes} - {CELLS} | {path for cell in axes.get(CELLS, []) for path in cell}


def _changes(axis: str, value: Any) -> Tree:
    if axis != CELLS:
        return {axis: value}
    return {path: _spell_out(path, setting) for path, setting in value.items()}
