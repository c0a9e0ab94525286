"""The prompts that a program sends for three invented questions, which stand in a run's identity.

A text file, a variable of the environment or a value of another module that changes a prompt changes them, so that two
prompts never become one run. Nobody is asked: every call gets a reply that is made up. The questions are invented,
so that code that remembers replies has none to a real question.
"""

import hashlib
import re
import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any

import dspy

from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.plan.passage_lookup import GivenPassages
from medexam.model_calls import Continuation, ContinuationLogprobs, Dialogue, Generation
from medexam.programs import ProgramContext, build_program
from medexam.programs.lm import OnlyModel, OtherModelError
from medexam.programs.stored_calls import answered_by
from medexam.questions import Exam, Language, Option, Question, Task
from medexam.retrievers.base import Hit, Passage
from medexam.specs import CellSpec

_MOST_CALLS = 16
"""Calls that are answered; code that asks until it likes a reply would ask for ever."""
_DIGITS = 12
_FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]")
SAMPLE_TEXTS = (
    "Which vessel supplies the inferior wall of the heart?",
    "¿Qué nervio inerva el diafragma?",
    "A man of 61 years has had a fever of 39.2 °C for 3 days.\nWhat is done first?",
)
_OPTIONS = ("The right coronary artery", "Nervio frénico", "Blood cultures", "5 mg/kg", "None of the others")
_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
_PASSAGE = Passage("sample", "Anatomy", "The right coronary artery supplies the inferior wall.", "")


class _EnoughError(BaseException):
    """A program has asked often enough; no `except Exception` of its own continues it."""


class _Recorder:
    """An engine that keeps what it is asked and makes up replies."""

    def __init__(self) -> None:
        self.dialogues: list[Dialogue] = []

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return a reply in the form that was asked for."""
        self.dialogues.append(dialogue)
        if len(self.dialogues) > _MOST_CALLS:
            raise _EnoughError
        if dialogue.continuations is not None:
            texts = tuple(
                Continuation(tokens=(number,), logprobs=(-1.0 - number,))
                for number, _ in enumerate(dialogue.continuations.texts)
            )
            reading = ContinuationLogprobs(continuations=texts, read_by="label", why="sample", computed_tokens=0)
            return [Generation(None, "stop", "sample", 0, 0, reading=reading)]
        names = dict.fromkeys(_FIELD.findall(dialogue.messages[-1]["content"].rpartition("Respond with")[2]))
        fields = "\n\n".join(f"[[ ## {name} ## ]]\n1" for name in names)
        text = dialogue.choices[0] if dialogue.choices else fields or "{Answer: 1}"
        return [Generation(text, "stop", "sample", 0, 0)] * dialogue.sampling.samples


class _First(NearestDemonstrations):
    """The first solved questions of a pool, whatever is asked: no encoder is loaded."""

    def find(self, question: Question) -> list[dspy.Example]:  # noqa: ARG002 - all are shown the same
        """Return the demonstrations."""
        return [*self.pool[: self.k]]


def sample_prompts(cell: CellSpec) -> list[str | None] | None:
    """Return a hash of what the cell's program asks for each invented question.

    None stands for a question that the user's code raised at, needed the network for, or prompts differently each time;
    for all of them, None alone.
    """
    program, language = cell.program, cell.dataset.language
    passages: Any = GivenPassages(lambda *_: [Hit(_PASSAGE, 1.0, 1)], 1)
    context = ProgramContext(
        max_tokens=cell.model.max_tokens,
        budgets={name: model.max_tokens for name, model in cell.asked_models.items()},
        finder=passages,
        search=passages,
        supports=passages,
        nearest=_First,
        in_order=lambda _: (),
    )

    def prepare() -> Callable[[Any], Any]:
        built = build_program(program, language, context)
        return lambda question: built(question=question)

    return prompts_of(prepare, _questions(cell), twice=bool(program.asking.codes or program.asking.adapter_code))


def prompts_of(
    prepare: Callable[[], Callable[[Any], Any]], inputs: Sequence[Any], *, twice: bool
) -> list[str | None] | None:
    """Return a hash of the prompts that what `prepare` returns sends for each input; None as `sample_prompts` has it.

    `twice`: it is the user's code, which may draw lots or read a clock, and is kept from the network.
    """
    with ThreadPoolExecutor(1, "medexam-prompts") as thread:  # a loop may be running in this one
        turns = [
            thread.submit(copy_context().run, _ask_all, prepare, inputs, offline=twice).result()
            for _ in range(1 + twice)
        ]
    hashes = [first if first == last else None for first, last in zip(turns[0], turns[-1], strict=True)]
    return hashes if any(hashes) else None


def _ask_all(prepare: Callable[[], Callable[[Any], Any]], inputs: Sequence[Any], *, offline: bool) -> list[str | None]:
    ask = prepare()
    if offline:
        _install_guard()
        _offline.set(True)
    return [_prompts(ask, value) for value in inputs]


def _prompts(ask: Callable[[Any], Any], value: Any) -> str | None:
    recorder = _Recorder()
    lm = answered_by(recorder)
    settings = {"lm": lm, "disable_history": True, "trace": None, "callbacks": [], "track_usage": False}
    only = OnlyModel(lm.model)
    with dspy.context(**settings, usage_tracker=only), suppress(Exception, OtherModelError, _EnoughError):
        ask(value)
    # Calls that threads make at once come in any order.
    keys = "\n".join(sorted(dialogue.key for dialogue in recorder.dialogues))
    return hashlib.sha256(keys.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS] if keys else None


def _questions(cell: CellSpec) -> list[Question | Task]:
    """Return three questions of the data set's form; of words in groups, one for each group."""
    language, picture = cell.dataset.language, None if cell.program.asking.pictures is None else _PICTURE
    if cell.dataset.question_form != "choice":
        groups = cell.program.asking.asked_groups or ("CQ#E", "QP#CE", "Q#CE")
        return [_task(group, language, number) for number, group in enumerate(groups)]
    return [
        Question(
            key=f"sample/{number}",
            exam=Exam("sample", 2000 + number, "medicine"),
            number=number + 1,
            language=language,
            stem=text,
            options=tuple(Option(place, option) for place, option in enumerate(_OPTIONS[: 4 + number % 2], start=1)),
            context=_PASSAGE.text if number == 1 else None,
            picture=picture,
        )
        for number, text in enumerate(SAMPLE_TEXTS)
    ]


def _task(group: str, language: Language, number: int) -> Task:
    text, steps = SAMPLE_TEXTS[number % len(SAMPLE_TEXTS)], ("He is feverish.", "So he has a cold.")
    return Task(f"sample/{number}", group, language, text, _PASSAGE.text, _OPTIONS[:4], _OPTIONS[1], steps)


_offline: ContextVar[bool] = ContextVar("offline", default=False)


@cache
def _install_guard() -> None:
    """Have connections refused where `_offline` is set: what a network says is no part of an identity."""
    sys.addaudithook(_refuse_network)


def _refuse_network(event: str, _: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto") and _offline.get():
        raise socket.gaierror("medexam looks at a program's prompts, and no network is there for that")
