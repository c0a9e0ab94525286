"""A DSPy module of the user's own as a program: called with a question's fields, its answer read as every other.

The module may ask as often as it likes. Every call is recorded, and an exception that it raises fails its question
alone. A module without `aforward` runs in a thread; its calls still travel in batches with everybody else's.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import is_dataclass
from functools import cache, partial
from types import MappingProxyType, SimpleNamespace
from typing import Any

import dspy
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from medexam.dspy_internals import dspy_errors
from medexam.errors import ProgramFaultError, SpecError
from medexam.plugins import load_object
from medexam.programs.base import AskingProgram, own_way
from medexam.programs.fields import Asked, Wanted, question_fields, wanted_fields
from medexam.programs.guided import OPTIONS, GuidedAdapter
from medexam.programs.kept import Calls, recorded_calls
from medexam.programs.lm import EngineLM, OnlyModel, held_models
from medexam.programs.module_faults import call_in_time, naming_faults
from medexam.programs.program_output import ProgramOutput
from medexam.programs.retrieving import PassageFinder, PassageSearch
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.signatures.choices import read_choice
from medexam.signatures.span_alignment import find_span
from medexam.specs.names import PROGRAMS
from medexam.specs.programs.own import ADAPTERS, ModuleSpec, OwnSpec

_MOST_THREADS = 512
"""Modules without `aforward` that run at the same time; each waits for a server most of its time."""
_FORM = (
    "name a class derived from dspy.Module, with a method such as forward(self, question: str) or "
    "aforward(self, question: str) that returns the answer"
)
"""What a program of one's own looks like."""


class _NoRetrieverError(BaseException):
    """A module looks up passages where the spec names none; no `Exception`, which ReAct would tell the model."""


class OwnProgram(AskingProgram):
    """A module with what it takes of a question; predictions are as those of the programs that ship."""

    def __init__(
        self,
        module: dspy.Module,
        spec: ModuleSpec,
        max_tokens: int | None,
        finder: PassageFinder | None,
        search: PassageSearch | None = None,
        more: Collection[str] = (),
    ) -> None:
        """Make the program: `max_tokens` is the model's own budget, `finder` finds a question's passages, `search`
        those of any text.

        Both are None where the spec looks up none. `more` are names of fields that it is called with beside a
        question's.

        Raises `SpecError` if the module takes something that no question has.
        """
        super().__init__(make_adapter(spec))
        self.module = module
        for lm in held_models(module):
            lm.callbacks = [OnlyModel()]
        self._timeout_s = spec.timeout_s
        self._max_tokens = spec.budget(max_tokens) or None
        self._finder = finder
        self._search = search
        self._field_types: Wanted = wanted_fields(module, spec.label, more)
        shipped = any(isinstance(part, AskingProgram) for _, part in module.named_sub_modules())
        if shipped and self._field_types.get("question") is inspect.Parameter.empty:
            # The programs that ship take the object, and a module hands on what it is given.
            self._field_types = {**self._field_types, "question": Question}
        if "passages" in self._field_types and finder is None and "passages" not in more:
            raise SpecError(f"program {spec.label} takes passages: set program.retriever")

    @property
    def stated(self) -> dspy.Module:
        """The user's module itself, so that DSPy loads its state without this package."""
        return self.module

    def calls_for(self, question: Any) -> int:  # noqa: ARG002
        """Count one for each of its predictors, or each of their guided outputs; how often it really asks is known
        when it has.
        """
        is_guided = isinstance(self.adapter, GuidedAdapter)
        counts = (len(predictor.signature.output_fields) if is_guided else 1 for predictor in self.module.predictors())
        return max(1, sum(counts))

    @property
    def may_ask_again(self) -> bool:
        """Whether a question may take more calls than `calls_for` counts, as only predictors of DSPy's do not."""
        return type(self.module) not in (dspy.Predict, dspy.ChainOfThought)

    def inputs_of(self, question: Asked) -> dict[str, Any]:
        """Return the fields that the module is called with for a question."""
        return question_fields(question, self._field_types, self._hits(question))

    async def answer(self, question: Asked) -> ProgramOutput:
        """Answer one question."""
        return await self.answer_with(question, MappingProxyType({}))

    async def answer_with(self, question: Asked, fields: Mapping[str, Any]) -> ProgramOutput:
        """Answer one question, given `fields` beside its own."""
        with own_way() as way:
            question = way.inputs.get("question", question)
            hits = self._hits(question)
            inputs = question_fields(question, self._field_types, hits, fields)
            numbers = question.option_numbers if isinstance(question, Question) else ()
            settings = dspy.context(**self._settings(way.lm or dspy.settings.lm, way.seeds_later), **{OPTIONS: numbers})
            try:
                with recorded_calls() as calls, settings, naming_faults(self.module) as outputs:
                    outputs.append(await self._call(inputs, calls))
            except _NoRetrieverError:
                raise SpecError("the module looks up passages: set program.retriever") from None
        return self._prediction(question, hits, outputs, calls)

    def _hits(self, question: Asked) -> list[Hit]:
        return list(self._finder.find(question)) if self._finder else []

    async def _call(self, inputs: dict[str, Any], calls: Calls) -> Any:
        module = self.module
        if self._timeout_s is None:
            return await call_module(module, inputs)

        def call() -> Any:
            return asyncio.run(module.acall(**inputs)) if awaits_itself(module) else module(**inputs)

        try:
            return await call_in_time(call, self._timeout_s, type(module))
        finally:
            calls.over = True

    def _settings(self, lm: dspy.BaseLM | None, seeds_later: int) -> dict[str, Any]:
        """Return DSPy's settings under which the module is called."""
        # `dspy.Refine` and `dspy.BestOfN` write into the trace, which is None in bulk.
        trace = [] if dspy.settings.trace is None else dspy.settings.trace
        settings: dict[str, Any] = {"rm": self._retrieve, "trace": trace, "adapter": self.adapter}
        if lm is None:
            return settings
        if hasattr(self.adapter, "extraction_model"):
            settings["adapter"] = copy(self.adapter)
            settings["adapter"].extraction_model = lm.copy(max_tokens=self._max_tokens)
        later = {"seed": (lm.kwargs.get("seed") or 0) + seeds_later} if seeds_later else {}
        settings["lm"] = lm.copy(max_tokens=self._max_tokens, **later)
        return {**settings, "usage_tracker": OnlyModel(lm.model)}

    def _retrieve(self, query: str, k: int) -> list[SimpleNamespace]:
        """Look up passages for `dspy.Retrieve`."""
        if self._search is None:
            raise _NoRetrieverError
        return [SimpleNamespace(long_text=hit.passage.text) for hit in self._search.search([query], k)[0]]

    def _prediction(self, question: Asked, hits: list[Hit], outputs: list[Any], calls: Calls) -> ProgramOutput:
        """Build a program's prediction of what the module returned, or of nothing where a reply could not be parsed."""
        output = _as_prediction(outputs[0]) if outputs else None
        if outputs and output is None and calls.fault is not None:
            # `dspy.BestOfN` and the user's own code may catch it; no answer for want of a server is a failure.
            with dspy_errors(getattr(dspy.settings.lm, "model", "")):
                raise calls.fault
        answer, rationale, others = output, None, {}
        if isinstance(output, dspy.Prediction):
            if "answer" not in output:
                raise ProgramFaultError("KeyError", f"the module returned {', '.join(output.keys())} and no 'answer'")
            others = dict(output.items())
            others.pop("generation", None)  # of a program that ships: the call that is stored
            answer, *reasons = (others.pop(name, None) for name in ("answer", "rationale", "reasoning"))
            rationale = reasons[0] or reasons[1]
        fields: dict[str, Any] = {
            "rationale": None if rationale is None else str(rationale),
            "outputs": from_json(to_json(others, inf_nan_mode="null", fallback=str)) or None,
        }
        if self._finder is not None:
            fields |= {"hits": hits, "passages_cut": 0}
        if isinstance(question, Question):
            return ProgramOutput(answer=read_choice(answer, question), **fields)
        text = None if answer is None else str(answer).strip() or None
        span = find_span(question.context, text) if text and question.context else None
        if span is not None:
            text = question.context[span.start : span.end]
            fields |= {"span": (span.start, span.end), "alignment": span.alignment}
        return ProgramOutput(text=text, **fields)


def _as_prediction(output: Any) -> Any:
    """Return named outputs in other forms, such as a dictionary, as DSPy's; anything else is itself."""
    if isinstance(output, BaseModel):
        output = dict(output)
    elif is_dataclass(output) and not isinstance(output, type):
        output = vars(output)
    is_mapping = isinstance(output, Mapping) and all(isinstance(name, str) for name in output)
    return dspy.Prediction(**output) if is_mapping else output


def make_module(spec: OwnSpec) -> dspy.Module:
    """Make the module of the user's code; raises `SpecError` if it makes none."""
    module = load_object(spec.kind, PROGRAMS)
    if isinstance(module, dspy.Module):
        module = module.deepcopy()
    elif callable(module):
        try:
            module = module(**spec.args)
        except Exception as error:
            raise SpecError(f"program {spec.kind}: making it failed: {type(error).__name__}: {error}") from error
    if not isinstance(module, dspy.Module):
        raise SpecError(
            f"program {spec.kind} is {type(module).__name__}, not a dspy.Module or a function that returns one: {_FORM}"
        )
    if not any(hasattr(type(module), method) for method in ("forward", "aforward")):
        raise SpecError(f"program {spec.kind}: {type(module).__name__} has no forward: {_FORM}")
    return module


_ADAPTERS: Mapping[str, Callable[..., dspy.Adapter]] = MappingProxyType(
    # The chat adapter's second try through JSON is off: it would ask again in other words.
    {
        "chat": partial(dspy.ChatAdapter, use_json_adapter_fallback=False),
        "json": dspy.JSONAdapter,
        "xml": dspy.XMLAdapter,
    }
)


def make_adapter(spec: ModuleSpec) -> dspy.Adapter:
    """Make DSPy's adapter of a module; raises `SpecError` if that is none, or cannot be made."""
    if spec.answer_format == "guided":
        return GuidedAdapter()
    name, args = spec.adapter, dict(spec.adapter_args)
    make = _ADAPTERS.get(name) or load_object(name, ADAPTERS)
    if isinstance(make, dspy.Adapter) and not args:
        return make
    if name not in _ADAPTERS and not (isinstance(make, type) and issubclass(make, dspy.Adapter)):
        choices = "chat, json, xml, dspy.TwoStepAdapter, or ./file.py:Name"
        raise SpecError(f"program.adapter {name} is not a subclass of dspy.Adapter: use {choices}")
    if "extraction_model" in inspect.signature(make).parameters:
        # The run's model takes its place for each question.
        args["extraction_model"] = dspy.LM("medexam/run", cache=False)
    try:
        adapter: dspy.Adapter = make(**args)
    except Exception as error:
        raise SpecError(f"program.adapter {name}: making it failed: {type(error).__name__}: {error}") from error
    return adapter


def awaits_itself(module: Any) -> bool:
    """Return whether a module is awaited: it has nothing but `aforward`, or is one of DSPy's own predictors that asks a
    model of ours.

    Any other is called as `dspy.Evaluate` calls it, by `module(**inputs)`, which may block.
    """
    kind = type(module)
    patched = {"forward", "aforward", "__call__", "acall"} & vars(module).keys() if hasattr(module, "__dict__") else ()
    if not isinstance(module, dspy.Module) or patched:
        return False
    is_called = any("__call__" in vars(one) for one in kind.__mro__[: kind.__mro__.index(dspy.Module)])
    if kind in (dspy.Predict, dspy.ChainOfThought):
        return all(isinstance(predictor.lm or dspy.settings.lm, EngineLM) for predictor in module.predictors())
    return not (is_called or hasattr(kind, "forward"))


async def call_module(module: Any, inputs: Mapping[str, Any]) -> Any:
    """Return what a module gives for its inputs; one that may block runs in a thread."""
    if awaits_itself(module):
        return await module.acall(**inputs)
    return await call_in_thread(partial(module, **inputs))


async def call_in_thread(call: Callable[[], Any]) -> Any:
    """Return what a call returns that may block, under the context of now."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), contextvars.copy_context().run, call)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="medexam-program")
