"""The DSPy signature of questions that are answered in words, and the adapter between it and a model.

Its instructions are a template of a words file, so optimizers that rewrite instructions rewrite the prompt. The adapter
asks once and keeps what was said. A call may begin the reply for the model and may leave it nothing but one of given
strings; how an engine enforces that is not known here.
"""

from dataclasses import dataclass, replace

import dspy

from medexam.model_calls import Dialogue, Generation, Sampling
from medexam.questions import Task
from medexam.signatures.single_call import Fields, Signature, SingleCallAdapter
from medexam.signatures.task_words import fill
from medexam.signatures.thinking import split_thinking


@dataclass(frozen=True, slots=True)
class AskedTask:
    """A task as one call shows it."""

    task: Task
    prefill: str = ""
    """How the reply is prefilled."""
    choices: tuple[str, ...] = ()
    """What the reply may continue with, one of these and nothing else; empty leaves it free."""
    context: str | None = None
    """What is shown instead of the task's own context; None: that context."""
    count: int = 0
    """How many parts `context` has, where it is shown in numbered parts."""


class AnswerTask(dspy.Signature):
    """Answer a question in words."""

    asked: AskedTask = dspy.InputField()
    answer: str = dspy.OutputField(desc="the answer alone")


class TaskAdapter(SingleCallAdapter):
    """Formats and reads `AnswerTask`.

    A prediction carries `answer`, what was said behind any thinking and with what the reply was begun with, and
    `generation`, the reply itself.
    """

    def __init__(self, system: str) -> None:
        """Take the system turn; empty: none."""
        super().__init__()
        self.system = system

    def format(self, signature: Signature, demos: list[Fields], inputs: Fields) -> list[dict[str, str]]:  # noqa: ARG002
        """Write the turns of a prompt; the last is the assistant's where the reply is begun for it."""
        task_prompt: AskedTask = inputs["asked"]
        turns = [{"role": "system", "content": self.system}] if self.system else []
        question_text = fill(
            signature.instructions, task_prompt.task, context=task_prompt.context, count=task_prompt.count
        )
        turns.append({"role": "user", "content": "\n\n".join(filter(None, (inputs.get("passages"), question_text)))})
        if task_prompt.prefill:
            turns.append({"role": "assistant", "content": task_prompt.prefill})
        return turns

    def build_dialogue(self, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields) -> Dialogue:
        """Build the prompt as messages, with the choices, if any."""
        choices = tuple(inputs["asked"].choices) or None
        return Dialogue.of(self.format(signature, demos, inputs), Sampling.of(settings), choices=choices)

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:  # noqa: ARG002
        """Read what was said, and the reply itself, behind the words that it was begun with."""
        generation = replace(generation, reply=inputs["asked"].prefill + (generation.reply or ""))
        _, answer = split_thinking(generation.reply or "")
        return {"answer": answer.strip(), "generation": generation}
