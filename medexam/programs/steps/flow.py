"""A program that does the steps of a spec over one set of named fields.

The steps are done one after the other, those of `all` too: other questions fill the servers meanwhile, and the calls of
a question have one order, by which stored replies are read again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from types import SimpleNamespace
from typing import Any, cast

import dspy

from medexam.errors import ProgramFaultError
from medexam.predictions import Reason
from medexam.predictions.prediction import FollowUp, RetrievedPassage
from medexam.programs.base import NO_SCORES, AskingProgram, Given, asked_by, find_lm, keep_passages, kept_calls
from medexam.programs.fields import Asked, question_fields
from medexam.programs.own import OwnProgram
from medexam.programs.retrieving import PassageFinder
from medexam.programs.steps.branches import BranchRule, combine_branches
from medexam.programs.steps.parts import AskedAside
from medexam.programs.wrapping import Voting, orders_of
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.specs.programs.programs import FlowSpec, StepPart
from medexam.specs.programs.steps import QUESTION_FIELDS, Condition, Limit, Step, Steps, added_lists, walk_steps

_ALL = ""
"""Stands for all models."""


def repeated(step: Step, program: AskingProgram) -> AskingProgram:
    """Return a program that is asked as often as the samples and orders of a step say, if it has none of its own."""
    return Voting(program, step.samples, step.orders) if step.votes else program


class StepProgram(AskingProgram):
    """Does steps; its predictors are named after them."""

    def __init__(
        self,
        spec: FlowSpec,
        programs: Mapping[str, dspy.Module],
        search: Any,
        rules: Mapping[str, BranchRule],
        finder: PassageFinder | None,
    ) -> None:
        """Make the program: `programs` are those of the parts, by place, `search` looks up passages and `finder` those
        of a question's stem (None where no step does), and `rules` are the user's own functions that combine branches,
        by name.
        """
        super().__init__()
        self.spec = spec
        self._plan = SimpleNamespace(
            spec=spec,
            parts=spec.parts,
            finder=finder,
            search=search,
            rules=rules,
            lists=tuple(added_lists(spec.steps)),
            # Whether passages are looked up round after round.
            looks_again=any(
                inner.retrieve for _, step in walk_steps(spec.steps) if step.repeat for _, inner in walk_steps(step.do)
            ),
        )
        again = any(isinstance(one, OwnProgram) and one.may_ask_again for one in programs.values())
        self.reads_options = not again and any(getattr(one, "reads_options", False) for one in programs.values())
        # A module of their own: a step may be called as anything, and this one has names already.
        self.programs = dspy.Module()
        for place, program in programs.items():
            setattr(self.programs, f"{spec.parts[place].name}_", program)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """List each predictor under the name of its step, with its place in the program that the step asks."""
        programs = vars(self.programs)
        return [
            # What the user's code or a signature asks, as if it were the step itself.
            (f"{part.name}.{name}".replace(".module", "", isinstance(programs[f"{part.name}_"], OwnProgram)), parameter)
            for part in self.spec.parts.values()
            for name, parameter in programs[f"{part.name}_"].named_parameters()
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

    def _count(self, steps: Steps, place: str, question: Asked, lists: dict[str, int]) -> Counter[str | None]:
        calls: Counter[str | None] = Counter()
        for position, step in enumerate(steps):
            step_place, times = f"{place}.{position}", 1
            branches = step.branches.items()
            inner = [self._count(branch, f"{step_place}.{name}", question, lists) for name, branch in branches]
            match step.step:
                case "ask" | "use":
                    inner, times = [self._count_part(self.spec.parts[step_place], question)], step.samples
                    if isinstance(question, Question):
                        times *= len(orders_of(question, step.orders))
                case "retrieve" if step.add is None:
                    # How many entries passages have at most.
                    lists[step.rename or "passages"] = step.k
                case "when" | "unless":
                    inner = [reduce(or_, inner)]
                case "each":
                    entries = len(question.options) if step.each == "options" else 1
                    times = step.most or lists.get(step.field, entries)
                case "repeat":
                    times = step.repeat or 1
            for counts in inner:
                calls.update({name: count * times for name, count in counts.items()})
        return calls

    def _count_part(self, part: StepPart, question: Asked) -> Counter[str | None]:
        program = vars(self.programs)[f"{part.name}_"]
        if isinstance(program, StepProgram):
            calls = program.count_calls(question)
            own = calls.pop(None, 0)
            return calls + Counter({part.step.model: own})
        count = program.calls_for(question) if isinstance(program, AskingProgram) else 0
        return Counter({_ALL: count, part.step.model: count})

    async def aforward(self, question: Asked) -> dspy.Prediction:
        """Do all steps."""
        # A module of DSPy's takes a function's time for each of its attributes.
        attributes = vars(self)
        with kept_calls():
            return await _Course(attributes["_plan"], vars(attributes["programs"]), question).run()


class _EmptyFieldError(Exception):
    """A step would read a field that a reply left empty, or drop an option that is none."""


@dataclass(slots=True)
class _Scope:
    """What a step sees."""

    question: Asked
    fields: dict[str, Any]
    answering: dspy.Prediction | None = None
    """The prediction that wrote the last `answer`."""

    def inside(self, **fields: Any) -> "_Scope":
        """Return a scope of its own whose fields are those here and these; lists that are added to are the same."""
        return _Scope(self.question, {**self.fields, **fields}, self.answering)

    def read(self, name: str) -> Any:
        """Return a field of the steps, or of the question; raises `_EmptyFieldError` if it is empty."""
        value = self.fields.get(name)
        if name not in self.fields:
            value = question_fields(self.question, {name: str, "options": str}, ())[name]
        if value is None:
            raise _EmptyFieldError
        return value

    def holds(self, condition: Condition | None) -> bool:
        """Return whether a condition holds; that of a field that is missing or empty does not, and a limit reads it."""
        name = condition.field if isinstance(condition, Limit) else condition or ""
        if self.fields.get(name, name if name in QUESTION_FIELDS else None) is None:
            if isinstance(condition, Limit):
                raise _EmptyFieldError
            return False
        value: float = self.read(name)
        if not isinstance(condition, Limit):
            return bool(value)
        return value < condition.below if condition.below is not None else value > cast("float", condition.above)

    def drop(self, worst: Any) -> None:
        """Leave out an option by its number, or several; raises `_EmptyFieldError` for a number that none has."""
        numbers, dropped = getattr(self.question, "option_numbers", ()), worst if isinstance(worst, list) else [worst]
        if numbers and not {*dropped} <= {*numbers}:
            raise _EmptyFieldError
        self.leave([number for number in numbers if number not in dropped])

    def leave(self, numbers: Sequence[int]) -> None:
        """Leave the options with these numbers, if they are a choice, and no others."""
        question: Any = self.question
        options = tuple(one for one in getattr(question, "options", ()) if getattr(one, "number", 0) in numbers)
        if len(options) > 1:
            self.question = question.model_copy(update={"options": options})


@dataclass(slots=True)
class _Course:
    """One question's way through the steps: what it was asked so far."""

    plan: Any
    """What is the same for all questions."""
    programs: Mapping[str, Any]
    question: Asked
    passages: dict[str, RetrievedPassage] = field(default_factory=dict)
    """What was found, by its id."""
    hits_by_query: dict[tuple[str, int], list[Hit]] = field(default_factory=dict)
    """Text that was looked up, and how many passages -> these."""
    rounds: list[list[FollowUp]] = field(default_factory=list)
    """What was looked up in each round of a `repeat`."""
    verdicts: dict[str, bool] = field(default_factory=dict)
    """Id of a passage -> whether `each` kept it."""
    looked_up: bool = False

    async def run(self) -> dspy.Prediction:
        """Do all steps, and return the prediction that answered last with everything that was asked and found."""
        plan = self.plan
        self.looked_up = plan.looks_again
        # Each list that steps add to is there from the beginning, and one for all of them.
        scope = _Scope(self.question, {name: [] for name in plan.lists})
        try:
            await self._do(plan.spec.steps, "steps", scope)
        except _EmptyFieldError:
            # What was reasoned before no answer, and why there is none, is kept.
            if (
                scope.answering is not None
                and (scope.answering.get("answer"), scope.answering.get("text")) != (None,) * 2
            ):
                scope.answering = None
        outcome = (scope.answering or dspy.Prediction(answer=None)).copy(fields=None)
        if not self.looked_up:
            return outcome
        passages = tuple(self.passages.values())
        if self.verdicts.keys() >= self.passages.keys():
            passages = tuple(one.model_copy(update={"kept": self.verdicts[one.id]}) for one in passages)
        fields: dict[str, Any] = {"passages": passages, "passages_cut": outcome.get("passages_cut") or 0}
        if isinstance(supported := scope.fields.get("supported"), bool):
            fields["supported"] = supported
        if plan.looks_again:
            fields["rounds"] = tuple(tuple(follow_ups) for follow_ups in self.rounds if follow_ups)
        return outcome.copy(**fields)

    async def _do(self, steps: Steps, place: str, scope: _Scope) -> None:
        for position, step in enumerate(steps):
            step_place = f"{place}.{position}"
            match step.step:
                case "ask" | "use":
                    await self._ask(self.plan.parts[step_place], scope)
                case "retrieve":
                    await self._retrieve(step, scope)
                case "drop":
                    scope.drop(scope.read(step.field))
                case "each":
                    await self._each(step, step_place, scope)
                case "repeat":
                    for _ in range(step.repeat or 1):
                        self.rounds += [[]] if self.plan.looks_again else []
                        await self._do(step.do, f"{step_place}.do", scope)
                        if step.until is not None and scope.holds(step.until):
                            break
                        if step.as_long_as is not None and not scope.holds(step.as_long_as):
                            break
                case "all":
                    await self._all(step, step_place, scope)
                case _:
                    if scope.holds(step.when or step.unless) == (step.step == "when"):
                        await self._do(step.do, f"{step_place}.do", scope)
                    else:
                        await self._do(step.otherwise or (), f"{step_place}.else", scope)

    async def _each(self, step: Step, place: str, scope: _Scope) -> None:
        """Do steps for each entry, and keep those for which a condition holds then."""
        entries = scope.read(step.field)
        entries = (entries.splitlines() if step.each == "options" else entries)[: step.most]
        kept_places = []
        first = step.do[0]
        if first.retrieve == step.name:
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
            scope.fields[step.field] = [entries[position] for position in kept_places]

    async def _ask(self, part: StepPart, scope: _Scope) -> None:
        step, program, question = part.step, self.programs[f"{part.name}_"], scope.question
        inputs = scope.fields
        if step.ask is not None:
            inputs = {name: inputs[name] for name in step.signature.inputs if name in inputs}
            if None in inputs.values():
                raise _EmptyFieldError
        if step.samples > 1 and not isinstance(question, Question):
            raise ProgramFaultError(
                "TypeError", f"{question.key} has no numbered options, and votes of `samples` need them"
            )
        is_changed = step.model is not None or step.temperature is not None
        lm = find_lm(step.model, step.temperature) if is_changed else None
        # What is asked alike gets seeds of its own as it is asked.
        with asked_by(lm, given=Given(inputs, [text for text, _ in self.hits_by_query])):
            if isinstance(program, AskingProgram):
                outcome = await repeated(step, program).aforward(question)
            else:
                outcome = await program.acall(question=question)
        passages, outputs = outcome.get("passages"), outcome.get("fields") or {}
        self.looked_up |= passages is not None
        self.passages |= {passage.id: passage for passage in passages or ()}
        if getattr(step.use, "kind", "") == "abstain" and scope.answering is not None:
            outcome = scope.answering.copy(**NO_SCORES, answer=None, text=None, reason=Reason.ABSTAINED)
        self._write(step, outcome, scope)
        if isinstance(program, AskedAside) and step.add is not None and None not in outputs.values():
            entries = scope.fields[step.add]
            entries[-1] = program.entry(question, inputs, entries[-1])
        # Keep what was made of the passages of a query that was looked up in this round.
        value = outputs.get(next(iter(step.outputs)))
        for place, follow_up in enumerate(self.rounds[-1] if self.rounds and isinstance(value, str) else ()):
            if follow_up.answer is None and follow_up.query in inputs.values():
                self.rounds[-1][place] = follow_up.model_copy(update={"answer": value})

    def _write(self, step: Step, outcome: dspy.Prediction, scope: _Scope) -> None:
        answer = outcome.get("answer" if isinstance(self.question, Question) else "text")
        outputs = outcome.get("fields") or {"rationale": outcome.get("rationale")}
        values = {name: answer if name == "answer" else outputs.get(name) for name in step.outputs}
        scope.fields |= _vote_fields(outcome)
        value = values["answer"] if "answer" in values else next(iter(values.values()))
        if step.add is not None:
            entries = scope.read(step.add)
            entries += [] if value is None else [str(value)]
            return
        scope.fields |= values if step.rename is None else {step.rename: value}
        if step.rename is None and "answer" in values:
            scope.answering = outcome

    async def _retrieve(self, step: Step, scope: _Scope) -> None:
        self.looked_up = True
        if self.plan.finder is not None:
            hits_by_query = [list(self.plan.finder.find(self.question))]
        else:
            text = scope.read(step.field)
            queries = [str(query) for query in (text if isinstance(text, list) else [text]) if str(query).strip()]
            hits_by_query = await self._search(queries, step.k)
            if self.rounds:
                self.rounds[-1] += [
                    FollowUp(query=query, passages=keep_passages(hits))
                    for query, hits in zip(queries, hits_by_query, strict=True)
                ]
        hits = {hit.passage.id: hit for query_hits in hits_by_query for hit in query_hits}
        self.passages |= {one.id: one for one in keep_passages(hits.values()) if one.id not in self.passages}
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

    async def _all(self, step: Step, place: str, scope: _Scope) -> None:
        """Do branches, each from the fields as they were before, and put together what they wrote."""
        before, lists = scope.inside(), [name for name in self.plan.lists if scope.fields[name] is not None]
        branches: list[_Scope] = []
        for position, branch in enumerate(step.all or ()):
            inner = before.inside(**{name: list(before.fields[name]) for name in lists})
            inner.answering = None if step.combine is not None else before.answering
            try:
                await self._do(branch, f"{place}.all.{position}", inner)
            except _EmptyFieldError:
                if step.combine is None:
                    raise
                inner.answering = None
            branches.append(inner)
        for name in lists:
            count, entries = len(scope.fields[name]), scope.fields[name]
            entries += [entry for inner in branches for entry in inner.fields[name][count:]]
        if step.combine is not None:
            outcomes = [inner.answering or dspy.Prediction(answer=None) for inner in branches]
            outcome = combine_branches(step.combine, self.plan.rules, scope.question, outcomes)
            scope.fields |= {"answer": outcome.answer, "rationale": outcome.get("rationale"), **_vote_fields(outcome)}
            scope.answering = outcome
            return
        for inner in branches:
            new = {name: value for name, value in inner.fields.items() if before.fields.get(name, before) is not value}
            scope.fields |= {name: value for name, value in new.items() if name not in lists}
            if inner.answering is not before.answering:
                scope.answering = inner.answering


def _vote_fields(outcome: dspy.Prediction) -> dict[str, Any]:
    if (votes := outcome.get("votes")) is None:
        return {}
    counts = {vote: votes.count(vote) for vote in votes if vote is not None}
    most = max(counts.values(), default=0)
    agreement = votes.count(outcome.answer) / len(votes) if counts else 0.0
    return {"agreement": agreement, "tied": list(counts.values()).count(most) > 1}


def _number(hit: Hit, number: int) -> Hit:
    passage = hit.passage
    return replace(hit, passage=replace(passage, title="", content=f"[{number}] {passage.text}"))
