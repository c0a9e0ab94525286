"""What programs ask beside the question itself, in words of its own: queries, brief answers, verdicts."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import dspy
from dspy.utils.exceptions import ContextWindowExceededError

from medexam.programs.base import Call
from medexam.signatures import AskedTask, GiveAnswer, TaskAdapter, TaskWords
from medexam.tasks import Task

P = TypeVar("P")
SideSteps = Generator[Call, dspy.Prediction, dspy.Prediction]
"""Steps whose end is the prediction of one call, with `answer` and `generation`."""

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

    def steps(self, question: str, context: str, *, answer: str = "", **fields: Any) -> SideSteps:
        """Yield the call that asks `question` with `context`, cut as far as needed, and an `answer` that is proposed.

        `fields` are more of `AskedTask`'s fields.

        The prediction carries `answer` and `generation`.
        """

        def ask(excerpt: str) -> SideSteps:
            task = Task(
                key="side", group="side", language="en", question=question, context=excerpt, given_answer=answer
            )
            return (yield Call(self, {"asked": AskedTask(task, **fields)}))

        return (yield from fitted(context, ask))


def fitted(text: str, begin: Callable[[str], Generator[Call, Any, P]]) -> Generator[Call, Any, P]:
    """Yield the steps that `begin` makes of a text, anew with a shorter one while it does not fit the model's context.

    It is cut from the end by halves; the output carries `passages_cut`, how many characters that were. Raises
    `ContextWindowExceededError` where even no text does not fit.
    """
    full_text = text
    while True:
        try:
            output: Any = yield from begin(text)
        except ContextWindowExceededError:
            if not text:
                raise
            text = text[: len(text) // 2].rstrip() if len(text) >= 2 * _LEAST else ""
        else:
            fitting: P = output.copy(passages_cut=len(full_text) - len(text))
            return fitting
