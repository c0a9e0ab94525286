"""A program that does the steps of a spec over one set of named fields.

The steps are done one after the other, those of `all` too: other questions fill the servers meanwhile, and the calls of
a question have one order, by which stored replies are read again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from types import SimpleNamespace
from typing import Any, cast

import dspy

from medexam.errors import ProgramFaultError
from medexam.predictions import FollowUp, Reason
from medexam.programs.base import AskingProgram, ExamProgram, asked_by, current_lm
from medexam.programs.controls import Abstention
from medexam.programs.fields import Asked, question_fields
from medexam.programs.kept import shared_draws
from medexam.programs.lm import find_lm
from medexam.programs.own import OwnProgram
from medexam.programs.program_output import ProgramOutput, kept_passage
from medexam.programs.retrieving import PassageFinder, PassageSearch, shown_text
from medexam.programs.steps.branches import BranchRule, combine_branches
from medexam.programs.steps.parts import GIVEN, AskedAside, Given
from medexam.programs.wrapping import Reordered, Voting, orders_of
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.specs.programs.fields import added_lists
from medexam.specs.programs.flows import FlowSpec, StepPart
from medexam.specs.programs.steps import (
    QUESTION_FIELDS,
    AllStep,
    AskingStep,
    AskStep,
    Condition,
    ConditionStep,
    DropStep,
    EachStep,
    Limit,
    RepeatStep,
    RetrieveStep,
    Steps,
    StepSpec,
    WhenStep,
    walk_steps,
)

_ALL = ""
"""Stands for all models."""


def repeated(step: AskingStep, program: AskingProgram) -> AskingProgram:
    """Return a program that is asked as often as the samples and orders of a step say, if it has none of its own."""
    if step.samples is not None:
        program = Voting(cast("ExamProgram", program), step.samples)
    if step.orders is not None:
        program = Reordered(cast("ExamProgram", program), step.orders)
    return program


class StepProgram(AskingProgram):
    """Does steps; its predictors are named after them."""

    def __init__(
        self,
        spec: FlowSpec,
        programs: Mapping[str, dspy.Module],
        search: PassageSearch | None,
        rules: Mapping[str, BranchRule],
        finder: PassageFinder | None,
    ) -> None:
        """Make the program: `programs` are those of the parts, by place, `search` looks up passages and `finder` those
        of a question's stem (None where no step does), and `rules` are the user's own functions that combine branches,
        by name.
        """
        super().__init__(dspy.ChatAdapter(use_json_adapter_fallback=False))
        self.spec = spec
        self._parts = spec.parts
        self._plan = SimpleNamespace(
            spec=spec,
            parts=spec.parts,
            look_up=spec.look_up,
            finder=finder,
            search=search,
            rules=rules,
            lists=tuple(added_lists(spec.steps)),
            # Whether passages are looked up round after round.
            looks_again=any(
                isinstance(step, RepeatStep)
                and any(isinstance(inner, RetrieveStep) for _, inner in walk_steps(step.do))
                for _, step in walk_steps(spec.steps)
            ),
            # What is asked alike is drawn under other seeds.
            askings={place: _describe_asking(part) for place, part in spec.parts.items()},
            replies={
                place: getattr(part.program, "samples", 1) * (part.step.samples or 1)
                for place, part in spec.parts.items()
            },
        )
        is_one_call = len(spec.steps) == 1 and isinstance(spec.steps[0], AskStep) and not spec.votes
        self._records = not is_one_call and any(isinstance(program, OwnProgram) for program in programs.values())
        """Whether calls of modules share their seeds, so that equal ones are drawn anew."""
        self.reads_options = any(getattr(program, "reads_options", False) for program in programs.values()) and not any(
            isinstance(program, OwnProgram) and program.may_ask_again for program in programs.values()
        )
        # A module of their own: a step may be called as anything, and this one has names already.
        self.programs = dspy.Module()
        for place, program in programs.items():
            setattr(self.programs, f"{self._parts[place].name}_", program)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """List each predictor under the name of its step, with its place in the program that the step asks."""
        return [
            # What the user's code or a signature asks, as if it were the step itself.
            (f"{part.name}.{name}".replace(".module", "", 1 if isinstance(program, OwnProgram) else 0), parameter)
            for part, program in ((part, vars(self.programs)[f"{part.name}_"]) for part in self._parts.values())
            for name, parameter in program.named_parameters()
        ]

    def calls_for(self, question: Asked) -> int:
        """Count the most that it may take: every step, as often as it may be done."""
        return self.count_calls(question)[_ALL]

    def calls_of(self, question: Asked, model: str | None) -> int:
        """Count the most that one model may be asked; there are branches that ask more of one and less of another."""
        return self.count_calls(question)[model]

    def count_calls(self, question: Asked) -> Counter[str | None]:
        """Count the most calls of each model by name, None the run's own, and of all."""
        return self._count(self.spec.steps, "steps", question, {})

    async def answer(self, question: Asked) -> ProgramOutput:
        """Do all steps."""
        # A module of DSPy's takes a function's time for each of its attributes.
        attributes = vars(self)
        with shared_draws() if self._records else nullcontext():
            return await _Course(attributes["_plan"], vars(attributes["programs"]), question).run()

    def _count(self, steps: Steps, place: str, question: Asked, lists: dict[str, int]) -> Counter[str | None]:
        """Count the calls of steps; `lists` says how many entries passages have at most."""
        calls: Counter[str | None] = Counter()
        for position, step in enumerate(steps):
            step_place, times = f"{place}.{position}", 1
            inner = [
                self._count(branch, f"{step_place}.{name}", question, lists) for name, branch in step.branches.items()
            ]
            match step:
                case AskingStep():
                    inner, times = [self._count_part(self._parts[step_place], question)], step.samples or 1
                    if step.orders is not None and isinstance(question, Question):
                        times *= len(orders_of(question, step.orders))
                case RetrieveStep(add=None):
                    lists[step.rename or "passages"] = step.k
                case ConditionStep():
                    inner = [reduce(or_, inner)]
                case EachStep():
                    times = step.most or lists.get(step.each, len(question.options) if step.each == "options" else 1)
                case RepeatStep():
                    times = step.repeat
            for counts in inner:
                calls.update({name: count * times for name, count in counts.items()})
        return calls

    def _count_part(self, part: StepPart, question: Asked) -> Counter[str | None]:
        program = vars(self.programs)[f"{part.name}_"]
        if not isinstance(program, AskingProgram):
            return Counter()
        count = 0 if isinstance(program, StepProgram) else program.calls_for(question)
        calls = (
            program.count_calls(question) if isinstance(program, StepProgram) else Counter({_ALL: count, None: count})
        )
        own = calls.pop(None, 0)
        return calls + Counter({part.step.model: own})


def _describe_asking(part: StepPart) -> str:
    step: Any = part.step
    signature = (step.ask, step.by) if isinstance(step, AskStep) and step.words is None else ()
    return f"{step.model} {step.temperature} {signature} {part.program.model_dump_json()}"


class _EmptyFieldError(Exception):
    """A step would read a field that a reply left empty."""


@dataclass(slots=True)
class _Scope:
    """What a step sees."""

    question: Asked
    fields: dict[str, Any]
    answering: ProgramOutput | None = None
    """The prediction that wrote the last `answer`."""

    def inside(self, **fields: Any) -> "_Scope":
        """Return a scope of its own whose fields are those here and these; lists that are added to are the same."""
        return _Scope(self.question, {**self.fields, **fields}, self.answering)

    def value(self, name: str) -> Any:
        """Return a field of the steps, or of the question."""
        if name in self.fields:
            return self.fields[name]
        return question_fields(self.question, {name: str, "options": str}, ())[name]

    def read(self, name: str) -> Any:
        """Return a field; raises `_EmptyFieldError` if it is empty."""
        if (value := self.value(name)) is None:
            raise _EmptyFieldError
        return value

    def holds(self, condition: Condition) -> bool:
        """Return whether a condition holds; none does of a number that is missing."""
        if not isinstance(condition, Limit):
            return bool(self.value(condition) if condition in {*self.fields, *QUESTION_FIELDS} else None)
        value = self.fields.get(condition.field)
        if not isinstance(value, int | float):
            return False
        return value < condition.below if condition.below is not None else value > cast("float", condition.above)

    def leave(self, numbers: Sequence[int]) -> None:
        """Leave the options with these numbers, if they are a choice, and no others."""
        question: Any = self.question
        options = tuple(
            option for option in getattr(question, "options", ()) if getattr(option, "number", 0) in numbers
        )
        if len(options) > 1:
            self.question = question.model_copy(update={"options": options})


@dataclass(slots=True)
class _Course:
    """One question's way through the steps: what it was asked so far."""

    plan: Any
    """What is the same for all questions."""
    programs: Mapping[str, Any]
    question: Asked
    hits: dict[str, Hit] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    """How many replies were drawn of what is asked alike."""
    hits_by_query: dict[tuple[str, int], list[Hit]] = field(default_factory=dict)
    """Text that was looked up, and how many passages -> these."""
    rounds: list[list[FollowUp]] = field(default_factory=list)
    """What was looked up in each round of a `repeat`."""
    verdicts: dict[str, bool] = field(default_factory=dict)
    """Id of a passage -> whether `each` kept it."""
    looked_up: bool = False

    async def run(self) -> ProgramOutput:
        """Do all steps, and return the prediction that answered last with everything that was asked and found."""
        plan = self.plan
        self.looked_up = plan.looks_again
        # Each list that steps add to is there from the beginning, and one for all of them.
        scope = _Scope(self.question, {name: [] for name in plan.lists})
        try:
            await self._do(plan.spec.steps, "steps", scope)
        except _EmptyFieldError:
            # What was reasoned before no answer, and why there is none, is kept.
            if scope.answering is not None and (scope.answering.answer, scope.answering.text) != (None, None):
                scope.answering = None
        outcome = scope.answering or ProgramOutput(answer=None, rationale=None)
        fields: dict[str, Any] = {}
        if self.looked_up:
            fields |= {"hits": list(self.hits.values()), "passages_cut": outcome.passages_cut or 0}
            if self.verdicts.keys() >= self.hits.keys() != set():
                fields["verdicts"] = [self.verdicts[key] for key in self.hits]
            elif outcome.verdicts is not None and len(outcome.verdicts) != len(self.hits):
                fields["verdicts"] = None
            if isinstance(supported := scope.fields.get("supported"), bool):
                fields["supported"] = supported
            if plan.looks_again:
                fields["rounds"] = tuple(tuple(follow_ups) for follow_ups in self.rounds if follow_ups)
        return outcome.copy(**fields, fields=None)

    async def _do(self, steps: Steps, place: str, scope: _Scope) -> None:
        for position, step in enumerate(steps):
            await self._do_step(step, f"{place}.{position}", scope)

    async def _do_step(self, step: StepSpec, place: str, scope: _Scope) -> None:  # noqa: C901 - a case for each step
        match step:
            case AskingStep():
                await self._ask(self.plan.parts[place], scope)
            case RetrieveStep():
                await self._retrieve(step, scope)
            case DropStep():
                options = scope.read(step.drop)
                numbers = set(options if isinstance(options, list) else [options])
                scope.leave(
                    [number for number in getattr(scope.question, "option_numbers", ()) if number not in numbers]
                )
            case EachStep():
                await self._each(step, place, scope)
            case RepeatStep():
                for _ in range(step.repeat):
                    self.rounds += [[]] if self.plan.looks_again else []
                    await self._do(step.do, f"{place}.do", scope)
                    if step.until is not None and scope.holds(step.until):
                        break
                    if step.as_long_as is not None and not scope.holds(step.as_long_as):
                        break
            case ConditionStep():
                if scope.holds(getattr(step, step.step)) == isinstance(step, WhenStep):
                    await self._do(step.do, f"{place}.do", scope)
                elif step.otherwise is not None:
                    await self._do(step.otherwise, f"{place}.else", scope)
            case AllStep():
                await self._all(step, place, scope)

    async def _each(self, step: EachStep, place: str, scope: _Scope) -> None:
        """Do steps for each entry, and keep those for which a condition holds then."""
        entries = scope.read(step.each)
        entries = (entries.splitlines() if step.each == "options" else entries)[: step.most]
        kept_places = []
        first = step.do[0]
        if isinstance(first, RetrieveStep) and first.retrieve == step.name:
            # All at once: a search has most of its costs once.
            await self._search([str(entry) for entry in entries], first.k)
        for position, entry in enumerate(entries):
            inner = scope.inside(**{step.name: entry})
            await self._do(step.do, f"{place}.do", inner)
            keeps = step.keep is None or inner.holds(step.keep)
            kept_places += [position] if keeps else []
            if step.keep is not None and isinstance(entry, Hit):
                self.verdicts[entry.passage.id] = keeps
        if step.each == "options":
            numbers = getattr(scope.question, "option_numbers", ())
            scope.leave([numbers[position] for position in kept_places] if numbers else ())
        else:
            scope.fields[step.each] = [entries[position] for position in kept_places]

    async def _ask(self, part: StepPart, scope: _Scope) -> None:
        """Ask what a step asks, and write its outputs."""
        step, program, question = part.step, self.programs[f"{part.name}_"], scope.question
        inputs = scope.fields
        if isinstance(step, AskStep):
            inputs = {name: inputs[name] for name in step.signature.inputs if name in inputs}
            if None in inputs.values():
                raise _EmptyFieldError
        if step.samples is not None and not isinstance(question, Question):
            raise ProgramFaultError(
                "TypeError", f"{question.key} has no numbered options, and votes of `samples` need them"
            )
        is_changed = step.model is not None or step.temperature is not None
        lm = find_lm(step.model, step.temperature) if is_changed else None
        asking = self.plan.askings[part.place]
        if isinstance(program, AskedAside):
            # Other passages are another prompt, which needs no seed of its own.
            asking = f"{asking} {[shown_text(value) for value in inputs.values()]}"
        reply_count = later = self.times.get(asking, 0)
        if isinstance(program, OwnProgram) or (later and not (lm or current_lm()).kwargs.get("temperature")):
            # Equal calls of a module get seeds of their own as they are made.
            later = 0
        # Steps inside may ask alike too.
        inner = program.calls_for(question) if isinstance(program, StepProgram) else 1
        self.times[asking] = reply_count + inner * self.plan.replies[part.place]
        token = GIVEN.set(Given(inputs, [text for text, _ in self.hits_by_query]))
        try:
            with asked_by(lm, seeds_later=later):
                if isinstance(program, AskingProgram):
                    outcome = await repeated(step, program).answer(question)
                else:
                    outcome = ProgramOutput.of(await program.acall(question=question))
        finally:
            GIVEN.reset(token)
        self.looked_up |= outcome.hits is not None
        self.hits |= {hit.passage.id: hit for hit in outcome.hits or ()}
        if isinstance(program, Abstention) and scope.answering is not None:
            outcome = scope.answering.copy(answer=None, text=None, reason=Reason.ABSTAINED, scores=None)
        self._write(step, outcome, scope)
        if isinstance(program, AskedAside) and step.add is not None and None not in (outcome.fields or {}).values():
            entries = scope.fields[step.add]
            entries[-1] = program.entry(question, inputs, entries[-1])
        if isinstance(step, AskStep) and self.rounds:
            # Keep what was made of the passages of a query that was looked up in this round.
            value = (outcome.fields or {}).get(next(iter(step.signature.outputs)))
            for place, follow_up in enumerate(self.rounds[-1]):
                if follow_up.answer is None and isinstance(value, str) and follow_up.query in inputs.values():
                    self.rounds[-1][place] = follow_up.model_copy(update={"answer": value})

    def _write(self, step: AskingStep, outcome: ProgramOutput, scope: _Scope) -> None:
        answer = outcome.answer if isinstance(self.question, Question) else outcome.text
        values: dict[str, Any] = {"answer": answer, "rationale": outcome.rationale}
        if isinstance(step, AskStep):
            outputs = outcome.fields or values
            values = {name: outputs.get(name) for name in step.signature.outputs}
            values |= {"answer": answer} if "answer" in values else {}
        scope.fields |= _vote_fields(outcome)
        value = values["answer"] if "answer" in values else next(iter(values.values()))
        if step.add is not None:
            entries = scope.read(step.add)
            entries += [] if value is None else [str(value)]
            return
        scope.fields |= values if step.rename is None else {step.rename: value}
        if step.rename is None and "answer" in values:
            scope.answering = outcome

    async def _retrieve(self, step: RetrieveStep, scope: _Scope) -> None:
        self.looked_up = True
        if step is self.plan.look_up and self.plan.finder is not None:
            hits_by_query = [list(self.plan.finder.find(self.question))]
        else:
            text = scope.read(step.retrieve)
            queries = [str(query) for query in (text if isinstance(text, list) else [text]) if str(query).strip()]
            hits_by_query = await self._search(queries, step.k)
            if self.rounds:
                kept_hits = [tuple(map(kept_passage, hits)) for hits in hits_by_query]
                self.rounds[-1] += [
                    FollowUp(query=query, passages=hits) for query, hits in zip(queries, kept_hits, strict=True)
                ]
        hits = {hit.passage.id: hit for query_hits in hits_by_query for hit in query_hits}
        self.hits |= {key: hit for key, hit in hits.items() if key not in self.hits}
        passages = [] if step.add is None else scope.read(step.add)
        passage_ids = {hit.passage.id for hit in passages}
        new = [hit for key, hit in hits.items() if key not in passage_ids]
        passages += [_number(hit, len(passages) + place) for place, hit in enumerate(new, 1)] if step.numbered else new
        scope.fields[step.add or step.rename or "passages"] = passages

    async def _search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the passages of texts; what was looked up for this question before is known."""
        new = [query for query in dict.fromkeys(queries) if query.strip() and (query, k) not in self.hits_by_query]
        if new:
            hits = await self.plan.search.asearch(new, k)
            self.hits_by_query |= {(query, k): hits for query, hits in zip(new, hits, strict=True)}
        return [self.hits_by_query.get((query, k), []) for query in queries]

    async def _all(self, step: AllStep, place: str, scope: _Scope) -> None:
        """Do branches, each from the fields as they were before, and put together what they wrote."""
        before, lists = scope.inside(), self.plan.lists
        branches: list[_Scope] = []
        copies: list[dict[str, Any]] = []
        for position, branch in enumerate(step.all):
            copies.append({name: list(before.fields[name]) for name in lists if before.fields[name] is not None})
            inner = before.inside(**copies[-1])
            inner.answering = None if step.combine is not None else before.answering
            try:
                await self._do(branch, f"{place}.all.{position}", inner)
            except _EmptyFieldError:
                if step.combine is None:
                    raise
                inner.answering = None
            branches.append(inner)
        for name in copies[0]:
            # A branch that keeps only some entries has another list than its copy.
            entries, pairs = (
                scope.fields[name],
                [(own[name], one.fields[name]) for own, one in zip(copies, branches, strict=True)],
            )
            count = len(entries)
            kept_entries = next((now for own, now in pairs if now is not own), entries[:count])
            entries[:] = [*kept_entries, *(entry for own, now in pairs if now is own for entry in now[count:])]
        if step.combine is not None:
            outcomes = [inner.answering or ProgramOutput(answer=None, rationale=None) for inner in branches]
            outcome = combine_branches(step.combine, self.plan.rules, scope.question, outcomes)
            scope.fields |= {"answer": outcome.answer, "rationale": outcome.rationale, **_vote_fields(outcome)}
            scope.answering = outcome
            return
        for inner in branches:
            scope.fields |= {
                name: value
                for name, value in inner.fields.items()
                if name not in lists and before.fields.get(name, before) is not value
            }
            if inner.answering is not before.answering:
                scope.answering = inner.answering


def _vote_fields(outcome: ProgramOutput) -> dict[str, Any]:
    """Return the fields that a vote writes; none where there was none."""
    if outcome.votes is None:
        return {}
    counts = {vote: outcome.votes.count(vote) for vote in outcome.votes if vote is not None}
    most = max(counts.values(), default=0)
    agreement = outcome.votes.count(outcome.answer) / len(outcome.votes) if counts else 0.0
    return {"agreement": agreement, "tied": list(counts.values()).count(most) > 1}


def _number(hit: Hit, number: int) -> Hit:
    passage = hit.passage
    return replace(hit, passage=replace(passage, title="", content=f"[{number}] {passage.text}"))
