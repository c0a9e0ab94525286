"""Questions of several formats, each asked in the words of its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dspy

from medexam.model_calls import Generation
from medexam.programs.base import TaskProgram
from medexam.programs.program_output import ProgramOutput
from medexam.questions import Task
from medexam.signatures import split_thinking
from medexam.signatures.task_adapter import AnswerTask, AskedTask, TaskAdapter
from medexam.signatures.task_words import TaskWords
from medexam.specs.programs.tasks import TaskSpec
from medexam.text import option_letters

_END = "."
"""What ends a guided list; never part of the answer."""
_STEP = "Incorrect Reasoning Step: "
_STEP_EXPLANATION = "\nIncorrect Reasoning Explanation:"
_EXPLANATION = "Incorrect Explanation:"


class AnswerByFormat(TaskProgram):
    """One predictor for each format; predictions hold `text`.

    Guided: true/false and multiple choice leave the model the two words or the options' texts; a list is chosen an
    option at a time, by its letter, until the model ends it; the wrong step is one of those that are shown; and
    explanations begin with the words that the format asks for. Short and multi-hop answers are prose and stay free.
    """

    def __init__(self, spec: TaskSpec, words: TaskWords, max_tokens: int | None) -> None:
        """Make the program; `max_tokens` is the model's own budget, and None leaves it to the program."""
        super().__init__(TaskAdapter(words.system))
        budget = spec.budget(max_tokens)
        self.guided = spec.answer_format == "guided"
        self.by_format = {
            kind: dspy.Predict(AnswerTask.with_instructions(template), max_tokens=budget[kind])
            for kind, template in words.groups.items()
        }

    def calls_for(self, question: Task) -> int:
        """Count the most that it may take: one; one for each option of a guided list; two for a guided wrong step."""
        if self.guided and question.group == "list":
            return len(question.options)
        return 2 if self.guided and question.group == "multi_hop_inverse" and question.given_reasoning else 1

    async def answer(self, question: Task) -> ProgramOutput:
        """Ask what the question's format takes."""
        kind = question.group
        if self.guided and kind == "list" and question.options:
            return await self._list(question)
        if self.guided and kind == "multi_hop_inverse" and question.given_reasoning:
            return await self._wrong_step(question)
        task_prompt = AskedTask(question)
        if self.guided and kind == "true_false":
            task_prompt = replace(task_prompt, choices=("True", "False"))
        elif self.guided and kind == "multiple_choice":
            task_prompt = replace(task_prompt, choices=tuple(dict.fromkeys(question.options)))
        elif self.guided and kind == "short_inverse":
            task_prompt = replace(task_prompt, prefill=_EXPLANATION)
        return self.output(question, await self._reply(task_prompt))

    def read(self, question: Task, reply: str) -> dict[str, Any]:
        """Read the answer in the reply."""
        if self.guided and question.group == "list" and question.options:
            text = read_list(reply, question.options)
        else:
            _, content = split_thinking(reply)
            text = content.strip()
            if not (self.guided and question.group == "multi_hop_inverse" and question.given_reasoning):
                # An unclosed block of thinking is the answer: the shared task leaves it there.
                text = text or reply.strip()
        return {"answer": None, "text": text or None, "rationale": None}

    async def _list(self, question: Task) -> ProgramOutput:
        """Choose one option by its letter, then another or the end; one option alone is the answer."""
        options = dict(zip(option_letters(question.options), question.options, strict=True))
        letters: list[str] = []
        while len(letters) < len(options):
            other_letters = [letter for letter in options if letter not in letters]
            prefill = ", ".join(f"{letter}: {options[letter]}" for letter in letters)
            choices = [*(f", {letter}" for letter in other_letters), _END] if letters else other_letters
            generation = await self._reply(AskedTask(question, prefill=prefill, choices=tuple(choices)))
            choice = (generation.reply or "")[len(prefill) :]
            if choice == _END:
                break
            letters.append(choice.removeprefix(", ") if letters else choice)
        return self.output(question, generation)

    async def _wrong_step(self, question: Task) -> ProgramOutput:
        """Choose the number of a step, then ask why it is wrong."""
        numbers = tuple(str(number) for number in range(1, len(question.given_reasoning) + 1))
        step = await self._reply(AskedTask(question, prefill=_STEP, choices=numbers))
        explanation = await self._reply(AskedTask(question, prefill=f"{step.reply}{_STEP_EXPLANATION}"))
        return self.output(question, explanation)

    async def _reply(self, task_prompt: AskedTask) -> Generation:
        predictor = self.by_format[task_prompt.task.group]
        generation: Generation = (await self.ask(predictor, asked=task_prompt)).generation
        return generation


def read_list(reply: str, options: Sequence[str]) -> str:
    """Read the options that a guided list names by their letters, `A: first, C: third.`, separated by commas."""
    by_letter = dict(zip(option_letters(options), options, strict=True))
    texts, remainder = [], reply
    while (letter := remainder[:1]) in by_letter:
        texts.append(by_letter[letter])
        remainder = remainder[1:].removeprefix(f": {by_letter[letter]}").removeprefix(", ")
    return ", ".join(texts)
