"""A program that does the steps of a spec over one set of named fields.

The steps are done one after the other, those of `all` too: other questions fill the servers meanwhile, and the calls of
a question have one order, by which stored replies are read again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from medexam.errors import ProgramFaultError
from medexam.predictions import Prediction, Reading
from medexam.programs.base import AskingProgram, Call, Steps
from medexam.programs.fields import Asked, question_fields
from medexam.programs.orders import orders_of
from medexam.programs.own import OwnProgram
from medexam.programs.program_output import ProgramOutput
from medexam.programs.recording import shared_draws
from medexam.programs.replay import replay
from medexam.programs.retrieval.searching import LookUp, PassageSearch
from medexam.programs.steps.asking_part import asked_of, part_steps, within
from medexam.programs.steps.branches import BranchRule, combine_branches
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.signatures import Generation
from medexam.signatures.direct import find_lm
from medexam.specs.programs.flows import FlowSpec, StepPart
from medexam.specs.programs.step_fields import added_lists
from medexam.specs.programs.steps import (
    AllStep,
    AskingStep,
    AskStep,
    EachStep,
    RepeatStep,
    RetrieveStep,
    StepSpec,
    UnlessStep,
    WhenStep,
)
from medexam.specs.programs.steps import Steps as StepSpecs


class _EmptyFieldError(Exception):
    """A step would read a field that a reply left empty."""


@dataclass
class _Scope:
    """The fields that a step sees."""

    fields: dict[str, Any]
    answering: ProgramOutput | None = None
    """The prediction that wrote the last `answer`."""

    def inside(self, **fields: Any) -> "_Scope":
        """Return a scope of its own whose fields are those here and these; lists that are added to are the same."""
        return _Scope({**self.fields, **fields}, self.answering)


@dataclass
class _Course:
    """What one question has been asked so far."""

    question: Asked
    generations: list[Generation] = field(default_factory=list)
    hits: dict[str, Hit] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    """How many replies were drawn of what is asked alike."""


class StepProgram(AskingProgram):
    """Does steps; its predictors are named after them."""

    replayed = True

    def __init__(
        self,
        spec: FlowSpec,
        programs: Mapping[str, dspy.Module],
        search: PassageSearch | None,
        rules: Mapping[str, BranchRule],
    ) -> None:
        """Make the program: `programs` are those of the parts, by place, `search` looks up passages (None where no step
        does), and `rules` are the user's own functions that combine branches, by name.
        """
        super().__init__(dspy.ChatAdapter(use_json_adapter_fallback=False))
        self.spec = spec
        self._parts: Mapping[str, StepPart] = spec.parts
        self._lists = tuple(added_lists(spec.steps))
        self._records = any(isinstance(program, OwnProgram) for program in programs.values())
        # What is asked alike is drawn under other seeds.
        self._askings = {
            place: f"{part.step.model} {part.step.temperature} {part.program.model_dump_json()}"
            for place, part in self._parts.items()
        }
        self._search = search
        self._rules = rules
        # A module of their own: a step may be called as anything, and this one has names already.
        self.programs = dspy.Module()
        for place, program in programs.items():
            setattr(self.programs, f"{self._parts[place].name}_", program)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """List each predictor under the name of its step, with its place in the program that the step asks."""
        names = []
        for part in self._parts.values():
            program = self._program(part)
            for name, parameter in program.named_parameters():
                full_name = f"{part.name}.{name}"
                names.append(
                    # What the user's code or a signature asks, as if it were the step itself.
                    (full_name.replace(".module", "", 1) if isinstance(program, OwnProgram) else full_name, parameter)
                )
        return names

    def calls_for(self, question: Asked) -> int:
        """Count the most that it may take: every step, as often as it may be done."""
        return self._most_calls(self.spec.steps, "steps", question, {})

    def forward(self, question: Asked) -> ProgramOutput:
        """Answer one question."""
        with shared_draws():
            return super().forward(question)

    async def aforward(self, question: Asked) -> ProgramOutput:
        """Answer one question without blocking."""
        if not self._records:
            return await super().aforward(question)
        with shared_draws():
            return await super().aforward(question)

    def steps(self, question: Asked) -> Steps:
        """Yield the calls of all steps."""
        # Each list that steps add to is there from the beginning, and one for all of them.
        course, scope = _Course(question), _Scope({name: [] for name in self._lists})
        try:
            yield from self._do(self.spec.steps, "steps", scope, course)
        except _EmptyFieldError:
            scope.answering = None
        return _output(scope.answering, course)

    def read_again(self, question: Asked, stored: Prediction, reading: Reading = "strict") -> ProgramOutput | None:
        """Answer as the steps do if their calls are answered as they were; None if that cannot be told."""
        programs = [self._program(part) for part in self._parts.values()]
        if len(programs) == 1 and isinstance(programs[0], AskingProgram) and len(self.spec.steps) == 1:
            return programs[0].read_again(question, stored, reading)
        if reading == "lenient" or not all(isinstance(program, OwnProgram) for program in programs):
            # Replies of programs that begin them for the model are kept as they read, not as they came.
            return None
        return replay(self, question, [reply.text for reply in stored.generations or ()]).outcome

    def _program(self, part: StepPart) -> dspy.Module:
        # A module of DSPy's takes a function's time for each of its attributes.
        program: dspy.Module = vars(vars(self)["programs"])[f"{part.name}_"]
        return program

    def _do(self, steps: StepSpecs, place: str, scope: _Scope, course: _Course) -> Any:
        for position, step in enumerate(steps):
            yield from self._do_step(step, f"{place}.{position}", scope, course)

    def _do_step(self, step: StepSpec, place: str, scope: _Scope, course: _Course) -> Any:
        fields = scope.fields
        match step:
            case AskingStep():
                yield from self._ask(self._parts[place], scope, course)
            case RetrieveStep():
                yield from self._retrieve(step, scope, course)
            case EachStep():
                yield from self._each(step, place, scope, course)
            case RepeatStep():
                for _ in range(step.repeat):
                    yield from self._do(step.do, f"{place}.do", scope, course)
                    if step.until is not None and fields.get(step.until):
                        break
            case WhenStep():
                if _is_true(step.when, scope, course):
                    yield from self._do(step.do, f"{place}.do", scope, course)
            case UnlessStep():
                if not _is_true(step.unless, scope, course):
                    yield from self._do(step.do, f"{place}.do", scope, course)
            case AllStep():
                yield from self._all(step, place, scope, course)

    def _each(self, step: EachStep, place: str, scope: _Scope, course: _Course) -> Any:
        """Do steps for each entry, and keep those for which a field of these is true."""
        entries = _value(step.each, scope, course)[: step.most]
        kept_entries = []
        for entry in entries:
            inner = scope.inside(**{step.name: entry})
            yield from self._do(step.do, f"{place}.do", inner, course)
            if step.keep is None or inner.fields.get(step.keep):
                kept_entries.append(entry)
        scope.fields[step.each] = kept_entries

    def _ask(self, part: StepPart, scope: _Scope, course: _Course) -> Any:
        """Ask what a step asks, and write its outputs."""
        step, program = part.step, self._program(part)
        given = _given(step, scope)
        if step.outer_samples is not None and not isinstance(course.question, Question):
            raise ProgramFaultError(
                "TypeError", f"{course.question.key} has no numbered options, which samples vote on"
            )
        is_changed = step.model is not None or step.temperature is not None
        lm = find_lm(step.model, step.temperature) if is_changed else None
        later = course.times[self._askings[part.place]]
        if later and not (lm or dspy.settings.lm).kwargs.get("temperature"):
            later = 0
        course.times[self._askings[part.place]] += getattr(part.program, "samples", None) or step.outer_samples or 1
        steps = part_steps(step, program, course.question, given)
        outcome = ProgramOutput.of((yield from within(steps, program, lm, later)))
        outcome = outcome if step.model is None else asked_of(step.model, outcome)
        course.generations += outcome.generations or []
        course.hits |= {hit.passage.id: hit for hit in outcome.hits or ()}
        self._write(step, outcome, scope, course)

    def _write(self, step: AskingStep, outcome: ProgramOutput, scope: _Scope, course: _Course) -> None:
        answer = outcome.answer if isinstance(course.question, Question) else outcome.text
        if isinstance(step, AskStep):
            values = {name: (outcome.fields or {}).get(name) for name in step.signature.outputs}
            values |= {"answer": answer} if "answer" in values else {}
        else:
            values = {"answer": answer, "rationale": outcome.rationale}
        if step.add is not None or step.rename is not None:
            name = step.add or step.rename
            value = values["answer"] if "answer" in values else next(iter(values.values()))
            if step.add is None:
                values = {str(name): value}
            else:
                entries = scope.fields.setdefault(step.add, [])
                entries += [] if value is None else [str(value)]
                return
        scope.fields |= values
        if "answer" in values:
            scope.answering = outcome

    def _retrieve(self, step: RetrieveStep, scope: _Scope, course: _Course) -> Any:
        assert self._search is not None  # noqa: S101 - the builder has looked
        text = _value(step.retrieve, scope, course)
        queries = [str(query) for query in (text if isinstance(text, list) else [text]) if str(query).strip()]
        hits_by_query: list[list[Hit]] = []
        if queries:
            hits_by_query = (yield Call(LookUp(self._search, step.k), {"queries": queries})).found
        hits = {hit.passage.id: hit for query_hits in hits_by_query for hit in query_hits}
        course.hits |= {key: hit for key, hit in hits.items() if key not in course.hits}
        if step.add is None:
            scope.fields[step.rename or "passages"] = list(hits.values())
            return
        passages = scope.fields.setdefault(step.add, [])
        known = {hit.passage.id for hit in passages}
        passages += [hit for key, hit in hits.items() if key not in known]

    def _all(self, step: AllStep, place: str, scope: _Scope, course: _Course) -> Any:
        """Do branches, each from the fields as they were before, and put together what they wrote."""
        before = scope.inside()
        branches: list[_Scope] = []
        copies: list[dict[str, Any]] = []
        for position, branch in enumerate(step.all):
            copies.append({name: list(before.fields[name]) for name in self._lists})
            inner = before.inside(**copies[-1])
            inner.answering = None if step.combine is not None else before.answering
            try:
                yield from self._do(branch, f"{place}.all.{position}", inner, course)
            except _EmptyFieldError:
                if step.combine is None:
                    raise
                inner.answering = None
            branches.append(inner)
        self._add_up(copies, branches, scope)
        if step.combine is not None:
            outcomes = [
                inner.answering or ProgramOutput(answer=None, rationale=None, generations=[]) for inner in branches
            ]
            outcome = combine_branches(step.combine, self._rules, course.question, outcomes)
            scope.fields |= {"answer": outcome.answer, "rationale": outcome.rationale}
            scope.answering = outcome
            return
        for inner in branches:
            scope.fields |= {
                name: value
                for name, value in inner.fields.items()
                if name not in self._lists and before.fields.get(name, before) is not value
            }
            if inner.answering is not before.answering:
                scope.answering = inner.answering

    def _add_up(self, copies: Sequence[Mapping[str, Any]], branches: Sequence[_Scope], scope: _Scope) -> None:
        """Add what the branches added to their copies of each list, in their order.

        A branch that keeps only some entries has another list than its copy.
        """
        for name in self._lists:
            count, entries = len(scope.fields[name]), scope.fields[name]
            pairs = [(own[name], inner.fields[name]) for own, inner in zip(copies, branches, strict=True)]
            kept_entries = next((now for own, now in pairs if now is not own), entries[:count])
            added_entries = [entry for own, now in pairs if now is own for entry in now[count:]]
            entries[:] = [*kept_entries, *added_entries]

    def _most_calls(self, steps: StepSpecs, place: str, question: Asked, lists: dict[str, int]) -> int:
        """Count the calls of steps; `lists` says how many entries passages have at most."""
        calls = 0
        for position, step in enumerate(steps):
            step_place = f"{place}.{position}"
            inner = [
                self._most_calls(branch, f"{step_place}.{name}", question, lists)
                for name, branch in step.branches.items()
            ]
            match step:
                case AskingStep():
                    calls += self._part_calls(self._parts[step_place], question)
                case RetrieveStep(add=None):
                    lists[step.rename or "passages"] = step.k
                case EachStep():
                    calls += inner[0] * (step.most or lists.get(step.each, 1))
                case RepeatStep():
                    calls += inner[0] * step.repeat
                case _:
                    calls += sum(inner)
        return calls

    def _part_calls(self, part: StepPart, question: Asked) -> int:
        program, step = self._program(part), part.step
        if not isinstance(program, AskingProgram):
            return 0
        calls = program.calls_for(question)
        if step.outer_orders is not None and isinstance(question, Question):
            calls *= len(orders_of(question, step.outer_orders))
        return calls * (step.outer_samples or 1)


def _given(step: AskingStep, scope: _Scope) -> dict[str, Any]:
    """Return the fields that a step reads; raises `_EmptyFieldError` if one of its signature is empty."""
    if not isinstance(step, AskStep):
        return scope.fields
    fields = {name: scope.fields[name] for name in step.signature.inputs if name in scope.fields}
    if None in fields.values():
        raise _EmptyFieldError
    return fields


def _value(name: str, scope: _Scope, course: _Course) -> Any:
    """Return a field of the steps, or of the question; raises `_EmptyFieldError` if it is empty."""
    value = scope.fields[name] if name in scope.fields else _of_question(name, course.question)
    if value is None:
        raise _EmptyFieldError
    return value


def _is_true(name: str, scope: _Scope, course: _Course) -> bool:
    return bool(scope.fields[name] if name in scope.fields else _of_question(name, course.question))


def _of_question(name: str, question: Asked) -> Any:
    return question_fields(question, {name: str, "options": str}, ())[name]


def _output(answering: ProgramOutput | None, course: _Course) -> ProgramOutput:
    """Return what the steps came to: the prediction that answered last, with everything that was asked and found."""
    asked_elsewhere = any(one.asked for one in course.generations)
    is_plain = answering is not None and answering.fields is None and not course.hits and not asked_elsewhere
    if answering is not None and is_plain and len(course.generations) == len(answering.generations or []):
        return answering
    outcome = answering or ProgramOutput(answer=None, rationale=None)
    own_generations = outcome.generations or []
    fields: dict[str, Any] = {"generations": course.generations, "fields": None}
    if len(course.generations) > len(own_generations) or any(one.asked for one in course.generations):
        last = outcome.last_generation or (own_generations or course.generations)[-1]
        fields |= {"keeps_replies": True, "last_generation": last}
    if course.hits:
        fields |= {"hits": list(course.hits.values()), "passages_cut": outcome.passages_cut or 0}
        if outcome.verdicts is not None and len(outcome.verdicts) != len(course.hits):
            fields["verdicts"] = None
    return outcome.copy(**fields)
