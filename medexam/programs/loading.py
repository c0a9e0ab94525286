"""Programs that were optimized, saved and loaded: one JSON file in the form of DSPy.

It holds the instructions and the demonstrations of each predictor. `dspy.Module.save` writes it, for a module
of the user's own as that module's state, so that its own `load` reads it. What DSPy saved is read too. Everything in a
file is checked before it is used.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import dspy
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from medexam.errors import SpecError
from medexam.inputs import UnreadableError, read_json
from medexam.programs.base import AskingProgram, ExamProgram
from medexam.programs.wrapping import WithNearest
from medexam.questions import Language, Question
from medexam.specs import ProgramSpec
from medexam.specs.programs.own import MODULE

PROGRAM = "program.json"
_CARD = "medexam"
_NEAREST = "nearest"
_OWN = "module"
"""What the user's module is called in a program, and its predictors' names begin with in identities."""
Loaded = TypeVar("Loaded", bound=AskingProgram)
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
    card = _card(spec, language)
    if isinstance(program, WithNearest):
        card[_NEAREST] = {"k": program.finder.k, "encoder": program.finder.encoder}
    state["metadata"][_CARD] = card
    path.write_text(json.dumps(state, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def load_program(
    program: Loaded, spec: ProgramSpec, language: Language, nearest: Nearest | None = None
) -> Loaded | WithNearest:
    """Load the instructions and demonstrations of `spec.loads` into `program`.

    `nearest` is needed where the demonstrations are chosen for each question.

    Raises `SpecError` if there is no program, it is damaged, or it is not one of this kind, form and language.
    """
    assert spec.loads is not None  # noqa: S101 - the caller has looked
    with _reading_state(spec.loads) as (state, card, path):
        parts = predictor_states(state)
        for name, entry in _card(spec, language).items():
            if card and card.get(name) != entry:
                raise SpecError(
                    f"{path} holds a program whose {name} is {card.get(name)!r}, and the spec's is {entry!r}; "
                    "run it with the spec that it was optimized from, or optimize this one"
                )
        prefix = "program." if _NEAREST in card else ""
        # A module of the user's own saves its state without this package, and so without its place in the program.
        predictors = {prefix + name.removeprefix(f"{_OWN}."): part for name, part in program.named_predictors()}
        if len(parts) == len(predictors) == 1 and not prefix:
            parts = dict(zip(predictors, parts.values(), strict=True))
        if parts.keys() != predictors.keys():
            raise SpecError(
                f"{path} holds predictors {sorted(parts)}, and the spec's program has {sorted(predictors)}; they are "
                "different programs"
            )
        for name, predictor in predictors.items():
            stored, signature = parts[name]["signature"], predictor.signature
            if len(stored["fields"]) != len(signature.fields):
                raise SpecError(f"{path}: the signature of {name} is not that of the spec's program")
            # What DSPy saved may describe fields in other words than the code of now.
            words = stored["instructions"]
            predictor.signature = signature.with_instructions(words) if card else signature.load_state(stored)
            predictor.demos = [
                _example(demo) if isinstance(program, ExamProgram) else typed_example(predictor.signature, demo)
                for demo in parts[name]["demos"]
            ]
    if not prefix or not isinstance(program, ExamProgram):
        return program
    if nearest is None:
        raise ValueError("a program that chooses its demonstrations needs a selector")
    return WithNearest(program, nearest(program.predictors()[0].demos, card[_NEAREST]["k"], card[_NEAREST]["encoder"]))


@contextmanager
def _reading_state(place: Path) -> Iterator[tuple[dict[str, Any], Mapping[str, Any], Path]]:
    """Read a program's state by predictor, with `metadata`, and what `save_program` wrote beside it, empty for one that
    DSPy saved.

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
    if not isinstance(state, dict) or not isinstance(state.get("metadata"), dict):
        raise SpecError(f"program.load: {path} is no program of DSPy's (a JSON object with its metadata)")
    try:
        yield state, {**state["metadata"].get(_CARD, {})}, path
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        detail = next(iter(str(error).splitlines()), "no detail")
        raise SpecError(f"{path} is damaged ({type(error).__name__}: {detail}); optimize again") from None


def predictor_states(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of each predictor by its name; a module that is one predictor has its state at the top."""
    is_single = "signature" in state and "demos" in state
    return {"": state} if is_single else {name: part for name, part in state.items() if name != "metadata"}


def loaded_words(path: Path, *, of_module: bool = False) -> dict[str, Any]:
    """Load everything at `path` that a prompt depends on, for a run's identity; `of_module`: of a module of one's own.

    `predictors`: instructions and demonstrations by predictor; `nearest`: how many demonstrations a question is shown
    and by which encoder they are chosen, None where all are shown. Raises `SpecError` where it cannot be read.
    """
    with _reading_state(path) as (state, card, _):
        is_raw = of_module or card.get("kind") == MODULE
        predictors = {
            f"{_OWN}.{name}".rstrip(".") if of_module else name: {
                "instructions": part["signature"]["instructions"],
                "demos": part["demos"] if is_raw else [_shown_json(_example(demo)) for demo in part["demos"]],
                **({} if card else {"fields": part["signature"]["fields"]}),
            }
            for name, part in predictor_states(state).items()
        }
        nearest = {name: card[_NEAREST][name] for name in ("k", "encoder")} if _NEAREST in card else None
    return {"predictors": predictors, "nearest": nearest}


def demonstrations(program: AskingProgram) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each demonstration with the name of the predictor that shows it."""
    for name, predictor in program.named_predictors():
        for demo in predictor.demos:
            yield name, program.shown(demo)


def _example(demo: Mapping[str, Any]) -> dspy.Example:
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


def _shown_json(demo: dspy.Example) -> dict[str, Any]:
    """Return what a prompt shows of a demonstration, and the key by which a question is known to be its own."""
    question = demo.question.model_dump(mode="json", include={"key", "stem", "options", "context"}, exclude_none=True)
    return {**ExamProgram.shown(demo), "question": question}


def _card(spec: ProgramSpec, language: Language) -> dict[str, Any]:
    return {**(spec.asking.saved_as or {"kind": spec.kind}), "language": language}
