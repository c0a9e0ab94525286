"""Which fields the steps of a program read and write: what is missing, or written twice, is refused with its place."""

from medexam.specs.base import PlacedError
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
from medexam.text import nearest

Types = dict[str, str]
"""Name of each field -> its type, as a signature writes it."""
VOTE_FIELDS: Types = {"agreement": "float", "tied": "bool"}
"""What a vote writes beside its answer: the share of the votes that it has, and whether another has as many."""
_HITS = "list[passage]"
_OPTIONS = "list[option]"


def check_fields(steps: Steps) -> dict[str, Types]:
    """Return the fields before each step that asks, by its place.

    Raises `PlacedError` for a field that nothing wrote before, a condition that is always true, two writers of one name
    beside each other, and steps that give no `answer`.
    """
    before: dict[str, Types] = {}
    if not _follow(steps, "steps", dict(QUESTION_FIELDS), before).get("answer"):
        raise PlacedError("steps", "the steps may end without an answer: end with a step that always writes `answer`")
    return before


def added_lists(steps: Steps) -> Types:
    """Return the lists that steps, at any depth, add to, with their types; each is empty at first."""
    adding = [(step, getattr(step, "add", None)) for _, step in walk_steps(steps)]
    return {name: _HITS if isinstance(step, RetrieveStep) else "list[str]" for step, name in adding if name is not None}


def _follow(steps: Steps, place: str, fields: Types, before: dict[str, Types]) -> Types:
    """Return the fields that steps write, without a type where they may leave one out."""
    lists, written = added_lists(steps), Types()
    if own := lists.keys() & QUESTION_FIELDS.keys():
        raise PlacedError(place, f"{', '.join(own)} is the question's own: add to a list with another name")
    fields = {**lists, **fields}
    for position, step in enumerate(steps):
        step_place = f"{place}.{position}"
        new = _writes(step, step_place, fields, before)
        if own := new.keys() & QUESTION_FIELDS.keys() - {"options"}:
            raise PlacedError(step_place, f"{', '.join(own)} is a field of the question: choose another name")
        if bad := next((name for name in lists if not new.get(name, "list[").startswith("list[")), None):
            raise PlacedError(step_place, f"{bad} is a list that steps add to: write another name")
        written |= {name: kind or written.get(name, "") for name, kind in new.items()}
        fields |= _sure(new)
    return written


def _sure(written: Types) -> Types:
    return {name: kind for name, kind in written.items() if kind}


def _writes(step: StepSpec, place: str, fields: Types, before: dict[str, Types]) -> Types:
    match step:
        case AskingStep():
            before[place] = fields
            return _ask(step, place, fields)
        case RetrieveStep():
            _read(step.retrieve, f"{place}.retrieve", fields, "str", "list[str]")
            return {} if step.add else {step.rename or PASSAGES: _HITS}
        case DropStep():
            _read(step.drop, f"{place}.drop", fields, "int", "list[int]")
        case EachStep():
            kind = _OPTIONS if step.each == "options" else _read(step.each, f"{place}.each", fields)
            if not kind.startswith("list["):
                raise PlacedError(f"{place}.each", f"{step.each} is {kind}: write it as {step.each}: list[str]")
            if step.most is None and kind not in (_HITS, _OPTIONS):
                raise PlacedError(f"{place}.each", f"the number of {step.each} is unknown: add `most`, such as most: 4")
            if step.name in QUESTION_FIELDS:
                raise PlacedError(place, f"{step.name} is a field of the question: choose another name")
            entry = "str" if kind in (_HITS, _OPTIONS) else kind.removeprefix("list[").removesuffix("]")
            inner = {**fields, step.name: entry}
            _check_condition(step.keep, f"{place}.keep", inner | _sure(_follow(step.do, f"{place}.do", inner, before)))
            return {step.each: kind} if step.keep is not None else {}
        case RepeatStep():
            written = _follow(step.do, f"{place}.do", fields, before)
            _check_condition(step.until, f"{place}.until", fields | _sure(written))
            _check_condition(step.as_long_as, f"{place}.while", fields | _sure(written))
            return written
        case ConditionStep():
            _check_condition(getattr(step, step.step), f"{place}.{step.step}", fields)
            then = _follow(step.do, f"{place}.do", fields, before)
            other = _follow(step.otherwise or (), f"{place}.else", fields, before)
            kinds = {name: [one.get(name) or fields.get(name, "") for one in (then, other)] for name in then | other}
            return {name: second if first else "" for name, (first, second) in kinds.items()}
        case AllStep():
            return _all(step, place, fields, before)
    return {}


def _ask(step: AskingStep, place: str, fields: Types) -> Types:
    for name in step.signature.inputs if isinstance(step, AskStep) else ():
        _read(name, f"{place}.ask", fields)
    others = [name for name in step.texts if name != PASSAGES] if isinstance(step, AskStep) else []
    if step.orders != "given" and others:
        raise PlacedError(
            f"{place}.orders",
            f"{', '.join(others)} may name options by number, and other orders change these numbers: leave orders out",
        )
    if step.votes and "answer" not in step.outputs:
        name = "orders" if step.samples == 1 else "samples"
        raise PlacedError(f"{place}.{name}", "they vote on `answer`, which the step does not write: leave it out")
    outputs = dict(step.outputs)
    if step.rename is not None:
        outputs = {step.rename: outputs.get("answer") or next(iter(outputs.values()))}
    return ({} if step.add is not None else outputs) | (VOTE_FIELDS if step.votes else {})


def _all(step: AllStep, place: str, fields: Types, before: dict[str, Types]) -> Types:
    writers: dict[str, int] = {}
    types: Types = {}
    for position, branch in enumerate(step.all):
        branch_place = f"{place}.all.{position}"
        new = _follow(branch, branch_place, fields, before)
        if step.combine is not None and "answer" not in new:
            raise PlacedError(branch_place, "has no answer to combine: write `answer` in this branch")
        if step.combine is None and (twice := sorted(new.keys() & writers.keys() - VOTE_FIELDS.keys())):
            raise PlacedError(
                branch_place,
                f"{twice[0]} is also written by branch {writers[twice[0]]}: rename one with `as`, or combine the "
                "branches",
            )
        writers |= dict.fromkeys(new, position)
        types |= new
    return types if step.combine is None else {"answer": "int", "rationale": "str", **VOTE_FIELDS}


def _read(name: str, place: str, fields: Types, *kinds: str) -> str:
    """Return the type of a field; raises `PlacedError` if it is not there, or is none of `kinds`."""
    if name not in fields:
        suggestion = nearest(name, list(fields))
        advice = f"did you mean {suggestion}? " if suggestion else ""
        advice = "put `retrieve` before it: " if name == PASSAGES else advice
        raise PlacedError(place, f"nothing before it writes {name}: {advice}the fields here are {', '.join(fields)}")
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
            place, f"{condition} is {kind}: write it as {condition}: bool, or compare a number by `below` or `above`"
        )
