"""Programs and models in Python, as DSPy takes them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medexam.errors import SpecError
from medexam.event_loop import background_loop
from medexam.experiments.evaluate.identity import program_part
from medexam.programs import build_program as build_module
from medexam.programs.kept import Draws
from medexam.programs.lm import EngineLM, build_lm
from medexam.questions import Language
from medexam.serve import build_engine
from medexam.specs import CellSpec, EngineNeeds, ModelSpec, ProgramSpec
from medexam.specs.base import validate

if TYPE_CHECKING:
    import dspy


def build_program(
    program: "str | Mapping[str, Any] | ProgramSpec | dspy.Module" = "zero_shot",
    *,
    language: Language = "en",
    **settings: Any,
) -> "dspy.Module":
    """Build a strategy as a DSPy module, called with `question=`, a `Question`; `answer` is an option's number or None.

    `program` may be a module of your own, which is called with what its `forward` takes of a question.
    `settings` are fields of the program's spec, such as `answer_format="guided"`. The model is the one of
    `dspy.configure`. Raises `SpecError` for a setting that does not exist, and for a program that looks up passages:
    `run` carries those out.
    """
    if isinstance(program, ProgramSpec):
        fields = program.model_dump()
    elif isinstance(program, str):
        fields = {"kind": program}
    else:
        fields = dict(program) if isinstance(program, Mapping) else program_part(program)
    cell = validate(CellSpec, {"name": "program", "program": {**fields, **settings}})
    try:
        return build_module(cell.program, language)
    except ValueError as error:
        raise SpecError(f"program {cell.program.kind}: {error}; `medexam.run` carries it out") from None


def lm(model: str | Mapping[str, Any] | ModelSpec = "embedded", **settings: Any) -> EngineLM:
    """Build a model as a `dspy.LM`, ready for `dspy.configure(lm=...)`, with `choose` and `score` beside it.

    `model` is an engine's name (`embedded`, `vllm`, `litellm`, `scripted`) or the `model` part of a spec, `settings`
    are its fields: `medexam.lm("vllm", endpoints="http://gpu1:8000/v1", temperature=0.7)`. Equal requests at a
    temperature above 0 are drawn one after the other: the first under the model's seed, each other under the next one.
    Raises `EngineError` if it cannot be loaded or reached.
    """
    part = model.model_dump(exclude_unset=True) if isinstance(model, ModelSpec) else model
    fields = {"engine": part} if isinstance(part, str) else dict(part)
    spec = validate(ModelSpec, {**fields, **settings})
    return build_lm(spec, background_loop().run(build_engine(spec, EngineNeeds(tools=True))), Draws())
