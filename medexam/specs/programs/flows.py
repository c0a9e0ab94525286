"""Programs that are steps: what they need and ask follows from these.

The kind `flow` is a list of steps that a spec writes; every kind that ships or is installed as a file is another.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from medexam.model_calls import Reading
from medexam.questions import Language
from medexam.specs.programs.asides import AsideSpec
from medexam.specs.programs.asking_steps import BY, AskingStep, AskStep, UseStep
from medexam.specs.programs.base import ProgramSpec
from medexam.specs.programs.needs import NO_NEEDS, Asking, EngineNeeds, ReaderSettings, RetrievalSettings
from medexam.specs.programs.own import MODULE, OF_MODULES, ModuleSpec, OwnSpec, SignatureSpec
from medexam.specs.programs.step_fields import check_fields
from medexam.specs.programs.steps import COMBINE, AllStep, RetrieveStep, Steps, walk_steps
from medexam.specs.retriever import RetrieverSpec
from medexam.specs.validation import PlacedError


class StepPart(NamedTuple):
    """A program that a step asks."""

    place: str
    """Where the step stands, such as `steps.2.do.0`."""
    name: str
    """What its predictors are called by."""
    step: AskingStep
    program: ProgramSpec

    @property
    def attribute(self) -> str:
        """What its program is called among those of the steps."""
        return f"{self.name}_"

    @property
    def answers(self) -> bool:
        """Whether the step writes `answer`."""
        is_unnamed = self.step.rename is None and self.step.add is None
        return is_unnamed and (not isinstance(self.step, AskStep) or "answer" in self.step.signature.outputs)

    @property
    def own_module(self) -> str | None:
        """The user's own module class that asks its signature; None where one of DSPy's or ours does."""
        return self.step.by if isinstance(self.step, AskStep) and self.step.by not in BY else None


class StepsSpec(ProgramSpec):
    """Base of the programs that are steps over one set of named fields; the last `answer` that is written counts."""

    if TYPE_CHECKING:

        @property
        def steps(self) -> Steps:
            """The steps, in the order in which they are done."""

    asks_model: ClassVar[bool] = True

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        self.check_steps()
        return self

    def check_steps(self) -> None:
        """Raise `PlacedError`, or `ValueError`, where steps do not fit each other."""
        for place, step in walk_steps(self.steps):
            if self.look_up is None and isinstance(step, RetrieveStep) and (step.query, step.query_language) != _STEM:
                raise PlacedError(
                    place, "query and query_language need exactly one step `retrieve`, and it must be `retrieve: stem`"
                )
            if self.look_up is None and place in self.parts and isinstance(self.parts[place].program, AsideSpec):
                aside = self.parts[place].program
                if aside.asking.local_reader is not None:
                    raise PlacedError(
                        place, "a reader judges the passages of one step `retrieve: stem`: add this step before it"
                    )
        for place, part in self.parts.items():
            if part.step.outer_orders is not None and _judges(part.program):
                raise PlacedError(f"{place}.orders", "what judges an answer reads the exam's order: leave orders out")
            if self.loads is not None and isinstance(part.step, AskStep) and part.step.cite is not None:
                raise ValueError("cite takes no samples, orders or load: leave them out")
        _ = self.fields_at, self.asking

    @cached_property
    def parts(self) -> Mapping[str, StepPart]:
        """Place of each step that asks -> what it asks, in order, each under a name of its own."""
        parts: dict[str, StepPart] = {}
        names: set[str] = set()
        for place, step in walk_steps(self.steps):
            if not isinstance(step, AskStep | UseStep):
                continue
            program = step.program if isinstance(step, UseStep) else self._asked(step)
            stem = name = _part_name(step, program)
            number = 1
            while name in names:
                number += 1
                name = f"{stem}_{number}"
            names.add(name)
            parts[place] = StepPart(place, name, step, program)
        return parts

    @property
    def sole(self) -> StepPart | None:
        """What answers if nothing else is asked and nothing stands around it but a look-up; None for other steps."""
        last = self.steps[-1]
        before = self.steps[:-1]
        if before and before != (self.look_up,):
            return None
        if not isinstance(last, AskStep) or last.by not in ("predict", "chain_of_thought") or last.demos:
            return None
        around = (last.model, last.temperature, last.rename, last.add)
        return None if set(around) != {None} else next(iter(self.parts.values()))

    @property
    def answering(self) -> ProgramSpec | None:
        """What is asked for the answer in words that ship; None where other programs answer."""
        answers = [(part.step, part.program) for part in self.parts.values() if part.answers]
        step, program = answers[-1] if answers else (None, None)
        return program if isinstance(step, AskStep) and step.words is not None else None

    @property
    def asked_as(self) -> str:
        """The kind of words that the question is asked in; its own where other programs answer."""
        return self.kind if self.answering is None else self.answering.kind

    @property
    def fields_at(self) -> Mapping[str, Mapping[str, str]]:
        """Place of each step that asks -> the fields that are there before it, with their types."""
        return check_fields(self.steps, {place: part.program for place, part in self.parts.items()})

    def _asked(self, step: AskStep) -> ProgramSpec:
        """Return the program of one signature that a step asks, or of words that ship."""
        answer_format, max_tokens = getattr(self, "answer_format", "free"), getattr(self, "max_tokens", None)
        if step.words is not None:
            program = step.program
            changes: dict[str, Any] = {}
            fields = () if isinstance(program, AsideSpec) else type(program).model_fields
            if "answer_format" in fields and step.answer_format is None and answer_format == "guided":
                changes["answer_format"] = answer_format
            if "max_tokens" in fields and step.max_tokens is None and max_tokens is not None:
                changes["max_tokens"] = max_tokens
            return step.renewed(program, changes)
        weighs = step.by == "likelihood"
        is_chat = weighs or step.answer_format == "guided"
        return SignatureSpec(
            signature=step.ask,
            module="chain_of_thought" if step.by == "chain_of_thought" else "predict",
            answer_format="free" if weighs else step.answer_format or answer_format,
            adapter="chat" if is_chat else getattr(self, "adapter", "chat"),
            adapter_args={} if is_chat else getattr(self, "adapter_args", {}),
            max_tokens=step.max_tokens or max_tokens,
            timeout_s=getattr(self, "timeout_s", None),
            logprobs=weighs,
        )

    @cached_property
    def asking(self) -> Asking:
        """What all its steps ask and take together, and its answer by the words that it is asked in."""
        parts = [(part, part.program.asking) for part in self.parts.values()]
        words = Asking() if self.answering is None else self.answering.asking
        sole = None if self.sole is None else self.sole.program.asking
        judges = any(_judges(part.program) for part, _ in parts)
        codes = [code for part, asking in parts for code in (*asking.codes, part.own_module) if code is not None]
        models = [name for part, asking in parts for name in (part.step.model, *asking.models) if name is not None]
        alone = replace(
            sole or Asking(optimizers=OF_MODULES, saved_as={"kind": MODULE}),
            answers_anything=all(asking.answers_anything for part, asking in parts if part.answers),
        )
        return replace(
            alone,
            engine_needs=self.needs_of(None),
            words=words.words,
            pictures=max((asking.pictures or 0 for _, asking in parts), default=0) or None,
            asked_groups=words.asked_groups,
            option_text_norm=words.option_text_norm,
            could_be_guided=(sole or words).could_be_guided,
            draws=any(
                (part.step.samples is not None or asking.draws)
                and part.step.temperature is None
                and part.step.model is None
                for part, asking in parts
            ),
            sets_temperature=any(part.step.temperature or asking.sets_temperature for part, asking in parts),
            asks_repeatedly=sole is not None and self.votes,
            answers_tasks=any(asking.answers_tasks for _, asking in parts),
            optimizers=() if judges else alone.optimizers,
            codes=tuple(dict.fromkeys([*codes, *self.combining_code])),
            models=tuple(dict.fromkeys(models)),
            retrieval=self._find_retrieval(),
            local_reader=self._find_reader(),
            module_adapter=next((asking.module_adapter for _, asking in parts if asking.module_adapter), None),
            adapter_code=next((asking.adapter_code for _, asking in parts if asking.adapter_code), None),
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return the same with other values in the fields that `update` names."""
        changed = super().model_copy(update=update, deep=deep)
        for computed in ("asking", "parts"):
            vars(changed).pop(computed, None)
        return changed

    @property
    def combining_code(self) -> tuple[str, ...]:
        """The user's own functions that combine branches."""
        rules = [step.combine for _, step in walk_steps(self.steps) if isinstance(step, AllStep)]
        return tuple(dict.fromkeys(rule for rule in rules if rule is not None and rule not in COMBINE))

    def needs_of(self, model: str | None) -> EngineNeeds:
        """Return what the requests to one of the `models` hold; None: the experiment's `model`."""
        needs = (
            part.program.needs_of(None if part.step.model == model else model)
            for part in self.parts.values()
            if model in (part.step.model, *part.program.asking.models)
        )
        return reduce(or_, needs, NO_NEEDS)

    def _find_retrieval(self) -> RetrievalSettings | None:
        """Return how its passages are looked up; None where it sees none. All its steps look up in one way."""
        step, retriever = self.look_up, getattr(self, "retriever", None)
        if step is not None:
            own = [RetrievalSettings(retriever or RetrieverSpec(), step.k, step.query, step.query_language)]
        else:
            counts = [step.k for _, step in walk_steps(self.steps) if isinstance(step, RetrieveStep)]
            is_used = isinstance(self, ModuleSpec) and (
                self._modules_look_up or all(part.program.asking.retrieval is None for part in self.parts.values())
            )
            counts += [2] if retriever is not None and not counts and is_used else []
            own = [RetrievalSettings(retriever or RetrieverSpec(), max(counts), "written", None)] if counts else []
        settings = [*own]
        settings += [
            part.program.asking.retrieval for part in self.parts.values() if part.program.asking.retrieval is not None
        ]
        most = max((one.k for one in settings if one.query == "written"), default=0)
        ways = list(dict.fromkeys(replace(one, k=most) if one.query == "written" else one for one in settings))
        if len(ways) > 1:
            raise ValueError(
                "its steps look up passages in several ways, and a program may use only one: use one program that "
                "retrieves, or the steps `retrieve` and `ask`"
            )
        return ways[0] if ways else None

    @property
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
        steps = [step for _, step in walk_steps(self.steps)]
        uses_own = any(isinstance(step, UseStep) and isinstance(step.use, OwnSpec) for step in steps)
        return uses_own or any(
            isinstance(step, AskStep) and (step.by == "react" or step.by not in BY) for step in steps
        )

    def _find_reader(self) -> ReaderSettings | None:
        """Return the local model that its steps have texts read by; None where they have none read."""
        cites = [getattr(part.step, "cite", None) for part in self.parts.values()]
        readers = {part.program.asking.local_reader for part in self.parts.values()}
        readers = (readers | {cite.local_reader for cite in cites if cite is not None}) - {None}
        if len(readers) > 1:
            raise ValueError(
                "its steps use several local models as readers, and a program may use only one: keep one of them"
            )
        return next(iter(readers), None)

    @property
    def votes(self) -> bool:
        """Whether several answers to a question become one, which takes numbered options."""
        steps = [step for _, step in walk_steps(self.steps)]
        combines = any(isinstance(step, AllStep) and step.combine is not None for step in steps)
        return combines or any(part.step.outer_samples or part.step.outer_orders for part in self.parts.values())

    def budget(self, of_model: int | None) -> Any:
        """Return the tokens a reply may have; of several parts by their names, and by group of their words."""
        if self.sole is not None:
            return self.sole.program.budget(of_model)
        tokens: dict[str, int] = {}
        for part in self.parts.values():
            of_part = part.program.budget(of_model)
            if isinstance(of_part, Mapping):
                tokens |= {f"{part.name}.{group}": count for group, count in of_part.items()}
            elif of_part is not None:
                tokens[part.name] = of_part
        return tokens

    def facts(self, language: Language) -> dict[str, Any]:
        """Describe the steps, whatever kind they are of, without paths: what files hold is told beside them."""
        return {"steps": list(_described(self.steps, "steps", self.parts, language))}


class FlowSpec(StepsSpec, ModuleSpec):
    """Steps that a spec writes."""

    kind: Literal["flow"] = "flow"
    name: str = Field(default="flow", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """What it is called in tables and folders."""
    steps: Steps
    """In the order in which they are done."""
    reading: Reading = "strict"
    """How replies are scored where the format is missing: `strict`, or `lenient` as a careful marker would."""

    @model_validator(mode="after")
    def _looks_up_by_steps(self) -> Self:
        if self.query != "stem" or self.query_language is not None:
            raise ValueError(
                "query and query_language belong to other kinds of program: here the step `retrieve` "
                "names the text to look up"
            )
        return self


def _judges(program: ProgramSpec) -> bool:
    """Return whether a program asks beside the question, or has a local model read."""
    inner = program.parts.values() if isinstance(program, StepsSpec) else ()
    is_aside = isinstance(program, AsideSpec) or program.asking.local_reader is not None
    return is_aside or any(_judges(part.program) for part in inner)


_STEM = ("stem", None)
_CONTENT = {"words", "instructions", "demos", "by", "combine", "use", "do", "all", "cite"}
_OF_ASKED = {"max_tokens", "answer_format", "answer_form"}
"""Fields of steps that are told otherwise: what they name by its content, steps one by one, or as what is asked."""


def _described(steps: Steps, place: str, parts: Mapping[str, StepPart], language: Language) -> Iterator[dict[str, Any]]:
    for position, step in enumerate(steps):
        step_place = f"{place}.{position}"
        tree = step.model_dump(mode="json", exclude=_CONTENT | _OF_ASKED)
        if isinstance(step, RetrieveStep):
            tree["query_language"] = step.query_language or language
        if isinstance(step, AskStep) and step.by in BY:
            tree["by"] = step.by
        if isinstance(step, AskStep) and step.cite is not None:
            tree["cites"] = True
        if isinstance(step, AllStep):
            tree["combine"] = step.combine if step.combine in COMBINE else "own" if step.combine else None
        if isinstance(step, AskingStep):
            tree["asked"] = parts[step_place].program.facts(language)
        for inner, branch in step.branches.items():
            tree[inner] = list(_described(branch, f"{step_place}.{inner}", parts, language))
        yield tree


def _part_name(step: AskingStep, program: ProgramSpec) -> str:
    """Return what the predictors of a step are called by: its field, or the program's kind."""
    if step.rename or step.add:
        return str(step.rename or step.add)
    if isinstance(step, AskStep):
        return next(iter(step.signature.outputs))
    kind = program.kind.rpartition(":")[2] if isinstance(program, OwnSpec) else program.kind
    return re.sub(r"\W", "_", kind)
