"""The conversations of a page's questions: each run's prompts rendered again, with the replies that they got.

A run whose data, words or code are not as they were has none, and the page says why: it would show what was not asked.
What renders them takes half a second to import, so it is imported when the first one is rendered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medexam.errors import MedExamError
from medexam.experiments.store.stored_run import AnyRun
from medexam.predictions import Prediction

if TYPE_CHECKING:
    from medexam.experiments.plan.conversations import Exchange


@dataclass(frozen=True)
class Conversations:
    """What one run sent and received, rendered when it is asked for."""

    program: Any = None
    """The program as it shows its prompts; None if the run has none to show."""
    questions: Mapping[str, Any] | None = None
    """By key."""
    missing: str | None = None
    """Why there are none; None if there are some, or if the run asks no model."""

    def of(self, prediction: Prediction) -> "list[Exchange]":
        """List the calls that led to this prediction; empty if they are not known."""
        if self.questions is None:
            return []
        from medexam.experiments.plan.conversations import conversation

        question = self.questions.get(prediction.question)
        return [] if question is None else conversation(self.program, question, prediction)


def read_conversations(run: AnyRun, predictions: Mapping[str, Prediction]) -> Conversations:
    """Read the conversations of a run with these predictions."""
    if not run.record.cell.program.asks_model:
        return Conversations()
    if "answers" in run.record.identity:
        return Conversations(missing="these answers are stored without prompts and replies")
    from medexam.experiments.plan.planner import plan_stored

    try:
        planned = plan_stored(run.folder.path)
        questions = {item.key: item for item in planned.question_set.questions}
        return Conversations(planned.build_preview(list(questions.values()), predictions), questions)
    except MedExamError as error:
        return Conversations(missing=str(error))
