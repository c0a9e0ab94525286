"""What programs ask beside the question itself, in words of its own: queries, brief answers, verdicts."""

from collections.abc import Callable
from typing import Any

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from medexam.programs.base import Call, Steps
from medexam.signatures import AskedTask, GiveAnswer, TaskAdapter, TaskWords
from medexam.tasks import Task

_LEAST = 200
"""Characters of passages below which none are shown."""


class SideQuestion(dspy.Module):
    """A predictor in the words of one group, whatever adapter the program has that it belongs to."""

    def __init__(self, words: TaskWords, group: str, max_tokens: int) -> None:
        super().__init__()
        self.respond = dspy.Predict(GiveAnswer.with_instructions(words.groups[group]), max_tokens=max_tokens)
        self._adapter = TaskAdapter(words.system)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Ask."""
        with dspy.context(adapter=self._adapter):
            return self.respond(**inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Ask without blocking."""
        with dspy.context(adapter=self._adapter):
            return await self.respond.acall(**inputs)

    def steps(self, question: str, context: str, *, answer: str = "", **fields: Any) -> Steps:
        """Yield the call that asks `question` with `context`, cut as far as needed, and an `answer` that is proposed.

        `fields` are more of `AskedTask`'s fields.

        The prediction carries `answer` and `generation`.
        """

        def ask(excerpt: str) -> Steps:
            task = Task(
                key="side", group="side", language="en", question=question, context=excerpt, given_answer=answer
            )
            return (yield Call(self, {"asked": AskedTask(task, **fields)}))

        return (yield from fitted(context, ask))


def fitted(text: str, begin: Callable[[str], Steps]) -> Steps:
    """Yield the steps that `begin` makes of a text, anew with a shorter one while it does not fit the model's context.

    It is cut from the end by halves; the prediction carries `left_out`, how many characters that were. Raises
    `ContextWindowExceededError` where even no text does not fit.
    """
    full_text = text
    while True:
        try:
            outcome = yield from begin(text)
        except ContextWindowExceededError:
            if not text:
                raise
            text = text[: len(text) // 2].rstrip() if len(text) >= 2 * _LEAST else ""
        else:
            return dspy.Prediction(**outcome.toDict(), left_out=len(full_text) - len(text))
