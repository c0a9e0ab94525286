"""Optimized programs on disk: DSPy's own state of a program as JSON, without pickle.

`program.json` holds the instructions and demonstrations of each predictor. `dspy.Module.save` writes it, for a module
of the user's own as that module's state, so that its own `load` reads it. What DSPy saved is read too. Everything in a
file is checked before it is used.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import dspy
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from medexam.errors import SpecError
from medexam.inputs import UnreadableError, read_json
from medexam.programs.base import AskingProgram, ExamProgram, shown_of
from medexam.programs.nearest import DemonstrationFinder, WithNearest
from medexam.questions import Language, Question
from medexam.specs import ProgramSpec
from medexam.specs.programs.own import MODULE

PROGRAM = "program.json"
_CARD = "medexam"
_NEAREST = "nearest"
_OWN = "module"
"""What the user's module is called in a program, and its predictors' names begin with in identities."""


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


Loaded = TypeVar("Loaded", bound=AskingProgram)
Nearest = Callable[[Sequence[dspy.Example], int, str], DemonstrationFinder]
"""Of demonstrations, how many are shown and an encoder: what chooses those of a question."""


def load_program(
    program: Loaded, spec: ProgramSpec, language: Language, nearest: Nearest | None = None
) -> Loaded | WithNearest:
    """Load the instructions and demonstrations of `spec.loads` into `program`.

    `nearest` is needed where the demonstrations are chosen for each question.

    Raises `SpecError` if there is no program, it is damaged, or it is not one of this kind, form and language.
    """
    assert spec.loads is not None  # noqa: S101 - the caller has looked
    path = program_file(spec.loads)
    state = read_state(spec.loads)
    with _naming_damage(path):
        card = _card_of(state)
        parts = predictor_states(state, of_module=False)
    for name, entry in _card(spec, language).items():
        if card and card.get(name) != entry:
            raise SpecError(
                f"{path} holds a program whose {name} is {card.get(name)!r}, and the spec's is {entry!r}; "
                "run it with the spec that it was optimized from, or optimize this one"
            )
    nearest_card = card.get(_NEAREST)
    prefix = "program." if nearest_card else ""
    # A module of the user's own saves its state without this package, and so without its place in the program.
    predictors = {prefix + name.removeprefix(f"{_OWN}."): predictor for name, predictor in program.named_predictors()}
    if len(parts) == len(predictors) == 1 and not nearest_card:
        parts = dict(zip(predictors, parts.values(), strict=True))
    if parts.keys() != predictors.keys():
        raise SpecError(
            f"{path} holds predictors {sorted(parts)}, and the spec's program has {sorted(predictors)}; they are "
            "different programs"
        )
    with _naming_damage(path):
        for name, predictor in predictors.items():
            predictor_state, signature = parts[name], predictor.signature
            if len(predictor_state["signature"]["fields"]) != len(signature.fields):
                raise SpecError(f"{path}: the signature of {name} is not that of the spec's program")
            predictor.signature = (
                signature.with_instructions(predictor_state["signature"]["instructions"])
                if card
                # What DSPy saved may describe fields in other words than the code of now.
                else signature.load_state(predictor_state["signature"])
            )
            read_example = _example if isinstance(program, ExamProgram) else partial(typed_example, predictor.signature)
            predictor.demos = [read_example(demo) for demo in predictor_state["demos"]]
    if not nearest_card or not isinstance(program, ExamProgram):
        return program
    if nearest is None:
        raise ValueError("a program that chooses its demonstrations needs a selector")
    pool = program.predictors()[0].demos
    return WithNearest(program, nearest(pool, nearest_card["k"], nearest_card["encoder"]))


def program_file(path: Path) -> Path:
    """Return the `program.json` that a folder holds, or the file itself."""
    return path / PROGRAM if path.is_dir() else path


def read_state(path: Path) -> dict[str, Any]:
    """Read a program's state by predictor, with `metadata`; raises `SpecError` if none can be read."""
    file = program_file(path)
    try:
        state = read_json(file)
    except FileNotFoundError:
        raise SpecError(
            f"program.load: no {PROGRAM} at {path}: give the folder that medexam optimize made, or the JSON file of "
            "DSPy's module.save (save_program=True pickles code, which is not loaded)"
        ) from None
    except (OSError, UnreadableError) as error:
        raise SpecError(f"program.load: cannot read {file}: {error}") from None
    if not isinstance(state, dict) or not isinstance(state.get("metadata"), dict):
        raise SpecError(f"program.load: {file} is no program of DSPy's (a JSON object with its metadata)")
    return state


def _card_of(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what `save_program` wrote beside a state; empty for one that DSPy saved."""
    card = state["metadata"].get(_CARD, {})
    if not isinstance(card, Mapping):
        raise TypeError("its card is no mapping")
    return card


def predictor_states(state: Mapping[str, Any], *, of_module: bool) -> dict[str, Any]:
    """Return the state of each predictor by its name in the program; `of_module`: of one of the user's own.

    A module that is one predictor has its state at the top.
    """
    is_single = "signature" in state and "demos" in state
    parts = {"": state} if is_single else {name: part for name, part in state.items() if name != "metadata"}
    if not of_module:
        return parts
    return {f"{_OWN}.{name}" if name else _OWN: part for name, part in parts.items()}


def loaded_words(path: Path, *, of_module: bool = False) -> dict[str, Any]:
    """Load everything at `path` that a prompt depends on, for a run's identity; `of_module`: of a module of one's own.

    `predictors`: instructions and demonstrations by predictor; `nearest`: how many demonstrations a question is shown
    and by which encoder they are chosen, None where all are shown. Raises `SpecError` where it cannot be read.
    """
    state = read_state(path)
    with _naming_damage(program_file(path)):
        card = _card_of(state)
        is_raw = of_module or card.get("kind") == MODULE
        predictors = {
            name: {
                "instructions": part["signature"]["instructions"],
                "demos": part["demos"] if is_raw else [_shown_json(_example(demo)) for demo in part["demos"]],
                **({} if card else {"fields": part["signature"]["fields"]}),
            }
            for name, part in predictor_states(state, of_module=of_module).items()
        }
        nearest_card = card.get(_NEAREST)
        nearest = {"k": nearest_card["k"], "encoder": nearest_card["encoder"]} if nearest_card else None
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
    return dspy.Example(**shown_of({**demo, "question": question})).with_inputs("question")


def typed_example(signature: type[dspy.Signature], demo: Mapping[str, Any]) -> dspy.Example:
    """Return a demonstration with the types of the signature's fields."""
    fields = {name: field for name, field in signature.fields.items() if name in demo}
    values = {name: TypeAdapter(field.annotation).validate_python(demo[name]) for name, field in fields.items()}
    return dspy.Example(**values).with_inputs(*(name for name in signature.input_fields if name in values))


def _shown_json(demo: dspy.Example) -> dict[str, Any]:
    """Return what a prompt shows of a demonstration, and the key by which a question is known to be its own."""
    question = demo.question.model_dump(mode="json", include={"key", "stem", "options", "context"}, exclude_none=True)
    return {**shown_of(demo), "question": question}


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    """Turn what a damaged program breaks into a `SpecError`."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError, ValidationError) as error:
        raise SpecError(f"{path} is damaged ({type(error).__name__}: {_first_line(error)}); optimize again") from None


def _card(spec: ProgramSpec, language: Language) -> dict[str, Any]:
    return {**(spec.asking.saved_as or {"kind": spec.kind}), "language": language}


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else "no detail"
