"""Asking one part of a program of steps: once or several times, of whichever model, by the part's own adapter."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import dspy

from medexam.programs.base import AskingProgram, Call, ExamProgram, Step, Steps, advance, altered
from medexam.programs.combining.reordering import Reordered
from medexam.programs.combining.voting import Voting
from medexam.programs.own import OwnProgram
from medexam.programs.program_output import ProgramOutput
from medexam.programs.retrieval.passages import shown_text
from medexam.programs.steps.asides import BehindField
from medexam.specs.programs.asking_steps import AskingStep


class _Given(AskingProgram):
    """A part with what it is called with beside the question."""

    def __init__(self, program: dspy.Module, fields: Mapping[str, Any]) -> None:
        super().__init__(dspy.settings.adapter)
        self._part = program
        self._fields = fields

    def steps(self, question: Any) -> Steps:
        """Return the part's own steps, or one call of the whole part."""
        return _once(self._part, question, self._fields)


def part_steps(step: AskingStep, program: dspy.Module, question: Any, fields: Mapping[str, Any]) -> Steps:
    """Return the steps of what a step asks, as often as its samples and orders say."""
    if step.outer_samples is None and step.outer_orders is None:
        return _once(program, question, fields)
    return repeated(step, _Given(program, fields)).steps(question)


def repeated(step: AskingStep, program: AskingProgram) -> AskingProgram:
    """Return a program that is asked as often as the samples and orders of a step say."""
    if step.outer_samples is not None:
        program = Voting(cast("ExamProgram", program), step.outer_samples)
    if step.outer_orders is not None:
        program = Reordered(cast("ExamProgram", program), step.outer_orders)
    return program


def _once(program: dspy.Module, question: Any, fields: Mapping[str, Any]) -> Steps:
    """Return a part's own steps, or one call of the whole part with the fields that it is given."""
    if isinstance(program, BehindField):
        return program.steps_behind(question, shown_text(fields[program.field]))
    if isinstance(program, AskingProgram) and not isinstance(program, OwnProgram):
        return program.steps(question)
    given = {"fields": fields} if isinstance(program, OwnProgram) else {}
    return _whole(Call(program, {"question": question, **given}))


def _whole(call: Call) -> Steps:
    return ProgramOutput.of((yield call))


def within(steps: Steps, program: dspy.Module, lm: dspy.LM | None, later: int) -> Steps:
    """Return the same steps, each asked of `lm` (None: the run's) by the program's adapter, `later` seeds on."""
    if isinstance(program, OwnProgram):
        adapter, later = None, 0
    else:
        adapter = getattr(program, "adapter", None)

    def change(call: Call) -> Call:
        return replace(call, adapter=call.adapter or adapter, lm=call.lm or lm, seeds_later=call.seeds_later + later)

    def resume(steps: Steps, reply: Any = None) -> Step:
        # What a program does between its calls may depend on the model that it asks.
        with dspy.context(lm=lm):
            return advance(steps, reply)

    if lm is None:
        return steps if adapter is None else altered(steps, change)
    return altered(steps, change, resume=resume)
