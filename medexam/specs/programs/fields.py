"""Which fields the steps of a program read and write: what is missing, or written twice, is refused with its place."""

from collections.abc import Mapping

from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.own import OwnSpec
from medexam.specs.programs.steps import (
    PASSAGES,
    QUESTION_FIELDS,
    AllStep,
    AskingStep,
    AskStep,
    Condition,
    ConditionStep,
    DropStep,
    EachStep,
    Limit,
    RepeatStep,
    RetrieveStep,
    Steps,
    StepSpec,
    walk_steps,
)
from medexam.specs.validation import PlacedError
from medexam.text import nearest

Types = dict[str, str]
"""Name of each field -> its type, as a signature writes it."""
VOTE_FIELDS: Types = {"agreement": "float", "tied": "bool"}
"""What a vote writes beside its answer: the share of the votes that it has, and whether another has as many."""
_HITS = "list[passage]"


def check_fields(steps: Steps, programs: Mapping[str, ProgramSpec]) -> dict[str, Types]:
    """Return the fields before each step that asks, by its place; `programs` are what steps ask, by place.

    Raises `PlacedError` for a field that nothing wrote before, a condition that is always true, two writers of one name
    beside each other, and steps that give no `answer`.
    """
    check = _Check(programs)
    if "answer" not in check.after(steps, "steps", dict(QUESTION_FIELDS)):
        raise PlacedError("steps", "the steps may end without an answer: end with a step that always writes `answer`")
    return check.before


def added_lists(steps: Steps) -> Types:
    """Return the lists that steps, at any depth, add to, with their types; each is empty at first."""
    adding = [(step, getattr(step, "add", None)) for _, step in walk_steps(steps)]
    return {name: _HITS if isinstance(step, RetrieveStep) else "list[str]" for step, name in adding if name is not None}


class _Check:
    def __init__(self, programs: Mapping[str, ProgramSpec]) -> None:
        self._programs = programs
        self.before: dict[str, Types] = {}
        self._names: set[str] = set()
        """Names that were written since the innermost branch began."""

    def after(self, steps: Steps, place: str, fields: Types) -> Types:
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

    def _writes(self, step: StepSpec, place: str, fields: Types) -> Types:
        """Return the fields that a step surely writes."""
        match step:
            case AskingStep():
                return self._asked(step, place, fields)
            case RetrieveStep():
                _read(step.retrieve, f"{place}.retrieve", fields, "str", "list[str]")
                return {} if step.add else {self._new(step.rename or PASSAGES, place): _HITS}
            case DropStep():
                _read(step.drop, f"{place}.drop", fields, "int", "list[int]")
            case EachStep():
                return self._each(step, place, fields)
            case RepeatStep():
                behind = self.after(step.do, f"{place}.do", fields)
                _check_condition(step.until, f"{place}.until", behind)
                _check_condition(step.as_long_as, f"{place}.while", behind)
                return behind
            case ConditionStep():
                _check_condition(getattr(step, step.step), f"{place}.{step.step}", fields)
                behind = self.after(step.do, f"{place}.do", fields)
                others = {} if step.otherwise is None else self.after(step.otherwise, f"{place}.else", fields)
                return {name: kind for name, kind in others.items() if name in behind}
            case AllStep():
                return self._all(step, place, fields)
        return {}

    def _asked(self, step: AskingStep, place: str, fields: Types) -> Types:
        program = self._programs[place]
        self.before[place] = fields
        if isinstance(step, AskStep):
            for name in step.signature.inputs:
                _read(name, f"{place}.ask", fields)
            if step.orders is not None and (others := [name for name in step.texts if name != PASSAGES]):
                raise PlacedError(
                    f"{place}.orders",
                    f"{', '.join(others)} may name options by number, and other orders change these numbers: leave "
                    "orders out, or read only the question and its passages",
                )
            outputs = dict(step.signature.outputs)
        else:
            reasons = getattr(program, "reasons", False) or isinstance(program, OwnSpec)
            outputs = {"answer": "int", **({"rationale": "str"} if reasons else {})}
        if (step.samples is not None or step.orders is not None) and "answer" not in outputs:
            name = "orders" if step.samples is None else "samples"
            raise PlacedError(f"{place}.{name}", "they vote on `answer`, which the step does not write: leave it out")
        votes = VOTE_FIELDS if step.samples is not None or step.orders is not None else {}
        if step.rename is not None:
            outputs = {step.rename: outputs.get("answer") or next(iter(outputs.values()))}
        return (
            dict(votes) if step.add is not None else {self._new(name, place): outputs[name] for name in outputs} | votes
        )

    def _new(self, name: str, place: str) -> str:
        if name in QUESTION_FIELDS:
            raise PlacedError(place, f"{name} is a field of the question: choose another name")
        self._names.add(name)
        return name

    def _each(self, step: EachStep, place: str, fields: Types) -> Types:
        kind = "list[option]" if step.each == "options" else _read(step.each, f"{place}.each", fields)
        if not kind.startswith("list["):
            raise PlacedError(f"{place}.each", f"{step.each} is {kind}, not a list: write it as {step.each}: list[str]")
        if step.most is None and kind not in (_HITS, "list[option]"):
            raise PlacedError(f"{place}.each", f"the number of {step.each} is unknown: add `most`, such as most: 4")
        entry = "str" if kind in (_HITS, "list[option]") else kind.removeprefix("list[").removesuffix("]")
        outer_names = set(self._names)
        behind = self.after(step.do, f"{place}.do", {**fields, self._new(step.name, place): entry})
        self._names = outer_names | ({step.each} if step.keep is not None else set())
        _check_condition(step.keep, f"{place}.keep", behind)
        return {}

    def _all(self, step: AllStep, place: str, fields: Types) -> Types:
        outer_names, writers = self._names, dict[str, int]()
        kinds: Types = {}
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
        kinds = kinds if step.combine is None else {"answer": "int", "rationale": "str", **VOTE_FIELDS}
        self._names = outer_names | (kinds.keys() - VOTE_FIELDS.keys())
        return kinds


def _read(name: str, place: str, fields: Types, *kinds: str) -> str:
    """Return the type of a field; raises `PlacedError` if it is not there, or is none of `kinds`."""
    if name not in fields:
        suggestion = nearest(name, list(fields))
        advice = f"did you mean {suggestion}? " if suggestion else ""
        advice += "put `retrieve` before it; " if name == PASSAGES else ""
        raise PlacedError(
            place, f"no step before it always writes {name}: {advice}the fields here are {', '.join(fields)}"
        )
    if kinds and fields[name] not in kinds:
        raise PlacedError(place, f"{name} is {fields[name]}: name a field that is {' or '.join(kinds)}")
    return fields[name]


def _check_condition(condition: Condition | None, place: str, fields: Types) -> None:
    """Raise `PlacedError` unless a field may be true or false, or empty, or is a number that is compared."""
    if isinstance(condition, Limit):
        _read(condition.field, place, fields, "float", "int")
        return
    kind = "bool" if condition is None else _read(condition, place, fields)
    if kind != "bool" and not kind.startswith("list[") and condition not in ("answer", "context"):
        raise PlacedError(
            place,
            f"{condition} is {kind}, and a condition needs a bool: write it as {condition}: bool, or compare a "
            "number: {field: " + str(condition) + ", below: 0.5}",
        )
