"""A program that does the steps of a spec over one set of named fields."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import dspy

from medexam.programs.base import AskingProgram
from medexam.programs.fields import Asked
from medexam.programs.kept import shared_draws
from medexam.programs.own import OwnProgram
from medexam.programs.program_output import ProgramOutput
from medexam.programs.retrieving import PassageFinder, PassageSearch
from medexam.programs.steps.branches import BranchRule
from medexam.programs.steps.course import Course, StepPlan
from medexam.programs.wrapping import orders_of
from medexam.questions import Question
from medexam.specs.programs.asking_steps import AskingStep, AskStep
from medexam.specs.programs.flows import StepPart, StepsSpec
from medexam.specs.programs.steps import ConditionStep, EachStep, RepeatStep, RetrieveStep
from medexam.specs.programs.steps import Steps as StepSpecs


class StepProgram(AskingProgram):
    """Does steps; its predictors are named after them."""

    def __init__(
        self,
        spec: StepsSpec,
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
        self._plan = StepPlan(spec, search, rules, finder)
        self._parts = self._plan.parts
        is_one_call = len(spec.steps) == 1 and isinstance(spec.steps[0], AskStep) and not spec.votes
        self._records = not is_one_call and any(isinstance(program, OwnProgram) for program in programs.values())
        """Whether calls of modules share their seeds, so that equal ones are drawn anew."""
        self.reads_options = any(getattr(program, "reads_options", False) for program in programs.values()) and not any(
            isinstance(program, OwnProgram) and program.may_ask_again for program in programs.values()
        )
        # A module of their own: a step may be called as anything, and this one has names already.
        self.programs = dspy.Module()
        for place, program in programs.items():
            setattr(self.programs, self._parts[place].attribute, program)

    def named_programs(self) -> list[tuple[str, dspy.Module]]:
        """List what each step asks, under the step's name."""
        return [(part.name, self._program(part)) for part in self._parts.values()]

    def named_parameters(self) -> list[tuple[str, Any]]:
        """List each predictor under the name of its step, with its place in the program that the step asks."""
        names = []
        for step, program in self.named_programs():
            for name, parameter in program.named_parameters():
                full_name = f"{step}.{name}"
                names.append(
                    # What the user's code or a signature asks, as if it were the step itself.
                    (full_name.replace(".module", "", 1) if isinstance(program, OwnProgram) else full_name, parameter)
                )
        return names

    def calls_for(self, question: Asked) -> int:
        """Count the most that it may take: every step, as often as it may be done."""
        return self._most_calls(self.spec.steps, "steps", lambda part: self._part_calls(part, question), {})

    def calls_of(self, question: Asked, model: str | None) -> int:
        """Count the most that one model may be asked; there are branches that ask more of one and less of another."""

        def count(part: StepPart) -> int:
            names: list[str | None] = [] if model is None else [model]
            names += [None] if part.step.model == model else []
            return sum(self._part_calls(part, question, name) for name in names)

        return self._most_calls(self.spec.steps, "steps", count, {})

    async def answer(self, question: Asked) -> ProgramOutput:
        """Do all steps."""
        # A module of DSPy's takes a function's time for each of its attributes.
        attributes = vars(self)
        with shared_draws() if self._records else nullcontext():
            return await Course(attributes["_plan"], vars(attributes["programs"]), question).run()

    def _program(self, part: StepPart) -> dspy.Module:
        program: dspy.Module = vars(self.programs)[part.attribute]
        return program

    def _most_calls(self, steps: StepSpecs, place: str, count: Callable[[StepPart], int], lists: dict[str, int]) -> int:
        """Count the calls of steps, by part; `lists` says how many entries passages have at most."""
        calls = 0
        for position, step in enumerate(steps):
            step_place = f"{place}.{position}"
            inner = [
                self._most_calls(branch, f"{step_place}.{name}", count, lists) for name, branch in step.branches.items()
            ]
            match step:
                case AskingStep():
                    calls += count(self._parts[step_place])
                case RetrieveStep(add=None):
                    lists[step.rename or "passages"] = step.k
                case ConditionStep():
                    calls += max(inner)
                case EachStep():
                    calls += inner[0] * (step.most or lists.get(step.each, 1))
                case RepeatStep():
                    calls += inner[0] * step.repeat
                case _:
                    calls += sum(inner)
        return calls

    def _part_calls(self, part: StepPart, question: Asked, *model: str | None) -> int:
        """Count the calls of a part, or those in which its program asks one `model`."""
        program, step = self._program(part), part.step
        if not isinstance(program, AskingProgram):
            return 0
        calls = program.calls_of(question, *model) if model else program.calls_for(question)
        if step.outer_orders is not None and isinstance(question, Question):
            calls *= len(orders_of(question, step.outer_orders))
        return calls * (step.outer_samples or 1)
