"""Which fields the steps of a program read and write: what is missing, or written twice, is refused with its place."""

from collections.abc import Mapping
from typing import Any

from medexam.specs.programs.asking_steps import PASSAGES, AskingStep, AskStep, StepSpec
from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.own import OwnSpec
from medexam.specs.programs.signature_text import QUESTION_FIELDS
from medexam.specs.programs.steps import AllStep, ConditionStep, EachStep, RepeatStep, RetrieveStep, Steps
from medexam.specs.validation import PlacedError
from medexam.text import nearest

Kinds = dict[str, str]
"""Name of each field -> its type, as a signature writes it."""
_OF_QUESTION_ALONE = "list[passage]"


def check_fields(steps: Steps, programs: Mapping[str, ProgramSpec]) -> dict[str, Kinds]:
    """Check that each step reads what is there; `programs` are what steps ask, by place.

    Return the fields that are there before each step that asks, by its place.

    Raises `PlacedError` for a field that nothing wrote before, a condition that is always true, two writers of one name
    beside each other, and steps that give no `answer`.
    """
    fields = _Fields(programs)
    if "answer" not in fields.after(steps, "steps", dict(QUESTION_FIELDS)):
        raise PlacedError("steps", "the steps may end without an answer: end with a step that always writes `answer`")
    return fields.before


class _Fields:
    """The fields that are there, step after step."""

    def __init__(self, programs: Mapping[str, ProgramSpec]) -> None:
        self._programs = programs
        self.before: dict[str, Kinds] = {}
        """Place of each step that asks -> the fields before it."""
        self._names: set[str] = set()
        """Names that were written since the innermost branch began."""

    def after(self, steps: Steps, place: str, fields: Kinds) -> Kinds:
        """Return the fields behind `steps`, those before included."""
        lists = added_lists(steps)
        for name in lists.keys() & QUESTION_FIELDS.keys():
            raise PlacedError(place, f"{name} is the question's own: add to a list with another name")
        fields = {**lists, **fields}
        for position, step in enumerate(steps):
            step_place = f"{place}.{position}"
            fields = {**fields, **self._writes(step, step_place, fields)}
            for name in lists:
                if not fields[name].startswith("list["):
                    raise PlacedError(step_place, f"{name} is a list that steps add to: write another name")
        return fields

    def _writes(self, step: StepSpec, place: str, fields: Kinds) -> Kinds:
        """Return the fields that a step surely writes."""
        match step:
            case AskingStep():
                return self._asked(step, place, fields)
            case RetrieveStep():
                kind = _read(step.retrieve, f"{place}.retrieve", fields)
                if kind not in ("str", "list[str]"):
                    raise PlacedError(f"{place}.retrieve", f"{step.retrieve} is {kind}: look up a text, or a list[str]")
                return {} if step.add else {self._new(step.rename or PASSAGES, place): _OF_QUESTION_ALONE}
            case EachStep():
                return self._each(step, place, fields)
            case RepeatStep():
                behind = self.after(step.do, f"{place}.do", fields)
                if step.until is not None:
                    _check_condition(step.until, f"{place}.until", behind)
                if step.as_long_as is not None:
                    _check_condition(step.as_long_as, f"{place}.while", behind)
                return behind
            case ConditionStep():
                _check_condition(step.condition, f"{place}.{step.step}", fields)
                behind = self.after(step.do, f"{place}.do", fields)
                if step.otherwise is not None:
                    others = self.after(step.otherwise, f"{place}.else", fields)
                    return {name: kind for name, kind in others.items() if name in behind}
            case AllStep():
                return self._all(step, place, fields)
        return {}

    def _asked(self, step: AskingStep, place: str, fields: Kinds) -> Kinds:
        program = self._programs[place]
        self.before[place] = fields
        if isinstance(step, AskStep):
            signature = step.signature
            for name in signature.inputs:
                _read(name, f"{place}.ask", fields)
            others = [name for name in signature.inputs if name not in {*QUESTION_FIELDS, PASSAGES}]
            if step.orders is not None and others:
                raise PlacedError(
                    f"{place}.orders",
                    f"{', '.join(others)} may name options by number, and other orders change these numbers: leave "
                    "orders out, or read only the question and its passages",
                )
            outputs: Mapping[str, str] = signature.outputs
        else:
            thinks = getattr(program, "reasons", False) or isinstance(program, OwnSpec)
            outputs = {"answer": "int", **({"rationale": "str"} if thinks else {})}
        if (step.samples is not None or step.orders is not None) and "answer" not in outputs:
            what = "samples" if step.samples is not None else "orders"
            raise PlacedError(f"{place}.{what}", "they vote on `answer`, which the step does not write: leave it out")
        if step.add is not None:
            return {}
        if step.rename is not None:
            return {self._new(step.rename, place): outputs.get("answer") or next(iter(outputs.values()))}
        return {self._new(name, place): kind for name, kind in outputs.items()}

    def _new(self, name: str, place: str) -> str:
        """Note a name that a step writes; raises `PlacedError` for a question's own."""
        if name in QUESTION_FIELDS:
            raise PlacedError(place, f"{name} is a field of the question: choose another name")
        self._names.add(name)
        return name

    def _each(self, step: EachStep, place: str, fields: Kinds) -> Kinds:
        kind = _read(step.each, f"{place}.each", fields)
        if not kind.startswith("list["):
            raise PlacedError(f"{place}.each", f"{step.each} is {kind}, not a list: write it as {step.each}: list[str]")
        if step.most is None and kind != _OF_QUESTION_ALONE:
            raise PlacedError(f"{place}.each", f"the number of {step.each} is unknown: add `most`, such as most: 4")
        entry = "str" if kind == _OF_QUESTION_ALONE else kind.removeprefix("list[").removesuffix("]")
        outer_names = set(self._names)
        behind = self.after(step.do, f"{place}.do", {**fields, self._new(step.name, place): entry})
        self._names = outer_names | ({step.each} if step.keep is not None else set())
        if step.keep is not None:
            _check_condition(step.keep, f"{place}.keep", behind)
        return {}

    def _all(self, step: AllStep, place: str, fields: Kinds) -> Kinds:
        outer_names, writers = self._names, dict[str, int]()
        kinds: Kinds = {}
        for position, branch in enumerate(step.all):
            branch_place = f"{place}.all.{position}"
            self._names = set()
            behind = self.after(branch, branch_place, fields)
            if step.combine is not None and "answer" not in self._names:
                raise PlacedError(branch_place, "has no answer to combine: write `answer` in this branch")
            for name in self._names if step.combine is None else ():
                if name in writers:
                    raise PlacedError(
                        branch_place,
                        f"{name} is also written by branch {writers[name]}: rename one with `as`, or combine the "
                        "branches",
                    )
                writers[name] = position
                kinds |= {name: behind[name]} if name in behind else {}
        kinds = kinds if step.combine is None else {"answer": "int", "rationale": "str"}
        self._names = outer_names | kinds.keys()
        return kinds


def added_lists(steps: Steps) -> Kinds:
    """Return the lists that steps, at any depth, add to, with their types; each is empty at first."""
    lists: dict[str, Any] = {}
    for step in steps:
        if (name := getattr(step, "add", None)) is not None:
            lists[name] = _OF_QUESTION_ALONE if isinstance(step, RetrieveStep) else "list[str]"
        for branch in step.branches.values():
            lists |= added_lists(branch)
    return lists


def _read(name: str, place: str, fields: Kinds) -> str:
    """Return the type of a field; raises `PlacedError` if it is not there."""
    if name in fields:
        return fields[name]
    suggestion = nearest(name, list(fields))
    advice = f"did you mean {suggestion}? " if suggestion else ""
    advice += "put `retrieve` before it; " if name == PASSAGES else ""
    raise PlacedError(place, f"no step before it always writes {name}: {advice}the fields here are {', '.join(fields)}")


def _check_condition(name: str, place: str, fields: Kinds) -> None:
    """Raise `PlacedError` unless a field may be true or false, or empty."""
    kind = _read(name, place, fields)
    if kind != "bool" and not kind.startswith("list[") and name not in ("answer", "context"):
        raise PlacedError(place, f"{name} is {kind}, and a condition needs a bool: write it as {name}: bool")
