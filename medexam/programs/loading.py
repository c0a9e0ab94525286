"""Programs that were optimized, saved and loaded: one JSON file in the form of DSPy.

It holds the instructions and the demonstrations of each predictor. `dspy.Module.save` writes it, for a module
of the user's own as that module's state, so that its own `load` reads it. What DSPy saved is read too. Everything in a
file is checked before it is used.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from medexam.errors import SpecError
from medexam.files import UnreadableError, read_json
from medexam.programs.base import AskingProgram, ExamProgram
from medexam.programs.wrapping import show_nearest
from medexam.questions import Language, Question
from medexam.specs import ProgramSpec

PROGRAM = "program.json"
_CARD = "medexam"
_NEAREST = "nearest"
Nearest = Callable[[Sequence[dspy.Example], int, str], Any]
"""Of demonstrations, how many are shown and an encoder: what chooses those of a question."""


def save_program(program: AskingProgram, path: Path, spec: ProgramSpec, language: Language) -> None:
    """Write `program.json`, with what `load_program` checks; raises `OSError` where that fails."""
    program_copy = program.deepcopy()
    for predictor in program_copy.predictors():
        predictor.demos = [dspy.Example(**to_jsonable_python(program.shown(demo))) for demo in predictor.demos]
        predictor.traces, predictor.train, predictor.lm = [], [], None
    try:
        program_copy.stated.save(str(path))
    except RuntimeError as error:
        if isinstance(error.__context__, OSError):  # DSPy takes a full disk for an object that JSON cannot hold
            raise error.__context__ from None
        raise
    state = json.loads(path.read_text(encoding="utf-8"))
    card: Any = {**spec.asking.saved_as, "language": language}
    if (finder := program.nearest) is not None:
        card[_NEAREST] = {"k": finder.k, "encoder": finder.encoder}
    state["metadata"][_CARD] = card
    if spec.flow is not None:
        states = predictor_states(state).values()
        state = {**dict(zip(_predictors(program, spec), states, strict=True)), "metadata": state["metadata"]}
    path.write_text(json.dumps(state, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def load_program(program: Any, spec: ProgramSpec, language: Language, nearest: Nearest | None = None) -> Any:
    """Load the instructions and demonstrations of `spec.loads` into `program`; return it, or what chooses its
    demonstrations by `nearest` for each question.

    Raises `SpecError` if there is no program, it is damaged, or it is not one of this kind, form and language.
    """
    assert spec.loads is not None  # noqa: S101 - the caller has looked
    with _reading(spec.loads) as (states, card, path):
        for name, entry in {**spec.asking.saved_as, "language": language}.items():
            if card and card.get(name) != entry:
                raise SpecError(
                    f"{path} holds a program whose {name} is {card.get(name)!r}, and the spec's is {entry!r}; "
                    "run it with the spec that it was optimized from, or optimize this one"
                )
        predictors = _predictors(program, spec)
        if len(states) == len(predictors) == 1:
            states = dict(zip(predictors, states.values(), strict=True))
        if states.keys() != predictors.keys():
            raise SpecError(
                f"{path} holds predictors {sorted(states)}, and the spec's program has {sorted(predictors)}; they are "
                "different programs"
            )
        for name, predictor in predictors.items():
            stored, signature = states[name]["signature"], predictor.signature
            if len(stored["fields"]) != len(signature.fields):
                raise SpecError(f"{path}: the signature of {name} is not that of the spec's program")
            # What DSPy saved may describe fields in other words than the code of now.
            restated = signature.with_instructions(stored["instructions"])
            predictor.signature = restated if card else signature.load_state(stored)
            predictor.demos = [_example(demo) or typed_example(signature, demo) for demo in states[name]["demos"]]
    if _NEAREST not in card:
        return program
    if nearest is None:
        raise ValueError("a program that chooses its demonstrations needs a selector")
    return show_nearest(program, nearest(program.predictors()[0].demos, card[_NEAREST]["k"], card[_NEAREST]["encoder"]))


def _predictors(program: Any, spec: ProgramSpec) -> dict[str, Any]:
    """Return each predictor by its name in files: in a module of the user's own as that calls it, else after its step,
    as a module of DSPy's with an attribute for each step calls it.
    """
    sole = None if spec.flow is None else spec.flow.sole
    step, inner = ("", r"^module\.") if sole is None else (f"{sole.name}.", r"^(program\.)*(module\.?|respond)?")
    return {(step + re.sub(inner, "", name)).rstrip("."): part for name, part in program.named_predictors()}


@contextmanager
def _reading(place: Path) -> Iterator[tuple[dict[str, Any], Mapping[str, Any], Path]]:
    """Read a program's state by predictor, and what `save_program` wrote beside it, empty for one that DSPy saved.

    Raises `SpecError` if none can be read, and for what a damaged one breaks in the block.
    """
    path = place / PROGRAM if place.is_dir() else place
    try:
        state = read_json(path)
    except FileNotFoundError:
        raise SpecError(
            f"program.load: no {PROGRAM} at {place}: give the folder that medexam optimize made, or the JSON file of "
            "DSPy's module.save (save_program=True pickles code, which is not loaded)"
        ) from None
    except (OSError, UnreadableError) as error:
        raise SpecError(f"program.load: cannot read {path}: {error}") from None
    try:
        yield predictor_states(state), state["metadata"].get(_CARD, {}), path
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        detail = next(iter(str(error).splitlines()), "no detail")
        raise SpecError(
            f"program.load: {path} is no program of DSPy's, or is damaged ({type(error).__name__}: {detail})"
        ) from None


def predictor_states(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of each predictor by its name; a module that is one predictor has its state at the top."""
    is_single = "signature" in state and "demos" in state
    return {"": state} if is_single else {name: part for name, part in state.items() if name != "metadata"}


def loaded_words(path: Path) -> dict[str, Any]:
    """Load everything at `path` that a prompt depends on, for a run's identity.

    `predictors`: instructions and demonstrations by predictor; `nearest`: how many demonstrations a question is shown
    and by which encoder they are chosen, None where all are shown. Raises `SpecError` where it cannot be read.
    """
    with _reading(path) as (states, card, _):
        predictors = {
            name: {
                "instructions": part["signature"]["instructions"],
                "demos": [_shown_json(demo) for demo in part["demos"]],
                **({} if card else {"fields": part["signature"]["fields"]}),
            }
            for name, part in states.items()
        }
    return {"predictors": predictors, "nearest": card.get(_NEAREST)}


def demonstrations(program: AskingProgram) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each demonstration with the name of the predictor that shows it."""
    for name, predictor in program.named_predictors():
        for demo in predictor.demos:
            yield name, program.shown(demo)


def _example(demo: Mapping[str, Any]) -> dspy.Example | None:
    """Return the demonstration of an exam's question; None of any other."""
    if not isinstance(demo.get("question"), Mapping):
        return None
    question = Question.model_validate(demo["question"])
    if demo.get("answer") is not None and demo["answer"] not in question.option_numbers:
        raise ValueError(f"{question.key}: the answer {demo['answer']!r} is not an option")
    if not isinstance(demo.get("rationale") or "", str):
        raise TypeError(f"{question.key}: the rationale is not a text")
    return dspy.Example(**ExamProgram.shown({**demo, "question": question})).with_inputs("question")


def typed_example(signature: type[dspy.Signature], demo: Mapping[str, Any]) -> dspy.Example:
    """Return a demonstration with the types of the signature's fields."""
    fields = {name: field for name, field in signature.fields.items() if name in demo}
    values = {name: TypeAdapter(field.annotation).validate_python(demo[name]) for name, field in fields.items()}
    return dspy.Example(**values).with_inputs(*(name for name in signature.input_fields if name in values))


def _shown_json(demo: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a prompt shows of a demonstration, and the key by which a question is known to be its own."""
    if (example := _example(demo)) is None:
        return dict(demo)
    fields = {"key", "stem", "options", "context"}
    question = example.question.model_dump(mode="json", include=fields, exclude_none=True)
    return {**ExamProgram.shown(example), "question": question}
