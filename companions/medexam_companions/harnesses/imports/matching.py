"""Which of our questions a sample is of: by its key, else by its text, alone or within a prompt, and its options.

Texts are compared by their letters and digits, which survive most conversions of a data set.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from medexam import Question
from medexam.questions import Task
from medexam.text import shorten
from medexam_companions.harnesses.imports.samples import HarnessSample

Item = Question | Task
OPENING = 24
"""Letters and digits by which a text is looked up in a prompt; shorter texts count only with their options."""
SHOWN = 60
"""Characters of a sample's text that a message repeats."""


@dataclass
class MatchReport:
    """Samples with their questions, and what became of all others."""

    pairs: dict[str, tuple[HarnessSample, Any]] = field(default_factory=dict)
    """Key of a question -> its sample, and the question in the sample's words."""
    methods: Counter[str] = field(default_factory=Counter)
    """How many were found by `key`, `text`, `text within` a prompt, or `text and order`."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Samples that are `unmatched`; `ambiguous`, of several questions; `repeated`, where the first counts; `failed`."""
    example: str = ""
    """The first sample that was not matched, shortened."""

    def counts(self) -> dict[str, Any]:
        """Return the counts, JSON-ready; every sample is counted once."""
        left_out = {name: self.left_out[name] for name in ("unmatched", "ambiguous", "repeated", "failed")}
        total = len(self.pairs) + sum(left_out.values())
        return {"samples": total, "matched": len(self.pairs), "by": dict(self.methods), **left_out}


class Matcher:
    """Finds the questions of one data set by what a sample says of them."""

    def __init__(self, items: Sequence[Item], published: Sequence[Question] = ()) -> None:
        """Index the questions; `published` are those of them that were corrected, in the words of other copies."""
        self._by_key: defaultdict[str, list[Item]] = defaultdict(list)
        self._by_text: defaultdict[str, list[Item]] = defaultdict(list)
        self._by_opening: defaultdict[str, list[tuple[str, Item]]] = defaultdict(list)
        for item in (*items, *published):
            # Other copies of a data set know year, discipline and number, and not our name of the set.
            for key in {item.key, item.key.partition("/")[2]} - {""}:
                self._by_key[key].append(item)
            text = loose(_text(item))
            self._by_text[text].append(item)
            if text and isinstance(item, Question):
                self._by_opening[text[:OPENING]].append((text, item))
        self._lengths = sorted({len(opening) for opening in self._by_opening})

    def match(self, samples: Iterable[HarnessSample]) -> MatchReport:
        """Match each sample; samples of several questions alike are taken in order if there are as many."""
        report = MatchReport()
        waiting: defaultdict[tuple[str, ...], list[tuple[HarnessSample, dict[str, Item]]]] = defaultdict(list)
        for sample in samples:
            if sample.failed:
                report.left_out["failed"] += 1
                continue
            method, candidates = self._find(sample)
            # Of a corrected question our words come first.
            items = {item.key: item for item in reversed(candidates)}
            if not items:
                report.left_out["unmatched"] += 1
                text = sample.stem or next(iter(sample.ids), "a sample without text or key")
                report.example = report.example or shorten(" ".join(text.split()), SHOWN)
            elif len(items) > 1:
                waiting[tuple(sorted(items))].append((sample, items))
            elif items.keys() <= report.pairs.keys():
                report.left_out["repeated"] += 1
            else:
                report.pairs |= {key: (sample, item) for key, item in items.items()}
                report.methods[method] += 1
        for group in waiting.values():
            free = [key for key in reversed(group[0][1]) if key not in report.pairs]
            if len(free) == len(group):
                report.pairs |= {key: (sample, items[key]) for key, (sample, items) in zip(free, group, strict=True)}
                report.methods["text and order"] += len(group)
            else:
                report.left_out["ambiguous"] += len(group)
        return report

    def _find(self, sample: HarnessSample) -> tuple[str, list[Item]]:
        for name in sample.ids:
            # Short ids of other data sets look like our keys.
            is_key_alone = sample.stem in (None, name)
            if items := [item for item in self._by_key.get(name, ()) if is_key_alone or _holds(str(sample.stem), item)]:
                return "key", [item for item in items if _has_options(item, sample)] or items
        if sample.stem is None:
            return "", []
        candidates = [item for item in self._by_text.get(loose(sample.stem), ()) if _agrees(item, sample)]
        if len({item.key for item in candidates}) > 1:
            candidates = [item for item in candidates if _shows_the_same(item, sample)] or candidates
        return ("text", candidates) if candidates else ("text within", self._find_within(sample))

    def _find_within(self, sample: HarnessSample) -> list[Item]:
        """Find the questions that may be the last one of a prompt, with the file's options or ours behind it."""
        prompt = loose(str(sample.stem))
        candidates: list[tuple[int, int, bool, Item]] = []
        for start in range(len(prompt)):
            for length in self._lengths:
                for text, item in self._by_opening.get(prompt[start : start + length], ()):
                    if prompt.startswith(text, start):
                        tail, our_texts = prompt[start + len(text) :], list(map(loose, _options(item)))
                        is_sure = (
                            _has_options(item, sample)
                            if sample.options
                            else all(each and each in tail for each in our_texts)
                        )
                        if is_sure or (not sample.options and len(text) >= OPENING):
                            candidates.append((start, len(text), is_sure, item))
        candidates = [each for each in candidates if each[2]] or candidates
        last = max((each[:2] for each in candidates), default=None)
        return [item for *place, _, item in candidates if tuple(place) == last]


def near_text(text: str) -> str:
    """Reduce the text so that capitals, white space and forms of one character make no difference."""
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def loose(text: str) -> str:
    """Reduce the text to its letters and digits alone, without accents."""
    text = text if text.isascii() else unicodedata.normalize("NFKD", text)
    return "".join(filter(str.isalnum, text.casefold()))


def _text(item: Item) -> str:
    return item.asked if isinstance(item, Question) else item.question


def _options(item: Item) -> list[str]:
    return [option.text for option in item.options] if isinstance(item, Question) else list(item.options)


def _holds(stem: str, item: Item) -> bool:
    return loose(item.stem if isinstance(item, Question) else item.question) in loose(stem)


def _has_options(item: Item, sample: HarnessSample) -> bool:
    # Harnesses may have shuffled the options.
    return sorted(map(loose, _options(item))) == sorted(map(loose, sample.options))


def _agrees(item: Item, sample: HarnessSample) -> bool:
    """Return whether an item of a sample's text has its options, if the file holds any; in words, its group."""
    if isinstance(item, Task):
        return sample.group in (None, item.group)
    return not sample.options or _has_options(item, sample)


def _shows_the_same(item: Item, sample: HarnessSample) -> bool:
    """Return whether an item shows the options and the answer that a sample holds; each may lack them."""
    answer = loose(getattr(item, "given_answer", ""))
    has_options = not sample.options or _has_options(item, sample)
    return has_options and (not sample.given_answer or answer == loose(sample.given_answer))
