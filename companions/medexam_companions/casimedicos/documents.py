"""Reads CasiMedicos-Arg: exam questions that physicians explain, with argument components, in four languages.

The quirks of its files end here: no document marks, headings in several languages, a fifth option `nan`, option marks
that a translation broke. The files do not mark where a case ends and its question begins, so the last sentence before
the options is taken as the question, and a document says where that is doubtful. They hold no answer spans either.

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
from medexam_companions.casimedicos.files import Sentence, parse_sentences, read_members

CaseLanguage = Literal["en", "es", "fr", "it"]
"""Spanish is the original; the others are translations of it."""
Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
Part = Literal["case", "question", "option", "explanation"]
Kind = Literal["premise", "claim"]

CUT_ANOMALIES = frozenset({"no_case", "case_in_question", "question_in_case", "question_unmarked"})
"""Anomalies under which `case` and `question` may be cut at the wrong place.

Both are one sentence; a premise stands in the question; a question mark stands in the case; the question ends without a
question mark or a colon.
"""

_OPTIONS = 5
_ANSWER = re.compile(r"(?:CORRECT ANSWER|BONNE RÉPONSE|RÉPONSE CORRECTE|RISPOSTA CORRETTA) ?: ?([1-5])")
_TYPE = re.compile(r"QUESTION TYPE ?:(?: (?P<rest>.*))?")
_CASE = re.compile(r"CLINICAL CASE ?:")
_INVISIBLE = re.compile("[\u00ad\u200b]")


@dataclass(frozen=True, slots=True)
class ArgumentComponent:
    """One premise or claim; none crosses the end of a sentence."""

    kind: Kind
    text: str
    start: int
    """The first character, counted from 0 in the text of `part`, not in the whole document."""
    end: int
    """The character after the last one."""
    part: Part
    """Which text of its document it stands in."""
    option: int | None = None
    """The number of the option that it stands in; None in the other parts."""


@dataclass(frozen=True, slots=True)
class CaseDocument:
    """One question with its explanation. Texts are the file's tokens, joined by single spaces."""

    key: str
    """`casimedicos/test/17`: the split and the place in its file, from 0; the same in the four languages."""
    split: Split
    language: CaseLanguage
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
    components: tuple[ArgumentComponent, ...]
    """In the order of the text; labels on headings and on option marks are left out."""
    anomalies: tuple[str, ...]
    """What is irregular, sorted: `CUT_ANOMALIES`, two options that are the same, a soft hyphen or a zero-width space
    that stands in a word, a mark of an option that a translation broke, and an option of more than one sentence."""


def read_casimedicos(path: Path, language: CaseLanguage, splits: Sequence[Split] = SPLITS) -> tuple[CaseDocument, ...]:
    """Read the documents of `splits` in `language`, in the order of the files: 553 in all three.

    `path` is `casimedicos-arg.tar.gz`, which is read as it is, or a folder that holds it or was unpacked from it.
    Raises `DatasetError` naming file and line where something cannot be read.
    """
    names = [f"{language.upper()}/{split}.tsv" for split in splits]
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


def shared_options(documents: Iterable[CaseDocument]) -> tuple[str, ...]:
    """List the keys of the documents outside of train whose options, in any order and case, a train document has too.

    An exam question that two physicians commented stands in the data twice. Languages are compared each with itself.
    Spanish, the original, finds the most: 10 of 55 in dev and 21 of 117 in test. A key means the same question in every
    language, so these keys serve for the translations too.
    """
    option_sets = [
        (document, document.language, frozenset(map(str.casefold, document.options))) for document in documents
    ]
    train_sets = {(language, options) for document, language, options in option_sets if document.split == "train"}
    leaked = (
        document.key for document, *options in option_sets if document.split != "train" and tuple(options) in train_sets
    )
    return tuple(dict.fromkeys(leaked))


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


def _parse_document(sentences: Sequence[Sentence], key: str, split: Split, language: CaseLanguage) -> CaseDocument:
    """Parse the document of its sentences; raise `DatasetError` naming what is missing."""
    heading = _TYPE.fullmatch(sentences[0].text)
    specialty = (heading["rest"] if heading else None) or ""
    if len(sentences) < 2 or not _CASE.fullmatch(sentences[1].text):
        raise DatasetError("the sentence after QUESTION TYPE: is not CLINICAL CASE:")
    answers = [
        (place, match) for place, sentence in enumerate(sentences) if (match := _ANSWER.fullmatch(sentence.text))
    ]
    if len(answers) != 1:
        raise DatasetError(f"has {len(answers)} sentences that state the correct answer, not one")
    place, stated = answers[0]
    anomalies: set[str] = set()
    starts = _find_options(sentences[:place], anomalies)
    body, explained = sentences[2 : starts[0]], sentences[place + 1 :]
    if not body or not explained:
        raise DatasetError(f"has no {'explanation' if body else 'question'}")
    components: list[ArgumentComponent] = []
    case = _compose(body[:-1], components, "case")
    question = _compose(body[-1:], components, "question")
    options = _compose_options(sentences, [*starts, place], components, anomalies)
    explanation = _compose(explained, components, "explanation")
    correct = int(stated[1])
    if correct > len(options):
        raise DatasetError(f"states option {correct} as right but has {len(options)}")
    anomalies.update(_doubt_cut(case, question, components))
    if any(_INVISIBLE.search(sentence.text) for sentence in sentences):
        anomalies.add("invisible_character")
    return CaseDocument(
        key=key,
        split=split,
        language=language,
        specialty=specialty,
        case=case,
        question=question,
        options=options,
        correct=correct,
        explanation=explanation,
        components=tuple(components),
        anomalies=tuple(sorted(anomalies)),
    )


def _find_options(sentences: Sequence[Sentence], anomalies: set[str]) -> list[int]:
    """Find where the options begin among the sentences before the answer; from the last one back, so that no case
    misleads.

    A mark is a whole first token, such as `3-`, so "3-year-old" is none. Only where that is missing between its
    neighbours, `3 -`, `3-Word` and `3` are taken too.
    """
    starts: list[int] = []
    limit = len(sentences)
    for number in range(_OPTIONS, 0, -1):
        exact = _find_last(sentences, range(2, limit), f"{number}-")
        if exact is None:
            before = _find_last(sentences, range(2, limit), f"{number - 1}-")
            inside = range(2 if before is None else before + 1, limit)
            exact = next((index for index in reversed(inside) if _mark_length(sentences[index].text, number)), None)
            anomalies.add("irregular_option_mark")
        if exact is None:
            raise DatasetError(f"has no sentence that begins with {number}- before the correct answer")
        starts.append(exact)
        limit = exact
    return starts[::-1]


def _find_last(sentences: Sequence[Sentence], places: range, token: str) -> int | None:
    return next((index for index in reversed(places) if sentences[index].tokens[0] == token), None)


def _mark_length(text: str, number: int) -> int:
    """Count how many characters of an option's text are its mark; 0 if it does not begin with one."""
    match = re.match(rf"{number}(?: ?- ?| )", text)
    return match.end() if match else 0


def _compose_options(
    sentences: Sequence[Sentence], borders: Sequence[int], components: list[ArgumentComponent], anomalies: set[str]
) -> tuple[str, ...]:
    options: list[str] = []
    for number, (start, end) in enumerate(pairwise(borders), start=1):
        mark = _mark_length(sentences[start].text, number)
        text = _compose(sentences[start:end], components, "option", option=number, skipped=mark)
        if number == _OPTIONS and text.lower() == "nan":
            continue
        if not text:
            raise DatasetError(f"option {number} is empty")
        options.append(text)
        if end - start > 1:
            anomalies.add("option_of_sentences")
    if len(set(options)) < len(options):
        anomalies.add("identical_options")
    return tuple(options)


def _compose(
    sentences: Sequence[Sentence],
    components: list[ArgumentComponent],
    part: Part,
    *,
    option: int | None = None,
    skipped: int = 0,
) -> str:
    """Compose the text of `sentences` without its first `skipped` characters; add what it argues to `components`."""
    full_text = " ".join(sentence.text for sentence in sentences)
    position = 0
    for sentence in sentences:
        for kind, start, end in _find_spans(sentence, position):
            begin = max(start, skipped)
            if begin < end:
                place = begin - skipped, end - skipped
                components.append(ArgumentComponent(kind, full_text[begin:end], *place, part, option))
        position += len(sentence.text) + 1
    return full_text[skipped:]


def _find_spans(sentence: Sentence, position: int) -> Iterator[tuple[Kind, int, int]]:
    """Yield kind, start and end of what is labelled, for a sentence that begins at character `position`.

    An `I-` label that continues nothing of its kind begins a span; the French and Italian files hold five of them.
    """
    open_kind: Kind | None = None
    start = end = position
    for token, label in zip(sentence.tokens, sentence.labels, strict=True):
        kind: Kind | None = None if label == "O" else "premise" if label.endswith("Premise") else "claim"
        if open_kind is not None and (kind != open_kind or label.startswith("B")):
            yield open_kind, start, end
            open_kind = None
        if kind is not None and open_kind is None:
            open_kind, start = kind, position
        end = position + len(token)
        position = end + 1
    if open_kind is not None:
        yield open_kind, start, end


def _doubt_cut(case: str, question: str, components: Iterable[ArgumentComponent]) -> Iterator[str]:
    """Yield why the cut between case and question may be wrong."""
    if not case:
        yield "no_case"
    elif any(component.part == "question" and component.kind == "premise" for component in components):
        yield "case_in_question"
    if "?" in case:
        yield "question_in_case"
    if not question.endswith(("?", ":")):
        yield "question_unmarked"
