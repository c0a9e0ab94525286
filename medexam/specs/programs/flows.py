"""Programs that are steps: what they need and ask follows from walking these."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self, cast

from pydantic import Field, model_validator

from medexam.model_calls import Reading
from medexam.specs.base import PlacedError
from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.fields import check_fields
from medexam.specs.programs.needs import NO_NEEDS, Asking, EngineNeeds, RetrievalSettings
from medexam.specs.programs.own import MODULE, OF_MODULES, ModuleSpec, OwnSpec, SignatureSpec
from medexam.specs.programs.steps import (
    BY,
    COMBINE,
    AllStep,
    AskingStep,
    AskStep,
    RetrieveStep,
    Steps,
    UseStep,
    walk_steps,
)
from medexam.specs.programs.words import AsideSpec
from medexam.specs.retriever import RetrieverSpec


class StepPart(NamedTuple):
    """A program that a step asks."""

    place: str
    """Where the step stands, such as `steps.2.do.0`."""
    name: str
    """What its predictors are called by."""
    step: AskingStep
    program: ProgramSpec

    @property
    def own_module(self) -> str | None:
        """The user's own module class that asks its signature; None where one of DSPy's or ours does."""
        return self.step.by if isinstance(self.step, AskStep) and self.step.by not in BY else None


class FlowSpec(ModuleSpec):
    """Steps over one set of named fields; the last `answer` that is written counts."""

    kind: Literal["flow"] = "flow"
    name: str = Field(default="flow", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """What it is called in tables and folders."""
    retriever: RetrieverSpec | None = None
    """What its steps look up passages by; None: the default."""
    steps: Steps
    """In the order in which they are done."""
    reading: Reading = "strict"
    """How replies are scored: `strict` by the format alone, as the paper did; `lenient` as a careful marker would where
    the format is missing. Both are always reported, and no answer depends on it."""

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        for place, step in walk_steps(self.steps) if self.look_up is None else ():
            if isinstance(step, RetrieveStep) and (step.query, step.query_language) != ("stem", None):
                raise PlacedError(
                    place, "query and query_language need exactly one step `retrieve`, and it must be `retrieve: stem`"
                )
        for place, part in self.parts.items():
            if part.step.orders != "given" and part.program.asking.asks_aside:
                raise PlacedError(f"{place}.orders", "what judges an answer reads the exam's order: leave orders out")
        if sum(getattr(part.step, "nearest", None) is not None for part in self.parts.values()) > 1:
            raise ValueError("one step alone may show the nearest of its demonstrations: leave nearest out elsewhere")
        _ = self.fields_at, self.asking
        return self

    @property
    def flow(self) -> "FlowSpec":
        """Itself."""
        return self

    @cached_property
    def parts(self) -> Mapping[str, StepPart]:
        """Place of each step that asks -> what it asks, in order, each under a name of its own."""
        parts: dict[str, StepPart] = {}
        names: set[str] = set()
        for place, step in walk_steps(self.steps):
            if isinstance(step, AskingStep):
                called = (step.called, *(f"{step.called}_{number}" for number in range(2, len(names) + 3)))
                name = next(name for name in called if name not in names)
                names.add(name)
                program = step.use if isinstance(step, UseStep) else self._asked(cast("AskStep", step))
                parts[place] = StepPart(place, name, step, program)
        return parts

    def _asked(self, step: AskStep) -> ProgramSpec:
        """Return what a step asks, with the settings of the program that it does not set itself."""
        settings = {name: getattr(step, name) or getattr(self, name) for name in ("answer_format", "max_tokens")}
        words = step.words
        if words is None:
            is_guided = settings["answer_format"] == "guided"
            return SignatureSpec(adapter="chat" if is_guided else self.adapter, **settings)
        settings["output_type"] = next(iter(step.outputs.values()))
        if isinstance(words, AsideSpec):
            settings["max_tokens"] = step.max_tokens
        fields = type(words).model_fields.keys() - words.model_fields_set
        settings = {name: value for name, value in settings.items() if name in fields and value not in (None, "free")}
        changed: ProgramSpec = type(words).model_validate({**words.model_dump(), **settings}) if settings else words
        return changed

    @property
    def sole(self) -> StepPart | None:
        """What answers if nothing else is asked and nothing stands around it but a look-up; None for other steps."""
        last = self.steps[-1]
        if self.steps[:-1] not in ((), (self.look_up,)) or not isinstance(last, AskStep):
            return None
        numbers = self.look_up is not None and self.look_up.numbered
        changes = (numbers, last.model, last.temperature is not None, last.rename, last.add, last.demos)
        return next(iter(self.parts.values())) if not any(changes) and last.by in BY[:2] else None

    @property
    def answering(self) -> ProgramSpec | None:
        """The words that ship in which it is asked for the answer; None where other programs answer."""
        steps = [(part.step, part.program) for part in self.parts.values() if getattr(part.step, "words", None)]
        answering = [words for step, words in steps if "answer" in step.outputs and not (step.rename or step.add)]
        return answering[-1] if answering else None

    @cached_property
    def fields_at(self) -> Mapping[str, Mapping[str, str]]:
        """Place of each step that asks -> the fields that are there before it, with their types."""
        return check_fields(self.steps)

    @cached_property
    def asking(self) -> Asking:
        """What all its steps ask and take together, and its answer by the words that it is asked in."""
        parts = [(part, part.program.asking) for part in self.parts.values()]
        words = Asking() if self.answering is None else self.answering.asking
        models: dict[str | None, EngineNeeds] = {None: NO_NEEDS}
        for part, asking in parts:
            for name, needs in ((part.step.model, asking.engine_needs), *asking.models.items()):
                models[name] = models.get(name, NO_NEEDS) | needs
        codes = [code for part, asking in parts for code in (*asking.codes, part.own_module) if code is not None]
        cites = any(getattr(part.step, "cite", None) is not None for part, _ in parts)
        alone = Asking(optimizers=OF_MODULES, saved_as={"kind": MODULE})
        alone = self.sole.program.asking if self.sole is not None else alone
        forms = [{*asking.forms} for part, asking in parts if asking.forms and part.program.kind != "abstain"]
        readers = {asking.local_reader for _, asking in parts} - {None}
        if len(readers) > 1:
            raise ValueError("its steps use several local models as readers, and a program may use only one")
        adapters = sorted({asking.adapter for _, asking in parts if asking.adapter}, key=lambda name: ":" not in name)
        asks_aside = any(asking.asks_aside for _, asking in parts)
        combines = any(isinstance(step, AllStep) and step.combine for _, step in walk_steps(self.steps))
        return replace(
            alone,
            forms=tuple(set.intersection(*forms)) if forms else None,
            engine_needs=models[None],
            models={name: needs for name, needs in models.items() if name is not None},
            words=words.words,
            pictures=max((asking.pictures or 0 for _, asking in parts), default=0) or None,
            draws=any(
                (part.step.samples > 1 or asking.draws) and part.step.temperature is None and part.step.model is None
                for part, asking in parts
            ),
            sets_temperature=any(part.step.temperature or asking.sets_temperature for part, asking in parts),
            votes=combines or any(part.step.votes or asking.votes for part, asking in parts),
            asks_aside=asks_aside,
            optimizers=() if cites or asks_aside else alone.optimizers,
            codes=tuple(dict.fromkeys([*codes, *self.combining_code])),
            retrieval=self._find_retrieval(),
            local_reader=next(iter(readers), None),
            adapter=next(iter(adapters), None),
        )

    @property
    def combining_code(self) -> tuple[str, ...]:
        """The user's own functions that combine branches."""
        rules = (step.combine for _, step in walk_steps(self.steps) if isinstance(step, AllStep))
        return tuple(dict.fromkeys(rule for rule in rules if rule is not None and rule not in COMBINE))

    @cached_property
    def look_up(self) -> RetrieveStep | None:
        """The one step that looks up passages, if it does so by the question's stem: before anything is asked."""
        steps = [(place, step) for place, step in walk_steps(self.steps) if isinstance(step, RetrieveStep)]
        place, step = steps[0] if len(steps) == 1 else ("", None)
        is_first = step is not None and step.retrieve == "stem" and step.add is None and place.count(".") == 1
        # What a module looks up is written, in whichever process it runs.
        return step if is_first and not self._modules_look_up else None

    @property
    def _modules_look_up(self) -> bool:
        """Whether a module of the user's own, or a tool, may look up texts."""
        return any(
            isinstance(part.program, OwnSpec) or getattr(part.step, "by", BY[0]) not in {*BY} - {"react"}
            for part in self.parts.values()
        )

    def _find_retrieval(self) -> RetrievalSettings | None:
        """Return how its passages are looked up; None where it sees none. All its steps look up in one way."""
        retriever, step = self.retriever or RetrieverSpec(), self.look_up
        ways = [way for part in self.parts.values() if (way := part.program.asking.retrieval) is not None]
        counts = [step.k for _, step in walk_steps(self.steps) if isinstance(step, RetrieveStep)]
        if step is not None:
            ways.append(RetrievalSettings(retriever, step.k, step.query, step.query_language))
        elif counts or (self.retriever is not None and (self._modules_look_up or not ways)):
            ways.append(RetrievalSettings(retriever, max(counts, default=2), "written", None))
        most = max((way.k for way in ways if way.query == "written"), default=0)
        ways = list(dict.fromkeys(replace(way, k=most) if way.query == "written" else way for way in ways))
        if len(ways) > 1:
            raise ValueError(
                "its steps look up passages in several ways, and a program may use only one: use one program that "
                "retrieves, or the steps `retrieve` and `ask`"
            )
        return ways[0] if ways else None

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have; of several parts by their names, and by group of their words."""
        if self.sole is not None:
            return self.sole.program.budget(of_model)
        tokens: dict[str, int] = {}
        for part in self.parts.values():
            of_part = part.program.budget(of_model)
            groups = of_part if isinstance(of_part, Mapping) else {"": of_part}
            tokens |= {f"{part.name}.{group}".strip("."): count for group, count in groups.items() if count is not None}
        return tokens
