"""What every program says of itself, so that nobody needs to ask which kind it is: programs that are code, and those
that are steps, whose needs follow from walking these.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, PositiveFloat, model_validator

from medexam.model_calls import Reading
from medexam.questions import Language
from medexam.specs.base import NAME, PROGRAMS, PlacedError, Spec, class_name, part_of, short_name
from medexam.specs.programs.needs import (
    MODULE,
    NO_NEEDS,
    AnswerFormat,
    Asking,
    EngineNeeds,
    PositiveInt,
    Query,
    RetrievalSettings,
)
from medexam.specs.programs.steps import BY, COMBINE, PASSAGES, Limit, Step, Steps, check_fields, walk_steps
from medexam.specs.programs.words import LABELS, WordsSpec
from medexam.specs.retriever import RetrieverSpec

ADAPTERS = "medexam.adapters"
"""The entry point group of short names for adapters."""
_SHORT_ADAPTERS = {"dspy:ChatAdapter": "chat", "dspy:JSONAdapter": "json", "dspy:XMLAdapter": "xml"}
_OWN_ADAPTER = part_of(ADAPTERS, Literal["chat", "json", "xml"])
_BY_CONTENT = {
    *("name", "prompt", "prompt_language", "examples", "instructions", "demos", "load", "max_tokens", "file"),
    *("reading", "retriever", "query_language", "reader", "revision", "timeout_s"),
}
"""Fields of which a run's identity holds the content, or nothing."""
_NAMES = {"kind", "by", "combine", "adapter"}
"""Fields that may name the user's own code, whose source an identity holds."""
_ALWAYS = ("read", "option")
"""Fields that tables and folders show whatever their value."""


class ProgramSpec(Spec):
    """Base of every kind of program; what it does not override is what a program does that asks no model."""

    if TYPE_CHECKING:
        kind: str  # A field of each kind's own, after those that it inherits.

    template: ClassVar[Mapping[str, Any]] = {}
    """The file of a kind that is one."""

    @property
    def asking(self) -> Asking:
        """What it asks and takes."""
        return Asking() if self.flow is None else self.flow.asking

    @property
    def flow(self) -> "FlowSpec | None":
        """The steps that it is; None of one that is code."""
        return None

    @property
    def asks_model(self) -> bool:
        """Whether an engine is needed."""
        return self.asking.engine_needs != NO_NEEDS or bool(self.asking.models)

    @property
    def label(self) -> str:
        """Short name for tables and folders."""
        own = getattr(self, "name", None) or self.template.get("label", "").format_map(dict(self))
        return "-".join([own or self.kind, *self.label_words])

    @property
    def label_words(self) -> list[str]:
        """What tells it from others of its kind, for tables and folders."""
        fields, words = type(self).model_fields, []
        own = {name: one["label"] for name, one in self.template.get("parameters", {}).items() if "label" in one}
        for name, label in {**LABELS, **own}.items():
            value = getattr(self, name, None)
            if value is None or name not in fields or (name == "context" and value != "stem_and_options"):
                continue
            if self.asking.retrieval if name == "retriever" else name in _ALWAYS or value != fields[name].default:
                words.append(label.format(_short(value)))
        return words

    @property
    def loads(self) -> Path | None:
        """The optimized program whose instructions and demonstrations replace its own; None: it asks in its own."""
        return getattr(self, "load", None)

    @property
    def read_as(self) -> Reading:
        """How its replies are read where they are scored."""
        return getattr(self, "reading", "strict")

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have, or by group of words, where the model's own spec says `of_model`.

        None where the model writes no reply.
        """
        return None if self.flow is None else self.flow.budget(of_model)


def _short(value: Any) -> str:
    text = value.label if isinstance(value, RetrieverSpec) else short_name(str(value))
    return Path(text).name.removesuffix(".yaml")


def describe(value: Any) -> Any:
    """Describe, as JSON-ready data, what an answer depends on beside files, code, retriever, local model and tokens.

    A program that is steps is told by these.
    """
    if isinstance(value, Spec):
        part = (value.flow if isinstance(value, ProgramSpec) else None) or value
        return {
            name: short_name(field) if name in _NAMES else describe(field)
            for name, field in part.own.items()
            if name not in _BY_CONTENT and field not in (None, ())
        }
    return [describe(entry) for entry in value] if isinstance(value, tuple | list) else value


class ModuleSpec(ProgramSpec):
    """Base of the programs that call a DSPy module with a question's fields, or a step's signature."""

    kind: str = "signature"
    answer_format: AnswerFormat = "free"
    """`free` parses what the adapter reads; `guided` allows only legal values of each output that is a choice."""
    adapter: Annotated[
        str, AfterValidator(lambda name: _SHORT_ADAPTERS.get(class_name(name), class_name(name))), _OWN_ADAPTER
    ] = "chat"
    """DSPy's adapter: `chat` (that of guided answers), `json`, `xml`, or one's own, `./file.py:Name`."""
    max_tokens: PositiveInt | None = None
    """Tokens each reply may have; None: the model's `max_tokens`, else 512."""
    load: Path | None = None
    """What `medexam optimize` made, a folder or its `program.json`; None asks as it is written."""

    @property
    def asking(self) -> Asking:
        """What it asks: dialogues, with choices if guided, else tools and schemas."""
        guided = self.answer_format == "guided"
        needs = EngineNeeds(guided=guided, chat=True, tools=not guided)
        return Asking(None, needs, optimizable=True, saved_as={"kind": MODULE}, adapter=self.adapter)

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have, where the model's own spec says `of_model`; 0 leaves it to a provider."""
        return self.max_tokens or (512 if of_model is None else of_model)


class OwnSpec(ModuleSpec):
    """A `dspy.Module` class, or a function that returns a module, from the user's own code.

    `passages` is one of the fields that it may take if it looks some up.
    """

    kind: Annotated[str, part_of(PROGRAMS)]
    """`package.module:Name`, `./file.py:Name` (beside the spec), or a name that an installed package adds."""
    retriever: RetrieverSpec | None = None
    """None looks up no passages."""
    k: PositiveInt = 2
    """Passages a question; the paper's 2."""
    query: Query = "stem"
    """What is looked up; `per_option` looks up the stem with each option and takes the best passages over all."""
    query_language: Language | None = None
    """Look up the same question in this language, found by its key; None: the language that is asked."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the class or function."""
    timeout_s: PositiveFloat | None = None
    """Seconds after which a question fails, so that the next run asks it again; None waits for ever. A `forward` that
    never returns keeps its thread, and the command does not end before it."""
    plain: bool = False
    """Whether its requests are plain texts that replies continue; an engine that takes dialogues alone refuses."""

    @property
    def asking(self) -> Asking:
        """What it asks: that of every module, or plain texts alone."""
        asking, retrieval = super().asking, RetrievalSettings.of(self) if self.retriever else None
        needs = EngineNeeds(plain=True) if self.plain else asking.engine_needs
        return replace(asking, codes=(self.kind,), retrieval=retrieval, engine_needs=needs)

    @property
    def label(self) -> str:
        """Short name for tables and folders: the object's, and its arguments."""
        arguments = [f"{name}_{value}" for name, value in self.args.items() if isinstance(value, int | float | str)]
        return "-".join(["-".join([short_name(self.kind), *arguments])[:60], *self.label_words])


class StepPart(NamedTuple):
    """What a step asks."""

    place: str
    """Where the step stands, such as `steps.2.do.0`."""
    name: str
    """What its predictors are called by."""
    step: Step
    fields: Mapping[str, str]
    """The fields that are there before it, with their types."""
    asked: WordsSpec | ProgramSpec
    """The words that ship, with the program's settings; else how a signature is asked, or the program that is used."""


class FlowSpec(ModuleSpec):
    """Steps over one set of named fields; the last `answer` that is written counts."""

    kind: Literal["flow"] = "flow"
    name: str = Field(default="flow", pattern=NAME)
    """What it is called in tables and folders."""
    retriever: RetrieverSpec | None = None
    """What its steps look up passages by; None: the default."""
    steps: Steps
    """In the order in which they are done."""
    reading: Reading = "strict"
    """Which reading is the score: `strict`, as the paper's, or `lenient`, as a careful marker's; both are reported."""

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        for place, step in walk_steps(self.steps) if self.look_up is None else ():
            if (step.query, step.query_language) != ("stem", None):
                raise PlacedError(
                    place, "query and query_language need exactly one step `retrieve`, and it must be `retrieve: stem`"
                )
        for place, part in self.parts.items():
            outputs = part.step.signature.outputs
            is_choice = outputs.get("answer") == "int" or any(map(re.compile("bool|Literal").match, outputs.values()))
            if "int" in outputs.values() and not is_choice and getattr(part.asked, "answer_format", "") == "guided":
                raise PlacedError(
                    f"{place}.answer_format",
                    f"guided holds `answer: int`, bool and Literal, not {', '.join(outputs)}: write `answer: int`, "
                    "with `as` for another name, or answer_format: free",
                )
            if part.step.orders != "given" and _asks_aside(part):
                raise PlacedError(f"{place}.orders", "what judges an answer reads the exam's order: leave orders out")
        for name, default in (("answer_format", "free"), ("max_tokens", None), ("adapter", "chat")):
            value = getattr(self, name)
            values = [getattr(part.asked, name, None) for part in self.parts.values() if part.step.ask]
            if value not in (default, *values):
                raise PlacedError(name, "no step takes it: set it in the step, or in the program that it uses")
        if sum(part.step.nearest is not None for part in self.parts.values()) > 1:
            raise ValueError("one step alone may show the nearest of its demonstrations: leave nearest out elsewhere")
        _ = self.asking
        return self

    @property
    def flow(self) -> "FlowSpec":
        """Itself."""
        return self

    @cached_property
    def parts(self) -> Mapping[str, StepPart]:
        """Place of each step that asks -> what it asks, in order, each under a name of its own."""
        parts: dict[str, StepPart] = {}
        fields, names = check_fields(self.steps), set[str]()
        for place, step in walk_steps(self.steps):
            if step.asks:
                called = (step.called, *(f"{step.called}_{number}" for number in range(2, len(names) + 3)))
                name = next(name for name in called if name not in names)
                names.add(name)
                parts[place] = StepPart(place, name, step, fields[place], step.use or self._asked(step))
        return parts

    def _asked(self, step: Step) -> WordsSpec | ModuleSpec:
        """Return what a step asks, with the settings of the program that it does not set itself."""
        settings = {name: getattr(step, name) or getattr(self, name) for name in ("answer_format", "max_tokens")}
        words = step.words
        if words is None:
            is_guided = settings["answer_format"] == "guided"
            return ModuleSpec(adapter="chat" if is_guided else self.adapter, **settings)
        if words.asks == "aside":
            settings["max_tokens"] = step.max_tokens
        settings = {
            name: value
            for name, value in settings.items()
            if name in words.own and getattr(words, name) in (None, "free") and value not in (None, "free")
        }
        changed = WordsSpec.model_validate({**words.model_dump(), **settings})
        return changed.model_copy(update={"output": next(iter(step.outputs.values()))})

    @property
    def sole(self) -> StepPart | None:
        """What answers if nothing else is asked and nothing stands around it but a look-up; None for other steps."""
        last = self.steps[-1]
        if self.steps[:-1] not in ((), (self.look_up,)) or last.ask is None:
            return None
        numbers = self.look_up is not None and self.look_up.numbered
        changes = (numbers, last.model, last.temperature is not None, last.rename, last.add, last.demos)
        return next(iter(self.parts.values())) if not any(changes) and last.by in BY[:2] else None

    @cached_property
    def asking(self) -> Asking:
        """What all its steps ask and take together, and its answer by the words that it is asked in."""
        parts = [(part.step, part.asked.asking) for part in self.parts.values()]
        models: dict[Any, EngineNeeds] = {None: NO_NEEDS}
        for step, asking in parts:
            for name, needs in ((step.model, asking.engine_needs), *asking.models.items()):
                models[name] = models.get(name, NO_NEEDS) | needs
        codes = [code for step, asking in parts for code in (*asking.codes, step.by) if code not in BY]
        steps = [step for _, step in walk_steps(self.steps)]
        forms = [{*asking.forms} for _, asking in parts if asking.forms]
        votes = any(step.votes or step.combine for step in steps) or any(asking.votes for _, asking in parts)
        if votes or any(step.drop or step.each == "options" for step in steps):
            forms.append({"choice"})
        readers = {asking.local_reader for step, asking in parts} - {None}
        if len(readers) > 1:
            raise ValueError("its steps use several local models as readers, and a program may use only one")
        adapters = [asking.adapter for _, asking in parts if asking.adapter]
        pairs = [(part.asked, part.step) for part in self.parts.values() if isinstance(part.asked, WordsSpec)]
        answering = [one for one, step in pairs if "answer" in step.outputs and not (step.rename or step.add)]
        alone = super().asking if self.sole is None else self.sole.asked.asking
        is_fixed = any(part.step.cite or _asks_aside(part) for part in self.parts.values())
        return Asking(
            forms=tuple(set.intersection(*forms)) if forms else None,
            engine_needs=models.pop(None),
            models=models,
            words=answering[-1] if answering else None,
            pictures=max((asking.pictures or 0 for _, asking in parts), default=0) or None,
            draws=tuple(
                name or step.model
                for step, asking in parts
                for name in asking.draws + (None,) * (step.samples > 1)
                if step.temperature is None
            ),
            sets_temperature=any(step.temperature or asking.sets_temperature for step, asking in parts),
            votes=votes,
            optimizable=alone.optimizable and not is_fixed,
            saved_as=alone.saved_as,
            codes=tuple(dict.fromkeys([*codes, *self.combining_code])),
            retrieval=self._find_retrieval(),
            local_reader=next(iter(readers), None),
            adapter=min(adapters, key=lambda name: (":" not in name, name), default=None),
        )

    @property
    def combining_code(self) -> tuple[str, ...]:
        """The user's own functions that combine branches."""
        rules = dict.fromkeys(step.combine or "vote" for _, step in walk_steps(self.steps))
        return tuple(rule for rule in rules if rule not in COMBINE)

    @cached_property
    def look_up(self) -> Step | None:
        """The one step that looks up passages, if it does so by the question's stem: before anything is asked."""
        steps = [step for _, step in walk_steps(self.steps) if step.retrieve]
        is_first = len(steps) == 1 and steps[0] in self.steps and (steps[0].retrieve, steps[0].add) == ("stem", None)
        # What a module looks up is written, in whichever process it runs.
        return steps[0] if is_first and not self._modules_look_up else None

    @property
    def _modules_look_up(self) -> bool:
        return any(isinstance(part.asked, OwnSpec) or part.step.by not in BY[:2] for part in self.parts.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Each step whose outputs no step reads, but beside code, which may, and each `react` that cannot look up."""
        walked, read, found = dict(walk_steps(self.steps)), {"answer", "supported"}, list[str]()
        for step in walked.values():
            conditions = (step.when, step.unless, step.until, step.as_long_as, step.keep)
            read |= {one.field if isinstance(one, Limit) else one for one in conditions if one is not None}
            read |= {step.field, *step.signature.inputs}
        has_code = any(":" in step.use.kind for step in walked.values() if step.use)
        for place, step in walked.items():
            name = step.rename or step.add or (PASSAGES if step.retrieve else "")
            names = [name] if name else step.outputs
            if (step.asks or step.retrieve) and not has_code and read.isdisjoint(names):
                found.append(f"program.{place}: no step reads {', '.join(names)}: read it, or leave the step out")
            if step.by == "react" and self.asking.retrieval is None:
                found.append(f"program.{place}.by: react has no retriever to look up by: add program.retriever")
        return tuple(found)

    def _find_retrieval(self) -> RetrievalSettings | None:
        """Return how its passages are looked up; None where it sees none. All its steps look up in one way."""
        retriever, step = self.retriever or RetrieverSpec(), self.look_up
        ways = [way for part in self.parts.values() if (way := part.asked.asking.retrieval) is not None]
        counts = [step.k for _, step in walk_steps(self.steps) if step.retrieve is not None]
        if step is not None:
            ways.append(RetrievalSettings(retriever, step.k, step.query, step.query_language))
        elif counts or (self.retriever is not None and self._modules_look_up):
            ways.append(RetrievalSettings(retriever, max(counts, default=2), "written", None))
        most = max((way.k for way in ways if way.query == "written"), default=0)
        ways = list(dict.fromkeys(replace(way, k=most) if way.query == "written" else way for way in ways))
        if len(ways) > 1:
            raise ValueError(
                "its steps look up passages in several ways, and a program may use only one: use one program that "
                "retrieves, or the steps `retrieve` and `ask`"
            )
        if self.retriever not in (None, *(way.retriever for way in ways)):
            raise PlacedError(
                "retriever", "no step looks up by it: add `retrieve`, or set it in the program that looks up"
            )
        return ways[0] if ways else None

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have; of several parts by their names, and by group of their words."""
        if self.sole is not None:
            return self.sole.asked.budget(of_model)
        tokens: dict[str, int] = {}
        for part in self.parts.values():
            of_part = part.asked.budget(of_model)
            groups = of_part if isinstance(of_part, Mapping) else {"": of_part}
            tokens |= {f"{part.name}.{group}".strip("."): count for group, count in groups.items() if count is not None}
        return tokens


def _asks_aside(part: StepPart) -> bool:
    if isinstance(part.asked, WordsSpec):
        return part.asked.asks == "aside"
    return part.asked.flow is not None and any(map(_asks_aside, part.asked.flow.parts.values()))
