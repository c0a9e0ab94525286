"""One question's way through the steps of a program: what each step reads, asks and writes.

The steps are done one after the other, those of `all` too: other questions fill the servers meanwhile, and the calls of
a question have one order, by which stored replies are read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import dspy

from medexam.errors import ProgramFaultError
from medexam.predictions import FollowUp, Reason
from medexam.programs.base import AskingProgram, ExamProgram, asked_by, current_lm
from medexam.programs.citing import CitingPassages
from medexam.programs.controls import Abstention
from medexam.programs.fields import Asked, question_fields
from medexam.programs.lm import find_lm
from medexam.programs.own import OwnProgram
from medexam.programs.program_output import PassageVerdict, ProgramOutput, kept_passage
from medexam.programs.retrieving import PassageFinder, PassageSearch, shown_text
from medexam.programs.steps.asides import Aside, AskedAside, BehindField
from medexam.programs.steps.branches import BranchRule, combine_branches
from medexam.programs.wrapping import Reordered, Voting
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.specs.programs.asking_steps import PASSAGES, AskingStep, AskStep, StepSpec
from medexam.specs.programs.flows import StepPart, StepsSpec
from medexam.specs.programs.step_fields import added_lists
from medexam.specs.programs.steps import (
    AllStep,
    ConditionStep,
    EachStep,
    RepeatStep,
    RetrieveStep,
    WhenStep,
    walk_steps,
)
from medexam.specs.programs.steps import Steps as StepSpecs


class _EmptyFieldError(Exception):
    """A step would read a field that a reply left empty."""


@dataclass(slots=True)
class _Scope:
    """The fields that a step sees."""

    fields: dict[str, Any]
    answering: ProgramOutput | None = None
    """The prediction that wrote the last `answer`."""

    def inside(self, **fields: Any) -> "_Scope":
        """Return a scope of its own whose fields are those here and these; lists that are added to are the same."""
        return _Scope({**self.fields, **fields}, self.answering)


class StepPlan:
    """What is the same for all questions of a program of steps."""

    def __init__(
        self,
        spec: StepsSpec,
        search: PassageSearch | None,
        rules: Mapping[str, BranchRule],
        finder: PassageFinder | None,
    ) -> None:
        """Plan: `search` looks up passages, `finder` those of the question's stem (None where no step does), and
        `rules` combine branches, by name.
        """
        self.steps = spec.steps
        self.finder = finder
        self.look_up = spec.look_up
        self.looks_again = any(
            isinstance(inner, RetrieveStep)
            for _, step in walk_steps(spec.steps)
            if isinstance(step, RepeatStep)
            for _, inner in walk_steps(step.do)
        )
        """Whether passages are looked up round after round."""
        self.parts: Mapping[str, StepPart] = spec.parts
        self.lists = tuple(added_lists(spec.steps))
        self.search = search
        self.rules = rules
        # What is asked alike is drawn under other seeds.
        self.askings = {
            place: f"{part.step.model} {part.step.temperature} {part.program.model_dump_json()}"
            for place, part in self.parts.items()
        }
        self.replies = {
            place: getattr(part.program, "samples", 1) * (part.step.outer_samples or 1)
            for place, part in self.parts.items()
        }


@dataclass(slots=True)
class Course:
    """What one question has been asked so far, and asks next."""

    plan: StepPlan
    programs: Mapping[str, dspy.Module]
    """Attribute of each part -> its program."""
    question: Asked
    hits: dict[str, Hit] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    """How many replies were drawn of what is asked alike."""
    found: dict[tuple[str, int], list[Hit]] = field(default_factory=dict)
    """Text that was looked up, and how many passages -> these."""
    rounds: list[list[FollowUp]] = field(default_factory=list)
    """What was looked up in each round of a `repeat`."""
    verdicts: dict[str, PassageVerdict] = field(default_factory=dict)
    """Id of a passage -> whether `each` kept it."""
    looked_up: bool = False

    async def run(self) -> ProgramOutput:
        """Do all steps."""
        self.looked_up = self.plan.looks_again
        # Each list that steps add to is there from the beginning, and one for all of them.
        scope = _Scope({name: [] for name in self.plan.lists})
        try:
            await self._do(self.plan.steps, "steps", scope)
        except _EmptyFieldError:
            # What was reasoned before no answer, and why there is none, is kept.
            if scope.answering is not None and (scope.answering.answer, scope.answering.text) != (None, None):
                scope.answering = None
        return self._output(scope)

    async def _do(self, steps: StepSpecs, place: str, scope: _Scope) -> None:
        for position, step in enumerate(steps):
            await self._do_step(step, f"{place}.{position}", scope)

    async def _do_step(self, step: StepSpec, place: str, scope: _Scope) -> None:
        fields = scope.fields
        match step:
            case AskingStep():
                await self._ask(self.plan.parts[place], scope)
            case RetrieveStep():
                await self._retrieve(step, scope)
            case EachStep():
                await self._each(step, place, scope)
            case RepeatStep():
                for _ in range(step.repeat):
                    self.rounds += [[]] if self.plan.looks_again else []
                    await self._do(step.do, f"{place}.do", scope)
                    if step.until is not None and fields.get(step.until):
                        break
                    if step.as_long_as is not None and not fields.get(step.as_long_as):
                        break
            case ConditionStep():
                if _is_true(step.condition, scope, self.question) == isinstance(step, WhenStep):
                    await self._do(step.do, f"{place}.do", scope)
                elif step.otherwise is not None:
                    await self._do(step.otherwise, f"{place}.else", scope)
            case AllStep():
                await self._all(step, place, scope)

    async def _each(self, step: EachStep, place: str, scope: _Scope) -> None:
        """Do steps for each entry, and keep those for which a field of these is true."""
        entries = _value(step.each, scope, self.question)[: step.most]
        kept_entries = []
        first = step.do[0]
        if isinstance(first, RetrieveStep) and first.retrieve == step.name:
            # All at once: a search has most of its costs once.
            await self._look_up([str(entry) for entry in entries], first.k)
        for entry in entries:
            inner = scope.inside(**{step.name: entry})
            await self._do(step.do, f"{place}.do", inner)
            keeps = step.keep is None or bool(inner.fields.get(step.keep))
            kept_entries += [entry] if keeps else []
            if step.keep is not None and isinstance(entry, Hit):
                support = inner.fields.get("support")
                verdict = PassageVerdict(keeps, support if isinstance(support, float) else None)
                self.verdicts[entry.passage.id] = verdict
        scope.fields[step.each] = kept_entries

    async def _ask(self, part: StepPart, scope: _Scope) -> None:
        """Ask what a step asks, and write its outputs."""
        step, program = part.step, self.programs[part.attribute]
        inputs = _given(step, scope)
        if step.samples is not None and step.outer_samples and not isinstance(self.question, Question):
            raise ProgramFaultError(
                "TypeError", f"{self.question.key} has no numbered options, and votes of `samples` need them"
            )
        is_changed = step.model is not None or step.temperature is not None
        lm = find_lm(step.model, step.temperature) if is_changed else None
        asking = self.plan.askings[part.place]
        if isinstance(program, Aside):
            # Other passages are another prompt, which needs no seed of its own.
            asking = f"{asking} {[shown_text(value) for value in inputs.values()]}"
        reply_count = later = self.times.get(asking, 0)
        if isinstance(program, OwnProgram) or (later and not (lm or current_lm()).kwargs.get("temperature")):
            # Equal calls of a module get seeds of their own as they are made.
            later = 0
        # Steps inside may ask alike too.
        inner = (
            program.calls_for(self.question) if isinstance(part.program, StepsSpec) and part.program.sole is None else 1
        )
        self.times[asking] = reply_count + inner * self.plan.replies[part.place]
        with asked_by(lm, seeds_later=later):
            if isinstance(program, Aside):
                outcome = await program.answer_given(self.question, inputs, [text for text, _ in self.found])
            else:
                outcome = await repeated(step, _Given(program, inputs)).answer(self.question)
        self.looked_up |= outcome.hits is not None
        self.hits |= {hit.passage.id: hit for hit in outcome.hits or ()}
        if isinstance(program, Abstention) and scope.answering is not None:
            outcome = scope.answering.copy(answer=None, text=None, reason=Reason.ABSTAINED, scores=None)
        self._write(step, outcome, scope)
        if isinstance(step, AskStep) and self.rounds:
            self._note(step, inputs, outcome)
        if isinstance(program, AskedAside) and step.add is not None and None not in (outcome.fields or {}).values():
            entries = scope.fields[step.add]
            entries[-1] = program.entry(self.question, inputs, entries[-1])

    def _note(self, step: AskStep, inputs: Mapping[str, Any], outcome: ProgramOutput) -> None:
        """Keep what was made of the passages of a query that was looked up in this round."""
        value = (outcome.fields or {}).get(next(iter(step.signature.outputs)))
        for place, follow_up in enumerate(self.rounds[-1]):
            if follow_up.answer is None and isinstance(value, str) and follow_up.query in inputs.values():
                self.rounds[-1][place] = follow_up.model_copy(update={"answer": value})

    def _write(self, step: AskingStep, outcome: ProgramOutput, scope: _Scope) -> None:
        answer = outcome.answer if isinstance(self.question, Question) else outcome.text
        if isinstance(step, AskStep):
            outputs = outcome.fields or {"rationale": outcome.rationale}
            values = {name: outputs.get(name) for name in step.signature.outputs}
            values |= {"answer": answer} if "answer" in values else {}
        else:
            values = {"answer": answer, "rationale": outcome.rationale}
        if step.add is not None or step.rename is not None:
            name = step.add or step.rename
            value = values["answer"] if "answer" in values else next(iter(values.values()))
            if step.add is None:
                values = {str(name): value}
            else:
                entries = _value(step.add, scope, self.question)
                entries += [] if value is None else [str(value)]
                return
        scope.fields |= values
        if "answer" in values:
            scope.answering = outcome

    async def _retrieve(self, step: RetrieveStep, scope: _Scope) -> None:
        self.looked_up = True
        if step is self.plan.look_up and self.plan.finder is not None:
            hits_by_query = [list(self.plan.finder.find(self.question))]
        else:
            text = _value(step.retrieve, scope, self.question)
            queries = [str(query) for query in (text if isinstance(text, list) else [text]) if str(query).strip()]
            hits_by_query = await self._look_up(queries, step.k)
            if self.rounds:
                kept_hits = [tuple(map(kept_passage, hits)) for hits in hits_by_query]
                self.rounds[-1] += [
                    FollowUp(query=query, passages=hits) for query, hits in zip(queries, kept_hits, strict=True)
                ]
        hits = {hit.passage.id: hit for query_hits in hits_by_query for hit in query_hits}
        self.hits |= {key: hit for key, hit in hits.items() if key not in self.hits}
        if step.add is None:
            scope.fields[step.rename or "passages"] = list(hits.values())
            return
        passages = _value(step.add, scope, self.question)
        passage_ids = {hit.passage.id for hit in passages}
        passages += [hit for key, hit in hits.items() if key not in passage_ids]

    async def _look_up(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the passages of texts; what was looked up for this question before is known."""
        assert self.plan.search is not None  # noqa: S101 - the builder has looked
        new = [query for query in dict.fromkeys(queries) if query.strip() and (query, k) not in self.found]
        if new:
            hits_by_query = await self.plan.search.asearch(new, k)
            self.found |= {(query, k): hits for query, hits in zip(new, hits_by_query, strict=True)}
        return [self.found.get((query, k), []) for query in queries]

    async def _all(self, step: AllStep, place: str, scope: _Scope) -> None:
        """Do branches, each from the fields as they were before, and put together what they wrote."""
        before = scope.inside()
        branches: list[_Scope] = []
        copies: list[dict[str, Any]] = []
        for position, branch in enumerate(step.all):
            lists = {name: before.fields[name] for name in self.plan.lists}
            copies.append({name: list(entries) for name, entries in lists.items() if entries is not None})
            inner = before.inside(**copies[-1])
            inner.answering = None if step.combine is not None else before.answering
            try:
                await self._do(branch, f"{place}.all.{position}", inner)
            except _EmptyFieldError:
                if step.combine is None:
                    raise
                inner.answering = None
            branches.append(inner)
        self._add_up(copies, branches, scope)
        if step.combine is not None:
            outcomes = [inner.answering or ProgramOutput(answer=None, rationale=None) for inner in branches]
            outcome = combine_branches(step.combine, self.plan.rules, self.question, outcomes)
            scope.fields |= {"answer": outcome.answer, "rationale": outcome.rationale}
            scope.answering = outcome
            return
        for inner in branches:
            scope.fields |= {
                name: value
                for name, value in inner.fields.items()
                if name not in self.plan.lists and before.fields.get(name, before) is not value
            }
            if inner.answering is not before.answering:
                scope.answering = inner.answering

    def _add_up(self, copies: Sequence[Mapping[str, Any]], branches: Sequence[_Scope], scope: _Scope) -> None:
        """Add what the branches added to their copies of each list, in their order.

        A branch that keeps only some entries has another list than its copy.
        """
        for name in copies[0]:
            count, entries = len(scope.fields[name]), scope.fields[name]
            pairs = [(own[name], inner.fields[name]) for own, inner in zip(copies, branches, strict=True)]
            kept_entries = next((now for own, now in pairs if now is not own), entries[:count])
            added_entries = [entry for own, now in pairs if now is own for entry in now[count:]]
            entries[:] = [*kept_entries, *added_entries]

    def _output(self, scope: _Scope) -> ProgramOutput:
        """Return the prediction that answered last, with everything that was asked and found."""
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
            if self.plan.looks_again:
                fields["rounds"] = tuple(tuple(follow_ups) for follow_ups in self.rounds if follow_ups)
        return outcome.copy(**fields, fields=None)


class _Given(AskingProgram):
    """A part with what it is called with beside the question."""

    def __init__(self, program: dspy.Module, fields: Mapping[str, Any]) -> None:
        super().__init__(getattr(program, "adapter", None))
        self._part = program
        self._fields = fields

    async def answer(self, question: Any) -> ProgramOutput:
        """Ask the part."""
        part = self._part
        if isinstance(part, OwnProgram):
            return await part.answer_with(question, self._fields)
        if isinstance(part, CitingPassages) and part.finder is None:
            return await part.answer_citing(question, self._fields[PASSAGES])
        if isinstance(part, BehindField):
            return await part.answer_behind(question, shown_text(self._fields[part.field]))
        if isinstance(part, AskingProgram):
            return await part.answer(question)
        return ProgramOutput.of(await part.acall(question=question))


def repeated(step: AskingStep, program: AskingProgram) -> AskingProgram:
    """Return a program that is asked as often as the samples and orders of a step say."""
    if step.outer_samples is not None:
        program = Voting(cast("ExamProgram", program), step.outer_samples)
    if step.outer_orders is not None:
        program = Reordered(cast("ExamProgram", program), step.outer_orders)
    return program


def _given(step: AskingStep, scope: _Scope) -> dict[str, Any]:
    """Return the fields that a step reads; raises `_EmptyFieldError` if one of its signature is empty."""
    if not isinstance(step, AskStep):
        return scope.fields
    fields = {name: scope.fields[name] for name in step.signature.inputs if name in scope.fields}
    if None in fields.values():
        raise _EmptyFieldError
    return fields


def _value(name: str, scope: _Scope, question: Asked) -> Any:
    """Return a field of the steps, or of the question; raises `_EmptyFieldError` if it is empty."""
    value = scope.fields[name] if name in scope.fields else _of_question(name, question)
    if value is None:
        raise _EmptyFieldError
    return value


def _is_true(name: str, scope: _Scope, question: Asked) -> bool:
    return bool(scope.fields[name] if name in scope.fields else _of_question(name, question))


def _of_question(name: str, question: Asked) -> Any:
    return question_fields(question, {name: str, "options": str}, ())[name]
