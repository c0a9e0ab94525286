"""From what the user wrote to the cells that run: overrides first, then the product of the matrix.

An override on an axis of the matrix takes the axis's place; an override below an axis
(`program.max_tokens` where `program` varies) applies to each of its values, and one below a kind of program
(`program.span_reader.reader`) to the programs of that kind. A list as an override of a whole part, or of a field that
takes one value (`dataset.language=[en, es]`), is an axis.
A mapping as an override of a whole part sets its fields one by one (`dataset={language: en}` is `dataset.language=en`),
unless it names another data set, program or engine than the spec: then it stands in place of the part.
A text stands for a part: `program: longest` is `program: {kind: longest}`, and `model: openai/gpt-4o-mini` is what
`model_words` reads in it. A model that is set so keeps how the spec samples.
"""

import copy
import itertools
import logging
import math
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from medexam.errors import SpecError
from medexam.specs.base import Spec
from medexam.specs.dataset import DatasetSpec, check_named
from medexam.specs.experiment import CellSpec, ExperimentSpec
from medexam.specs.model_words import OF_CONNECTION, read_model
from medexam.specs.programs.kinds import ALL_KINDS
from medexam.specs.validation import field_at, takes_one, validate

Tree = dict[str, Any]
_log = logging.getLogger(__name__)
SHORT_FORMS: Mapping[str, str] = MappingProxyType({"program": "kind", "dataset": "name", "model": "engine"})
"""Part of a spec -> the field that a text in its place means, of a model if it is an engine."""
_NAMED_BY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"program": ("kind",), "dataset": ("kind", "name"), "model": ("engine",), "optimizer": ("kind",)}
)
"""Part of a spec -> the fields that say which one it is."""
MOST_CELLS = 10_000
"""More are a mistake: each is a run."""
CELLS = "cells"
"""The axis of the matrix whose values change several keys together."""


def build_cells(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[ExperimentSpec, list[CellSpec]]:
    """Build the experiment and its cells, in the order of the matrix.

    Raises `SpecError` for a key that does not exist, a value of the wrong type, a `dataset` part that names no data
    set, or two cells that are equal.
    """
    settled = _settle(document, overrides)
    tree, below, by_kind = settled.tree, settled.below, settled.by_kind
    _put_by_kind(tree, by_kind, set())
    axes = tree["matrix"]
    for axis in sorted({*axes, *_varied_by_cells(axes)} - {CELLS}):
        field_at(CellSpec, axis, source="matrix")
    experiment = validate(ExperimentSpec, tree)
    _check_size(experiment)
    base = {key: value for key, value in tree.items() if key in CellSpec.model_fields}
    cells = []
    used_paths: set[str] = set()
    for values in itertools.product(*experiment.matrix.values()):
        cell = copy.deepcopy(base)
        changes = [_changes(axis, value) for axis, value in zip(experiment.matrix, values, strict=True)]
        for path, value in ChainMap(below, *reversed(changes)).items():
            put(cell, path, copy.deepcopy(value))
        _put_by_kind(cell, by_kind, used_paths)
        spec = validate(CellSpec, cell)
        questions = cell.get("dataset")
        if settled.needs_name and isinstance(questions, Mapping):
            check_named(questions)
        cells.append(_answer_in_words(_ask_only_pictures(spec)))
        cells[-1].check_fit()
    _check_reached(by_kind, used_paths)
    for first, second in itertools.combinations(range(len(cells)), 2):
        if cells[first] == cells[second]:
            raise SpecError(f"matrix: cells {first + 1} and {second + 1} are the same run; remove one")
    return experiment, cells


@dataclass(frozen=True)
class _Settled:
    """A document with its overrides, before it is checked."""

    tree: Tree
    """The experiment as a file would have it, its matrix included."""
    below: Tree
    """Dotted key below an axis -> what it is in every cell."""
    by_kind: Tree
    """Dotted key -> what it is in the programs of the kind that it names."""
    needs_name: bool
    """Whether the data set must be named."""


def merge(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> Tree:
    """Return the document that says by itself what `document` says under `overrides`; raises as `build_cells` does."""
    settled = _settle(document, overrides)
    tree = settled.tree
    axes = {**tree.pop("matrix"), **{path: [value] for path, value in settled.below.items()}}
    programs = [*axes.get("program", ()), tree["program"]]
    for program in programs:
        _put_by_kind({"program": program}, settled.by_kind, set())
    if "program" in axes or "program" in _varied_by_cells(axes):
        del tree["program"]
    return tree | ({"matrix": axes} if axes else {})


def _settle(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> _Settled:
    """Put each override where it belongs: into the tree, its matrix, or every cell."""
    tree: Tree = {"program": "zero_shot", **copy.deepcopy(dict(document))}
    tree["program"] = _as_program(tree["program"])
    axes = tree.get("matrix") or {}
    if not isinstance(axes, Mapping):
        raise SpecError(f"matrix: expected a mapping of dotted keys to lists, found {axes!r}")
    tree, overrides = replace_model(tree, overrides)
    tree, axes, overrides = (
        {path: _spell_out(path, value) for path, value in part.items()} for part in (tree, axes, overrides)
    )
    needs_name = any(part.get("dataset") for part in (tree, axes, overrides)) or "dataset" in _varied_by_cells(axes)
    overrides = _spell_out_fields(tree, axes, overrides)
    _change_kind(tree, axes, overrides)
    varied = {path: overrides.pop(path) for path in SHORT_FORMS if isinstance(overrides.get(path), list)}
    fields = {path: overrides.pop(path) for path in list(overrides) if _is_axis(path, overrides[path])}
    axes = {**varied, **{path: values for path, values in axes.items() if path not in varied}, **fields}
    varied_by_cells = _varied_by_cells(axes)
    below: Tree = {}
    by_kind = {path: value for path, value in overrides.items() if _kind(path) is not None}
    for path, value in [item for item in overrides.items() if item[0] not in by_kind]:
        field_at(ExperimentSpec if path.split(".")[0] == "optimizer" else CellSpec, path)
        if path in axes:
            del axes[path]
        if path in varied_by_cells or any(path.startswith(f"{axis}.") for axis in {*axes, *varied_by_cells}):
            below[path] = value
        else:
            put(tree, path, value)
    tree["matrix"] = axes
    return _Settled(tree, below, by_kind, needs_name)


def replace_model(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[Tree, Tree]:
    """Return both with the model that a text in `overrides` sets in place of the document's, which keeps its sampling.

    The name of an engine alone replaces nothing where the document has that engine.
    """
    tree, changes = dict(document), dict(overrides)
    model, value = tree.get("model"), changes.get("model")
    texts = [text for text in listed(value) if isinstance(text, str)]
    models = [read_model(text) for text in texts]
    if not isinstance(model, Mapping) or models in ([], [{"engine": model.get("engine", "embedded")}]):
        return tree, changes
    tree["model"] = sampling = {field: setting for field, setting in model.items() if field not in OF_CONNECTION}
    filled = [sampling | read_model(one) if isinstance(one, str) else one for one in listed(value)]
    changes["model"] = filled if isinstance(value, list) else filled[0]
    return tree, changes


def listed(value: Any) -> list[Any]:
    """Return a list as it is, and any other value as a list of it."""
    return value if isinstance(value, list) else [value]


def _is_axis(path: str, value: Any) -> bool:
    """Return whether an override is a list of values for a field that takes one."""
    if not isinstance(value, list) or path.partition(".")[0] not in SHORT_FORMS or "." not in path:
        return False
    return _kind(path) is None and takes_one(CellSpec, path)


def _spell_out_fields(tree: Tree, axes: Tree, overrides: Mapping[str, Any]) -> Tree:
    """Spell out each mapping for a whole part as an override of each of its fields.

    One that names another than the spec does stays as it is, and so does a `Spec`, which holds every field.
    """
    fields: Tree = {}
    for path, value in overrides.items():
        if isinstance(value, Spec):
            fields[path] = value.model_dump(mode="json")
        elif isinstance(value, Mapping) and _is_same(path, value, tree, axes):
            fields |= {f"{path}.{field}": setting for field, setting in value.items()}
        else:
            fields[path] = value
    return fields


def _is_same(path: str, value: Mapping[str, Any], tree: Tree, axes: Tree) -> bool:
    """Return whether a mapping for a whole part names none, or the one that the spec names."""
    if path not in _NAMED_BY:
        return False
    name = _name_of(path, value)
    if path in axes or path in _varied_by_cells(axes):
        return not name
    part = tree.get(path, {})
    return isinstance(part, Mapping) and (name.items() <= _name_of(path, part).items() or not _name_of(path, part))


def _name_of(path: str, part: Mapping[str, Any]) -> Tree:
    """Return the fields of a part that say which one it is; empty where it does not say."""
    return {field: part[field] for field in _NAMED_BY[path] if part.get(field) is not None}


def _change_kind(tree: Tree, axes: Tree, overrides: Mapping[str, Any]) -> None:
    """Leave out what the programs of a file have and a kind that is set instead does not; that is logged."""
    kind = ALL_KINDS.get(str(overrides.get("program.kind")))
    programs = axes.pop("program", [tree["program"]]) if kind is not None else []
    matches = [
        entry for entry in programs if isinstance(entry, Mapping) and entry.get("kind") == overrides["program.kind"]
    ]
    program = (matches or programs or [tree["program"]])[0]
    if kind is not None and isinstance(program, Mapping):
        tree["program"] = {key: value for key, value in program.items() if key in kind.model_fields}
        if left_out := [key for key in program if key not in kind.model_fields]:
            _log.warning("medexam: %s has no %s: left out", overrides["program.kind"], ", ".join(left_out))


def _spell_out(path: str, value: Any) -> Any:
    """Spell out the mapping that a text instead of a part of the spec stands for; of each text in a list."""
    if path not in SHORT_FORMS:
        return value
    if isinstance(value, list):
        return [_spell_out(path, entry) for entry in value]
    if path == "program":
        return _as_program(value)
    if path == "model" and isinstance(value, str):
        return read_model(value)
    return {SHORT_FORMS[path]: value} if isinstance(value, str) else value


def _ask_only_pictures(cell: CellSpec) -> CellSpec:
    """Spell out `program.images: only` of the cell as `shown` on the questions that have a picture."""
    program = cell.program
    if program.asking.pictures is None or getattr(program, "images", None) != "only":
        return cell
    if cell.dataset.images == "without":
        raise SpecError(
            "program.images: only asks questions with a picture, and dataset.images: without leaves these out"
        )
    dataset = validate(DatasetSpec, {**cell.dataset.model_dump(), "images": "with"})
    return cell.model_copy(update={"dataset": dataset, "program": program.model_copy(update={"images": "shown"})})


def _answer_in_words(cell: CellSpec) -> CellSpec:
    """Spell out the program's `then` for questions of the cell's form; as it is where the spec says it."""
    program = cell.program
    then = program.then_by_form.get(cell.dataset.question_form)
    if then is None or "then" in program.model_fields_set:
        return cell
    settings = {**program.model_dump(exclude_unset=True), "kind": program.kind, "then": then}
    return cell.model_copy(update={"program": validate(type(program), settings)})


def _check_size(experiment: ExperimentSpec) -> None:
    count = math.prod(map(len, experiment.matrix.values()))
    if count > MOST_CELLS:
        raise SpecError(f"matrix: it has {count:,} cells, over {MOST_CELLS:,}; make shorter lists, or several specs")


def _varied_by_cells(axes: Mapping[str, Any]) -> set[str]:
    """Return the dotted keys that the axis of cells changes; none without it."""
    values = axes.get(CELLS, [])
    if not isinstance(values, list):
        raise SpecError(f"matrix.{CELLS}: expected a list of mappings, found {values!r}")
    return {path for value in values for path in _changes(CELLS, value)}


def _changes(axis: str, value: Any) -> Tree:
    """Map dotted keys to what one value of an axis changes in a cell."""
    if axis != CELLS:
        return {axis: value}
    if not isinstance(value, Mapping) or not value:
        raise SpecError(f"matrix.{CELLS}: expected a mapping of dotted keys to values, found {value!r}")
    return {path: _spell_out(path, setting) for path, setting in value.items()}


def _as_program(value: Any) -> Any:
    """Return a program with its fields; a string stands for its kind, and steps are one of their own."""
    if isinstance(value, Mapping) and "steps" in value and "kind" not in value:
        return {"kind": "flow", **value}
    return {"kind": value} if isinstance(value, str) else value


def put(tree: Tree, path: str, value: Any) -> None:
    """Set the value at a dotted path; raises `SpecError` if something on the way is no mapping."""
    if path == "program":
        value = _as_program(value)
    *parents, leaf = path.split(".")
    for key in parents:
        child = tree.setdefault(key, {})
        if key == "dataset" and isinstance(child, str):
            child = tree[key] = {"name": child}
        if not isinstance(child, dict):
            raise SpecError(f"{path}: {key} is {child!r}, which has no key {leaf!r}")
        tree = child
    tree[leaf] = value


def _kind(path: str) -> str | None:
    """Return the kind of program that a dotted path is meant for; None where it is meant for any."""
    first, _, tail = path.partition(".")
    kind, dot, _ = tail.partition(".")
    return kind if first == "program" and dot and kind in ALL_KINDS else None


def _check_reached(settings: Mapping[str, Any], used_paths: set[str]) -> None:
    for path in settings:
        if path not in used_paths:
            raise SpecError(f"--set {path}: no program of the experiment is of the kind {_kind(path)}")


def _put_by_kind(cell: Tree, settings: Mapping[str, Any], used_paths: set[str]) -> None:
    """Put the settings for the kind of the cell's program; their paths are added to `used_paths`."""
    for path, value in settings.items():
        kind = _kind(path)
        program = cell["program"]
        if isinstance(program, Mapping) and program.get("kind") == kind:
            put(cell, path.replace(f"program.{kind}.", "program.", 1), value)
            used_paths.add(path)
