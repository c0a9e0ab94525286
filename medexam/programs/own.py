"""A DSPy module of the user's own as a program: called with a question's fields, its answer read as every other.

The module may ask as often as it likes. Every call is recorded, and an exception that it raises fails its question
alone. A module without `aforward` runs in a thread; its calls still travel in batches with everybody else's.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from medexam.programs.base import AskingProgram
from medexam.programs.fields import Asked, Wanted, question_fields, wanted_fields
from medexam.programs.module_faults import naming_faults, overdue, start_thread
from medexam.programs.program_output import ProgramOutput
from medexam.programs.recording import Calls, no_other_model, recorded_calls
from medexam.programs.retrieval.passages import PassageFinder
from medexam.programs.retrieval.searching import PassageSearch
from medexam.questions import Question
from medexam.signatures.chat_in_bulk import ChatInBulk
from medexam.signatures.choices import read_choice
from medexam.signatures.guided import GuidedAdapter, asked_options
from medexam.signatures.span_alignment import find_span
from medexam.specs.names import PROGRAMS
from medexam.specs.programs.own import ADAPTERS, ModuleSpec, OwnSpec, SignatureSpec

_MOST_THREADS = 512
"""Modules without `aforward` that run at the same time; each waits for a server most of its time."""

Fields = Mapping[str, Any]
NO_FIELDS: Fields = MappingProxyType({})

_FORM = (
    "name a class derived from dspy.Module, with a method such as forward(self, question: str) or "
    "aforward(self, question: str) that returns the answer"
)
"""What a program of one's own looks like."""


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

    def forward(self, question: Asked, fields: Fields = NO_FIELDS, config: Fields = NO_FIELDS) -> ProgramOutput:
        """Answer one question, given `fields` beside its own; `config` are settings of the model for its calls."""
        if self._timeout_s is not None:
            return asyncio.run(self.aforward(question, fields, config))
        if not hasattr(type(self.module), "forward"):
            job = partial(asyncio.run, self.aforward(question, fields, config))
            return _threads().submit(contextvars.copy_context().run, job).result()
        with self._asking(question, fields, config) as (calls, inputs), naming_faults(self.module) as outputs:
            outputs.append(self.module(**inputs))
        return self._prediction(question, outputs, calls)

    async def aforward(self, question: Asked, fields: Fields = NO_FIELDS, config: Fields = NO_FIELDS) -> ProgramOutput:
        """Answer one question without blocking."""
        with self._asking(question, fields, config) as (calls, inputs), naming_faults(self.module) as outputs:
            if self._timeout_s is not None:
                outputs.append(await self._call_in_time(inputs, calls, self._timeout_s))
            elif hasattr(type(self.module), "aforward"):
                outputs.append(await self.module.acall(**inputs))
            else:
                call = partial(contextvars.copy_context().run, partial(self.module, **inputs))
                outputs.append(await asyncio.get_running_loop().run_in_executor(_threads(), call))
        return self._prediction(question, outputs, calls)

    async def _call_in_time(self, inputs: dict[str, Any], calls: Calls, timeout_s: float) -> Any:
        """Call the module in a thread of its own, which may block it; raises `ProgramFaultError` if it takes longer."""
        is_async = hasattr(type(self.module), "aforward")

        def call() -> Any:
            return asyncio.run(self.module.acall(**inputs)) if is_async else self.module(**inputs)

        returned, thread = start_thread(partial(contextvars.copy_context().run, call))
        try:
            return await asyncio.wait_for(returned, timeout_s)
        except TimeoutError:
            if returned.done() and not returned.cancelled():
                raise
            calls.over = True
            raise overdue(thread, type(self.module), timeout_s) from None

    @contextmanager
    def _asking(self, question: Asked, fields: Fields, config: Fields) -> Iterator[tuple[Calls, dict[str, Any]]]:
        """Yield the calls that the block makes, under its settings, and what the module is called with."""
        adapter, lm = self.adapter, dspy.settings.lm
        if lm and hasattr(adapter, "extraction_model"):
            adapter = copy(adapter)
            adapter.extraction_model = lm.copy(max_tokens=self._max_tokens)
        numbers = question.option_numbers if isinstance(question, Question) else ()
        hits = list(self._finder.find(question)) if self._finder else []
        settings = {
            "lm": lm and lm.copy(max_tokens=self._max_tokens, **config),
            "adapter": adapter,
            "rm": self._retrieve,
            **(no_other_model(lm) if lm else {}),
            # `dspy.Refine` and `dspy.BestOfN` write into it, which is None in bulk.
            "trace": [] if dspy.settings.trace is None else dspy.settings.trace,
        }
        with recorded_calls() as calls, asked_options(numbers), dspy.context(**settings):
            yield calls, question_fields(question, self._field_types, hits, fields)

    def _retrieve(self, query: str, k: int) -> list[SimpleNamespace]:
        """Look up passages for `dspy.Retrieve`."""
        if self._search is None:
            raise SpecError("the module looks up passages: set program.retriever")
        return [SimpleNamespace(long_text=hit.passage.text) for hit in self._search.search([query], k)[0]]

    def _prediction(self, question: Asked, outputs: list[Any], calls: Calls) -> ProgramOutput:
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
            answer = output.answer
            rationale = output.get("rationale") or output.get("reasoning")
            others = {name: value for name, value in output.items() if name not in ("answer", "rationale", "reasoning")}
        fields: dict[str, Any] = {
            "rationale": None if rationale is None else str(rationale),
            "outputs": from_json(to_json(others, inf_nan_mode="null", fallback=str)) or None,
        }
        if self._finder is not None:
            fields |= {"hits": list(self._finder.find(question)), "passages_cut": 0}
        if isinstance(question, Question):
            return ProgramOutput(answer=read_choice(answer, question), **fields)
        text = None if answer is None else str(answer).strip() or None
        span = find_span(question.context, text) if text and question.context else None
        if span is not None:
            text = question.context[span.start : span.end]
            fields |= {"span": (span.start, span.end), "alignment": span.alignment}
        return ProgramOutput(answer=None, text=text, **fields)


def _as_prediction(output: Any) -> Any:
    """Return named outputs in other forms, such as a dictionary, as DSPy's; anything else is itself."""
    if isinstance(output, BaseModel):
        return dspy.Prediction(**dict(output))
    if is_dataclass(output) and not isinstance(output, type):
        return dspy.Prediction(**vars(output))
    is_named = isinstance(output, Mapping) and all(isinstance(name, str) for name in output)
    return dspy.Prediction(**output) if is_named else output


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


def make_predictor(spec: SignatureSpec) -> dspy.Module:
    """Make DSPy's own module for the signature in the spec; raises `SpecError` if that is none."""
    kind = dspy.ChainOfThought if spec.module == "chain_of_thought" else dspy.Predict
    try:
        return kind(dspy.Signature(spec.signature, spec.instructions or None))
    except Exception as error:
        raise SpecError(f"signature {spec.signature!r}: {error}") from None


def make_adapter(spec: ModuleSpec) -> dspy.Adapter:
    """Make DSPy's adapter of a module; raises `SpecError` if that is none, or cannot be made."""
    if spec.answer_format == "guided":
        return GuidedAdapter()
    name = spec.adapter
    make = _ADAPTERS[name] if name in _ADAPTERS else load_object(name, ADAPTERS)
    if isinstance(make, dspy.Adapter) and not spec.adapter_args:
        return make
    if not (isinstance(make, partial) or (isinstance(make, type) and issubclass(make, dspy.Adapter))):
        raise SpecError(f"program.adapter {name} is not a subclass of dspy.Adapter: use {_KNOWN_ADAPTERS}")
    args = dict(spec.adapter_args)
    if isinstance(make, type) and "extraction_model" in inspect.signature(make).parameters:
        # The run's model takes its place for each question.
        args["extraction_model"] = dspy.LM("medexam/run", cache=False)
    try:
        adapter: dspy.Adapter = make(**args)
    except Exception as error:
        raise SpecError(f"program.adapter {name}: making it failed: {type(error).__name__}: {error}") from error
    return adapter


_ADAPTERS: dict[str, Callable[..., dspy.Adapter]] = {
    "chat": partial(ChatInBulk, use_json_adapter_fallback=False),
    "json": partial(dspy.JSONAdapter),
    "xml": partial(dspy.XMLAdapter),
}
"""Adapter -> what makes it. The chat adapter's second try through JSON is off: it would ask again in other words."""
_KNOWN_ADAPTERS = "chat, json, xml, dspy.TwoStepAdapter, or ./file.py:Name"


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="medexam-program")
