"""A DSPy module of the user's own as a program: called with a question's fields, its answer read as every other.

The module may ask as often as it likes. Every call is recorded, and an exception that it raises fails its question
alone. A module without `aforward` runs in a thread; its calls still travel in batches with everybody else's. A
question whose reply did not parse did not fail: asking again would not change it.
"""

import asyncio
import contextvars
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from medexam.errors import ProgramFaultError, SpecError
from medexam.plugins import load_object
from medexam.programs.base import (
    AskingProgram,
    EngineLM,
    OnlyModel,
    OtherModelError,
    keep_passages,
    kept_calls,
    own_way,
)
from medexam.programs.fields import Asked, Wanted, question_fields, wanted_fields
from medexam.programs.guided import OPTIONS, GuidedAdapter
from medexam.programs.retrieving import PassageFinder
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.signatures.choices import read_choice
from medexam.signatures.span_alignment import find_span
from medexam.specs.base import PROGRAMS
from medexam.specs.programs.programs import ADAPTERS, ModuleSpec, OwnSpec

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
        search: Any = None,
        more: Collection[str] = (),
    ) -> None:
        """Make the program: `max_tokens` is the model's own budget, `finder` finds a question's passages, `search`
        those of any text.

        Both are None where the spec looks up none. `more` are names of fields that it is called with beside a
        question's.

        Raises `SpecError` if the module takes something that no question has, or holds a model of its own.
        """
        super().__init__()
        self.adapter = GuidedAdapter() if spec.answer_format == "guided" else make_adapter(spec.adapter)
        self.module = module
        parts = [module, *(part for _, part in module.named_sub_modules())]
        for lm in (held for part in parts for held in vars(part).values() if isinstance(held, dspy.BaseLM)):
            raise SpecError(
                f"program {spec.label}: {lm.model} that it holds is not the run's model: leave set_lm out, name "
                "further models in `models` of a program of steps, or use medexam.Evaluate"
            )
        self._max_tokens = spec.budget(max_tokens) or None
        self._timeout_s: float | None = getattr(spec, "timeout_s", None)
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
        return self._inputs(question, {}, self._hits(question))

    def _inputs(self, question: Asked, fields: Mapping[str, Any], hits: list[Hit]) -> dict[str, Any]:
        return question_fields(question, self._field_types, hits, fields)

    async def aforward(self, question: Asked) -> dspy.Prediction:
        """Answer one question; in a step, given its fields beside the question's own."""
        with own_way() as way:
            question = way.inputs.get("question", question)
            hits = self._hits(question)
            inputs = self._inputs(question, way.given.fields, hits)
            numbers = question.option_numbers if isinstance(question, Question) else ()
            settings = dspy.context(**self._settings(way.lm or dspy.settings.lm, way.seeds_later), **{OPTIONS: numbers})
            try:
                with kept_calls() as calls, settings, naming_faults(self.module):
                    calls.fault = None
                    output = await self._call(inputs)
            except _NoRetrieverError:
                raise SpecError("the module looks up passages: set program.retriever") from None
            except AdapterParseError:
                output = None
            else:
                if output is None:
                    calls.raise_fault()
        return self._prediction(question, hits, output)

    async def _call(self, inputs: Mapping[str, Any]) -> Any:
        """Call the module; one that may block runs in a thread, which nobody can end when its time is over."""
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                if awaits_itself(self.module):
                    return await self.module.acall(**inputs)
                return await call_in_thread(partial(self.module, **inputs))
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"no answer within {self._timeout_s:g} s (program.timeout_s)"
            raise ProgramFaultError("TimeoutError", message) from None

    def _hits(self, question: Asked) -> list[Hit]:
        return list(self._finder.find(question)) if self._finder else []

    def _settings(self, lm: dspy.BaseLM | None, seeds_later: int) -> dict[str, Any]:
        # `dspy.Refine` and `dspy.BestOfN` write into the trace, which is None in bulk.
        trace = [] if dspy.settings.trace is None else dspy.settings.trace
        settings: dict[str, Any] = {"rm": self._retrieve, "trace": trace, "adapter": self.adapter}
        if lm is None:
            return settings
        later = {"seed": (lm.kwargs.get("seed") or 0) + seeds_later} if seeds_later else {}
        own_lm = lm.copy(max_tokens=self._max_tokens, **later)
        return {**settings, "lm": own_lm, "usage_tracker": OnlyModel(lm.model)}

    def _retrieve(self, query: str, k: int) -> list[SimpleNamespace]:
        if self._search is None:
            raise _NoRetrieverError
        return [SimpleNamespace(long_text=hit.passage.text) for hit in self._search.search([query], k)[0]]

    def _prediction(self, question: Asked, hits: list[Hit], output: Any) -> dspy.Prediction:
        """Build a program's prediction of what the module returned; None where a reply could not be parsed."""
        if isinstance(output, BaseModel) or (is_dataclass(output) and not isinstance(output, type)):
            output = vars(output)
        answer, rationale, others = output, None, {}
        if isinstance(output, dspy.Prediction | dict):
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
            fields |= {"passages": keep_passages(hits), "passages_cut": 0}
        if isinstance(question, Question):
            return dspy.Prediction(answer=read_choice(answer, question), **fields)
        text = None if answer is None else str(answer).strip() or None
        span = find_span(question.context, text) if text and question.context else None
        if span is not None:
            text = question.context[span.start : span.end]
            fields |= {"span": (span.start, span.end), "alignment": span.alignment}
        return dspy.Prediction(text=text, **fields)


@contextmanager
def naming_faults(code: object) -> Iterator[None]:
    """Raise `ProgramFaultError` for whatever the user's code, a module or a function, raises in the block.

    It has the last line of its own file. Faults of models, and replies that could not be parsed, are raised as they
    are.
    """
    try:
        yield
    except (LMError, ProgramFaultError, AdapterParseError):
        raise
    except (Exception, OtherModelError) as error:
        kind, file = type(error).__name__, getattr(sys.modules.get(code.__module__), "__file__", None)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}: " if frames else ""
        message = f"{place}{kind}: {error}" if place else str(error)
        raise ProgramFaultError(kind, message, "".join(traceback.format_exception(error))) from error


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


_ADAPTERS: Mapping[str, Any] = {
    # The chat adapter's second try through JSON is off: it would ask again in other words.
    "chat": partial(dspy.ChatAdapter, use_json_adapter_fallback=False),
    "json": dspy.JSONAdapter,
    "xml": dspy.XMLAdapter,
}


def make_adapter(name: str) -> dspy.Adapter:
    """Make DSPy's adapter of a module; raises `SpecError` if that is none, or cannot be made."""
    make = _ADAPTERS.get(name) or load_object(name, ADAPTERS)
    try:
        adapter = make if isinstance(make, dspy.Adapter) else make()
    except Exception as error:
        raise SpecError(f"program.adapter {name}: making it failed: {type(error).__name__}: {error}") from error
    if not isinstance(adapter, dspy.Adapter):
        raise SpecError(f"program.adapter {name} is no dspy.Adapter: use chat, json, xml, or ./file.py:Name")
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
        return isinstance(getattr(module, "predict", module).lm or dspy.settings.lm, EngineLM)
    return not (is_called or hasattr(kind, "forward"))


async def call_in_thread(call: Callable[[], Any], threads: ThreadPoolExecutor | None = None) -> Any:
    """Return what a call returns that may block, under the context of now."""
    return await asyncio.get_running_loop().run_in_executor(threads or _threads(), contextvars.copy_context().run, call)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="medexam-program")
