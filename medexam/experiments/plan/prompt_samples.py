"""What a program asks with, as data for a run's identity: its words, and the prompts of three invented questions.

A text file, a variable of the environment or a value of another module that changes a prompt changes these prompts, so
that two prompts never become one run. Nobody is asked: every call gets a reply that is made up. The questions are
invented, so that code that remembers replies has none to a real question.
"""

import hashlib
import re
import socket
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import cache
from types import SimpleNamespace
from typing import Any

import dspy

from medexam.errors import SpecError
from medexam.experiments.plan.cells import build_cell_program
from medexam.experiments.plan.lookup import Retrieval, nearest_identity
from medexam.model_calls import Continuation, ContinuationLogprobs, Dialogue, Generation
from medexam.plugins import hash_source
from medexam.programs.base import OnlyModel, OtherModelError
from medexam.programs.loading import loaded_words
from medexam.programs.outcome import answered_by
from medexam.questions import Exam, Language, Option, Question, Task
from medexam.retrievers.base import Hit, Passage
from medexam.signatures.word_files import describe_words
from medexam.specs import CellSpec, ProgramSpec
from medexam.specs.base import PROGRAMS
from medexam.specs.programs.needs import RetrievalSettings
from medexam.specs.programs.programs import ADAPTERS, StepPart
from medexam.specs.programs.steps import BY, NEAREST
from medexam.specs.programs.words import WordsSpec
from medexam.specs.retriever import RetrieverSpec

_MOST_CALLS = 16
"""Calls that are answered; code that asks until it likes a reply would ask for ever."""
_FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]")
_TEXTS = (
    "Which vessel supplies the inferior wall of the heart?",
    "¿Qué nervio inerva el diafragma?",
    "A man of 61 years has had a fever of 39.2 °C for 3 days.\nWhat is done first?",
)
_OPTIONS = ("The right coronary artery", "Nervio frénico", "Blood cultures", "5 mg/kg", "None of the others")
_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
_PASSAGE = Passage("sample", "Anatomy", "The right coronary artery supplies the inferior wall.", "")
_LOOK_UP = RetrievalSettings(RetrieverSpec.model_construct(), 1, "stem", None)


class _EnoughError(BaseException):
    """A program has asked often enough; no `except Exception` of its own continues it."""


class _Recorder:
    """An engine that keeps what it is asked and makes up replies."""

    def __init__(self) -> None:
        self.dialogues: list[Dialogue] = []

    async def reply(self, dialogue: Dialogue) -> Generation:
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
            return Generation(None, "stop", "sample", 0, 0, logprobs=reading)
        names = dict.fromkeys(_FIELD.findall(dialogue.messages[-1]["content"].rpartition("Respond with")[2]))
        fields = "\n\n".join(f"[[ ## {name} ## ]]\n1" for name in names)
        text = dialogue.choices[0] if dialogue.choices else fields or "{Answer: 1}"
        return Generation(text, "stop", "sample", 0, 0)


def _first(pool: Sequence[dspy.Example], k: int, _: str) -> SimpleNamespace:
    """Show the first solved questions of a pool, whatever is asked: no encoder is loaded."""
    return SimpleNamespace(find=lambda _: [*pool[:k]])


def sample_prompts(cell: CellSpec) -> list[str | None] | None:
    """Return a hash of what the cell's program asks for each invented question.

    None stands for a question that the user's code raised at, needed the network for, or prompts differently each time;
    for all of them, None alone.
    """
    asking = cell.program.asking
    questions, runs_code = _questions(cell), bool(asking.codes or ":" in (asking.adapter or ""))
    with ThreadPoolExecutor(1, "medexam-prompts") as thread:  # a loop may be running in this one
        # The user's code may draw lots or read a clock.
        turns = [
            thread.submit(copy_context().run, _ask_all, cell, questions, offline=runs_code).result()
            for _ in range(1 + runs_code)
        ]
    hashes = [first if first == last else None for first, last in zip(turns[0], turns[-1], strict=True)]
    return hashes if any(hashes) else None


def _ask_all(cell: CellSpec, questions: list[Any], *, offline: bool) -> list[str | None]:
    """Return a hash of the prompts for each question; what a network says is no part of them if `offline`."""
    retrieval = Retrieval(_LOOK_UP, hits=defaultdict(lambda: [Hit(_PASSAGE, 1.0, 1)]))
    program = build_cell_program(cell, retrieval, nearest=_first, in_order=lambda _: ())
    if offline:
        _install_guard()
        _offline.set(True)
    hashes: list[str | None] = []
    for question in questions:
        recorder = _Recorder()
        lm = answered_by(recorder)
        settings = {"lm": lm, "disable_history": True, "trace": None, "callbacks": [], "track_usage": False}
        only = OnlyModel(lm.model)
        with dspy.context(**settings, usage_tracker=only), suppress(Exception, OtherModelError, _EnoughError):
            program(question=question)
        # Calls that threads make at once come in any order.
        keys = "\n".join(sorted(dialogue.key for dialogue in recorder.dialogues))
        hashes.append(hashlib.sha256(keys.encode("utf-8", "surrogatepass")).hexdigest()[:12] if keys else None)
    return hashes


def _questions(cell: CellSpec) -> list[Question | Task]:
    language, asking = cell.dataset.language, cell.program.asking
    if cell.dataset.question_form != "choice":
        groups = asking.groups or ("CQ#E", "QP#CE", "Q#CE")
        steps = ("He is feverish.", "So he has a cold.")
        return [
            Task(f"sample/{n}", group, language, _TEXTS[n % 3], _PASSAGE.text, _OPTIONS[:4], _OPTIONS[1], steps)
            for n, group in enumerate(groups)
        ]
    return [
        Question(
            key=f"sample/{number}",
            exam=Exam("sample", 2000 + number, "medicine"),
            number=number + 1,
            language=language,
            stem=text,
            options=tuple(Option(place, option) for place, option in enumerate(_OPTIONS[: 4 + number % 2], start=1)),
            context=_PASSAGE.text if number == 1 else None,
            picture=None if asking.pictures is None else _PICTURE,
        )
        for number, text in enumerate(_TEXTS)
    ]


_offline: ContextVar[bool] = ContextVar("offline", default=False)


@cache
def _install_guard() -> None:

    def refuse(event: str, _: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto") and _offline.get():
            raise socket.gaierror("medexam looks at a program's prompts, and no network is there for that")

    sys.addaudithook(refuse)


def asked_words(program: ProgramSpec, language: Language) -> dict[str, Any]:
    """Read the content of the files that `program` takes its words in `language` from; empty for one without words.

    A loaded program replaces the prompt's words. The `encoder` that chooses demonstrations is known by its content.
    Raises `SpecError` where a file cannot be read, and `EngineError` where the encoder is missing.
    """
    words: dict[str, Any] = {}
    asking, adapter = program.asking, program.asking.adapter or ""
    if ":" in adapter:
        words["adapter"] = hash_source(adapter, ADAPTERS)
    if program.loads is not None:
        words["loaded"] = loaded_words(program.loads)
        if nearest := words["loaded"].get("nearest"):
            words["loaded"]["nearest"] = nearest_identity(**nearest)
        if asking.words is not None and (turn := describe_words(asking.words, language).get("turn")):
            words["turn"] = turn
    if (flow := program.flow) is not None:
        parts = flow.parts.values()
        sources = {part.name: hash_source(code, PROGRAMS) for part in parts if (code := part.step.by) not in BY}
        words |= {
            "parts": {
                part.name: describe_words(part.asked, language)
                if isinstance(part.asked, WordsSpec)
                else asked_words(part.asked, language)
                for part in (parts if flow.loads is None else ())
            },
            "asked_with": {part.name: _step_words(part, language) for part in parts},
            "sources": sources | {f"combine {name}": hash_source(name, PROGRAMS) for name in flow.combining_code},
        }
    elif asking.codes:
        words["source"] = hash_source(asking.codes[0], PROGRAMS)
    return words


def _step_words(part: StepPart, language: Language) -> dict[str, Any]:
    step = part.step
    try:
        words = step.read_words(language)
        if step.cite:
            words["cite"] = describe_words(step.cite, language)
    except SpecError as error:
        raise SpecError(f"program.{part.place}: {error}") from None
    if step.nearest is not None:
        words["nearest"] = nearest_identity(step.nearest, NEAREST)
    return words
