"""Questions inside whole prompts, for files that keep what the model read and not the question alone.

A prompt may show other questions before the one that it asks, so the last one counts. Texts are compared by their
letters and digits.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from medexam import Question

OPENING = 24
"""Letters and digits by which a text is looked up; shorter texts count only with their options."""


class PromptIndex:
    """Finds the question that a prompt asks."""

    def __init__(self, questions: Sequence[Question], reduce: Callable[[str], str]) -> None:
        """Index the questions by their opening; `reduce` leaves the letters and digits of a text."""
        self._reduce = reduce
        self._by_opening: defaultdict[str, list[tuple[str, Question]]] = defaultdict(list)
        for question in questions:
            if text := reduce(question.asked):
                self._by_opening[text[:OPENING]].append((text, question))
        self._lengths = sorted({len(opening) for opening in self._by_opening})

    def find(self, prompt: str, options: Sequence[str]) -> list[Question]:
        """Find the questions that may be the last one of a prompt; those with the file's `options`, if it has any."""
        full_text, option_texts = self._reduce(prompt), sorted(map(self._reduce, options))
        candidates: list[tuple[int, int, bool, Question]] = []
        for start in range(len(full_text)):
            for length in self._lengths:
                for text, question in self._by_opening.get(full_text[start : start + length], ()):
                    if full_text.startswith(text, start):
                        is_sure = self._has_options(full_text[start + len(text) :], option_texts, question)
                        if is_sure or (not option_texts and len(text) >= OPENING):
                            candidates.append((start, len(text), is_sure, question))
        sure_candidates = [candidate for candidate in candidates if candidate[2]] or candidates
        last_place = max((candidate[:2] for candidate in sure_candidates), default=None)
        return [question for *place, _, question in sure_candidates if tuple(place) == last_place]

    def _has_options(self, tail: str, option_texts: Sequence[str], question: Question) -> bool:
        """Return whether a question's options are `option_texts`, those that the file gives, or stand in `tail` if it
        gives none.
        """
        texts = [self._reduce(option.text) for option in question.options]
        return sorted(texts) == option_texts if option_texts else all(texts) and all(text in tail for text in texts)
