"""Short answers in words to questions of one's own."""

from typing import Any

import dspy

from medexam.programs.base import TaskProgram
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Task
from medexam.signatures import split_thinking
from medexam.signatures.task_adapter import AnswerTask, AskedTask, TaskAdapter
from medexam.signatures.task_words import TaskWords
from medexam.specs.programs.tasks import TaskSpec


class ShortAnswer(TaskProgram):
    """One call a question, with the text that it brings along if it has one; predictions hold `text`."""

    def __init__(self, spec: TaskSpec, words: TaskWords, max_tokens: int | None) -> None:
        """Make the program; `max_tokens` is the model's own budget, and None leaves it to the program."""
        super().__init__(TaskAdapter(words.system))
        budget = spec.budget(max_tokens)
        self.by_group = {
            group: dspy.Predict(AnswerTask.with_instructions(template), max_tokens=budget[group])
            for group, template in words.groups.items()
        }

    async def answer(self, question: Task) -> ProgramOutput:
        """Ask once."""
        predictor = self.by_group["answer_from_text" if question.context else "answer"]
        prediction = await self.ask(predictor, asked=AskedTask(question))
        return self.output(question, prediction.generation)

    def read(self, question: Task, reply: str) -> dict[str, Any]:  # noqa: ARG002
        """Read the reply behind any thinking."""
        _, content = split_thinking(reply)
        return {"answer": None, "text": content.strip() or None, "rationale": None}
