"""Which of our questions a sample is of: by key, else by its text and options, else by its text alone or within
a prompt.

Texts are compared twice. First without regard to capitals, white space and forms of one character (NFKC); what is not
found then is looked up by its letters and digits alone, which survive most conversions of a data set.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from medexam import Question
from medexam.questions import Task
from medexam_companions.harnesses.imports.prompts import PromptIndex
from medexam_companions.harnesses.imports.samples import HarnessSample

Signature = tuple[str, ...]
Index = dict[Signature, list[Question]]
MANY = 5
"""Answers of a table of which not all are right, unless the table's answers are the key."""
SHOWN = 60
"""Characters of a sample's text that a message repeats."""


@dataclass
class MatchReport:
    """Samples with their questions, and what became of all others."""

    pairs: dict[str, HarnessSample] = field(default_factory=dict)
    """Key of a question -> its sample."""
    methods: Counter[str] = field(default_factory=Counter)
    """How many were found by `key`, `text and options`, `letters and digits`, `text alone`, `text within` a
    prompt, or `text and order`."""
    unmatched: int = 0
    """Samples of none of our questions."""
    ambiguous: int = 0
    """Samples that may be of several questions, which cannot be told apart."""
    repeated: int = 0
    """Further samples of a question that has one; the first counts."""
    failed: int = 0
    """Samples that the harness could not ask or score; its own score leaves them out too."""
    example: str = ""
    """The first sample that was not matched, shortened."""

    @property
    def samples(self) -> int:
        """All samples of the file."""
        return len(self.pairs) + self.unmatched + self.ambiguous + self.repeated + self.failed

    def counts(self) -> dict[str, Any]:
        """Return the counts, JSON-ready; every sample is counted once."""
        return {
            "samples": self.samples,
            "matched": len(self.pairs),
            "by": dict(self.methods),
            "unmatched": self.unmatched,
            "ambiguous": self.ambiguous,
            "repeated": self.repeated,
            "failed": self.failed,
        }


def match_samples(
    samples: Iterable[HarnessSample], find: Callable[[HarnessSample], tuple[str, Sequence[Question | Task]]]
) -> MatchReport:
    """Match each sample with the question that `find` returns, with how it was found.

    Samples of several questions alike are taken in order if there are as many.
    """
    outcome = MatchReport()
    waiting: defaultdict[tuple[str, ...], list[HarnessSample]] = defaultdict(list)
    for sample in samples:
        if sample.failed:
            outcome.failed += 1
            continue
        method, questions = find(sample)
        if not questions:
            outcome.unmatched += 1
            outcome.example = outcome.example or _shown(sample)
        elif len(questions) > 1:
            waiting[tuple(question.key for question in questions)].append(sample)
        elif questions[0].key in outcome.pairs:
            outcome.repeated += 1
        else:
            outcome.pairs[questions[0].key] = sample
            outcome.methods[method] += 1
    for keys, group in waiting.items():
        free = [key for key in keys if key not in outcome.pairs]
        if len(free) == len(group):
            outcome.pairs |= dict(zip(free, group, strict=True))
            outcome.methods["text and order"] += len(group)
        else:
            outcome.ambiguous += len(group)
    return outcome


class Matcher:
    """Finds the questions of one data set by what a sample says of them."""

    def __init__(self, questions: Sequence[Question], published: Sequence[Question]) -> None:
        """Index the questions; `published` are those of them that were corrected, in the words that other harnesses
        have.
        """
        self._questions = questions
        self.published = {question.key: question for question in published}
        # Other copies of a data set know year, discipline and number, and not our name of the set.
        self._by_key = {question.key.partition("/")[2]: question for question in questions}
        self._by_key |= {question.key: question for question in questions}

    def match(self, samples: Iterable[HarnessSample]) -> MatchReport:
        """Match each sample with its question; samples of several questions alike are taken in order if there are as
        many.
        """
        return match_samples(samples, self._find)

    def _find(self, sample: HarnessSample) -> tuple[str, list[Question]]:
        for name in sample.ids:
            question = self._by_key.get(name)
            if question is not None and (sample.stem in (None, name) or _agrees(str(sample.stem), question)):
                return "key", [question]
        if sample.stem is None:
            return "", []
        if not sample.options:
            if matches := self._stems.get((loose(sample.stem),)):
                return "text alone", matches
            return "text within", self._prompts.find(sample.stem, ())
        near = self._near.get(_signature(near_text, sample.stem, sample.options))
        if near:
            return "text and options", near
        if matches := self._loose.get(_signature(loose, sample.stem, sample.options)):
            return "letters and digits", matches
        return "text within", self._prompts.find(sample.stem, sample.options)

    @cached_property
    def _near(self) -> Index:
        return self._index(lambda question: _signature(near_text, question.asked, _texts(question)))

    @cached_property
    def _loose(self) -> Index:
        return self._index(lambda question: _signature(loose, question.asked, _texts(question)))

    @cached_property
    def _prompts(self) -> PromptIndex:
        return PromptIndex(self._questions, loose)

    @cached_property
    def _stems(self) -> Index:
        return self._index(lambda question: (loose(question.asked),))

    def _index(self, sign: Callable[[Question], Signature]) -> Index:
        index: Index = {}
        for question in self._questions:
            index.setdefault(sign(question), []).append(question)
        for question in self.published.values():
            signature, our_question = sign(question), self._by_key[question.key]
            if our_question not in index.get(signature, ()):
                index.setdefault(signature, []).append(our_question)
        return index


def near_text(text: str) -> str:
    """Reduce the text so that capitals, white space and forms of one character make no difference."""
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def loose(text: str) -> str:
    """Reduce the text to its letters and digits alone, without accents."""
    text = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return "".join(filter(str.isalnum, text.casefold()))


def _signature(reduce: Callable[[str], str], stem: str, options: Iterable[str]) -> Signature:
    # Harnesses may have shuffled the options.
    return (reduce(stem), *sorted(map(reduce, options)))


def _texts(question: Question) -> list[str]:
    return [option.text for option in question.options]


def _agrees(stem: str, question: Question) -> bool:
    """Return whether a sample's text is, or holds, the question's: short ids of other data sets look like our keys."""
    return loose(question.stem) in loose(stem)


def _shown(sample: HarnessSample) -> str:
    text = " ".join((sample.stem or next(iter(sample.ids), "a sample without text or key")).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} [...]"
