"""Reads CasiMedicos-Arg: exam questions that physicians explain, with argument components, in four languages.

The quirks of its files end here: no document marks, headings in several languages, a fifth option `nan`, option marks
that a translation broke. The files do not mark where a case ends and its question begins, so the last sentence before
the options is taken as the question. They hold no answer spans either.

Sviridova et al. (2024), "CasiMedicos-Arg: a medical question answering dataset annotated with explanatory
argumentative structures".
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from medexam.errors import DatasetError
from medexam.questions import Component, Language
from medexam_companions.casimedicos.files import Sentence, parse_sentences, read_members

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")

_OPTIONS = 5
_ANSWER = re.compile(r"(?:CORRECT ANSWER|BONNE RÉPONSE|RÉPONSE CORRECTE|RISPOSTA CORRETTA) ?: ?([1-5])")
_TYPE = re.compile(r"QUESTION TYPE ?:(?: (?P<rest>.*))?")
_CASE = re.compile(r"CLINICAL CASE ?:")


@dataclass(frozen=True, slots=True)
class CaseDocument:
    """One question with its explanation. Texts are the file's tokens, joined by single spaces."""

    key: str
    """`casimedicos/test/17`: the split and the place in its file, from 0; the same in the four languages."""
    split: Split
    language: Language
    """Spanish is the original; the others are translations of it."""
    specialty: str
    """As the file says it: English in the English and Spanish files, translated in the others."""
    case: str
    """What stands before `question`; empty if both are one sentence."""
    question: str
    """The last sentence before the options."""
    options: tuple[str, ...]
    """Four or five; option n is item n - 1."""
    correct: int
    """The number of the right option, from 1."""
    explanation: str
    components: tuple[Component, ...]
    """The premises and claims of the explanation, by their places in it; none crosses the end of a sentence."""


def read_casimedicos(path: Path, language: Language, splits: Sequence[Split] = SPLITS) -> tuple[CaseDocument, ...]:
    """Read the documents of `splits` in `language`, in the order of the files: 553 in all three.

    `path` is `casimedicos-arg.tar.gz`, which is read as it is, the folder of the languages that it was unpacked to, or
    a file of one. Raises `DatasetError` naming file and line where something cannot be read.
    """
    names = [f"{language.upper()}/{split}.tsv" for split in splits]
    if path.suffix == ".tsv":
        path = path.parent.parent
    documents: list[CaseDocument] = []
    for split, (source, text) in zip(splits, read_members(path, names), strict=True):
        groups = list(_split_documents(parse_sentences(text, source), source))
        if not groups:
            raise DatasetError(f"{source}: holds no document: none of its sentences begins with QUESTION TYPE:")
        for place, sentences in enumerate(groups):
            key = f"casimedicos/{split}/{place}"
            try:
                documents.append(_parse_document(sentences, key, split, language))
            except DatasetError as error:
                raise DatasetError(
                    f"{source}, line {sentences[0].line}, {key}: {error}: the file is not as its authors published it; "
                    f"unpack their archive again"
                ) from None
    return tuple(documents)


def _split_documents(sentences: Iterable[Sentence], source: str) -> Iterator[list[Sentence]]:
    document: list[Sentence] = []
    for sentence in sentences:
        if _TYPE.fullmatch(sentence.text):
            if document:
                yield document
            document = []
        elif not document:
            raise DatasetError(f"{source}, line {sentence.line}: comes before the first QUESTION TYPE:")
        document.append(sentence)
    if document:
        yield document


def _parse_document(sentences: Sequence[Sentence], key: str, split: Split, language: Language) -> CaseDocument:
    """Parse the document of its sentences; raise `DatasetError` naming what is missing."""
    heading = _TYPE.fullmatch(sentences[0].text)
    if len(sentences) < 2 or not _CASE.fullmatch(sentences[1].text):
        raise DatasetError("the sentence after QUESTION TYPE: is not CLINICAL CASE:")
    answers = [
        (place, match) for place, sentence in enumerate(sentences) if (match := _ANSWER.fullmatch(sentence.text))
    ]
    if len(answers) != 1:
        raise DatasetError(f"has {len(answers)} sentences that state the correct answer, not one")
    place, stated = answers[0]
    starts = _find_options(sentences[:place])
    body, explained = sentences[2 : starts[0]], sentences[place + 1 :]
    if not body or not explained:
        raise DatasetError(f"has no {'explanation' if body else 'question'}")
    options = tuple(_compose_options(sentences, [*starts, place]))
    correct = int(stated[1])
    if correct > len(options):
        raise DatasetError(f"states option {correct} as right but has {len(options)}")
    return CaseDocument(
        key=key,
        split=split,
        language=language,
        specialty=(heading["rest"] if heading else None) or "",
        case=_join(body[:-1]),
        question=_join(body[-1:]),
        options=options,
        correct=correct,
        explanation=_join(explained),
        components=tuple(_find_components(explained)),
    )


def _find_options(sentences: Sequence[Sentence]) -> list[int]:
    """Find where the options begin among the sentences before the answer; from the last one back, so that no case
    misleads.

    A mark is a whole first token, such as `3-`, so "3-year-old" is none. Only where that is missing between its
    neighbours, `3 -`, `3-Word` and `3` are taken too.
    """
    starts: list[int] = []
    limit = len(sentences)
    for number in range(_OPTIONS, 0, -1):
        exact = _find_last(sentences, limit, f"{number}-")
        if exact is None:
            before = _find_last(sentences, limit, f"{number - 1}-")
            inside = range(2 if before is None else before + 1, limit)
            exact = next((index for index in reversed(inside) if _mark_length(sentences[index].text, number)), None)
        if exact is None:
            raise DatasetError(f"has no sentence that begins with {number}- before the correct answer")
        starts.append(exact)
        limit = exact
    return starts[::-1]


def _find_last(sentences: Sequence[Sentence], limit: int, token: str) -> int | None:
    return next((index for index in reversed(range(2, limit)) if sentences[index].tokens[0] == token), None)


def _mark_length(text: str, number: int) -> int:
    """Count how many characters of an option's text are its mark; 0 if it does not begin with one."""
    match = re.match(rf"{number}(?: ?- ?| )", text)
    return match.end() if match else 0


def _compose_options(sentences: Sequence[Sentence], borders: Sequence[int]) -> Iterator[str]:
    for number, (start, end) in enumerate(pairwise(borders), start=1):
        text = _join(sentences[start:end])[_mark_length(sentences[start].text, number) :]
        if number == _OPTIONS and text.lower() == "nan":
            continue
        if not text:
            raise DatasetError(f"option {number} is empty")
        yield text


def _join(sentences: Sequence[Sentence]) -> str:
    return " ".join(sentence.text for sentence in sentences)


def _find_components(sentences: Iterable[Sentence]) -> Iterator[Component]:
    """Yield what is labelled in sentences that are joined by single spaces.

    An `I-` label that continues nothing of its kind begins a component; the French and Italian files hold five of them.
    """
    position = 0
    for sentence in sentences:
        open_label: str | None = None
        start = end = position
        for token, mark in zip(sentence.tokens, sentence.labels, strict=True):
            label = None if mark == "O" else mark[2:].lower()
            if open_label is not None and (label != open_label or mark.startswith("B")):
                yield Component(open_label, start, end)
                open_label = None
            if label is not None and open_label is None:
                open_label, start = label, position
            end = position + len(token)
            position = end + 1
        if open_label is not None:
            yield Component(open_label, start, end)
