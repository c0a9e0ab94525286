"""Questions inside whole prompts, for files that keep what the model read and not the question alone.

A prompt may show other questions before the one that it asks, so the last one counts. Texts are compared by their
letters and digits.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from medexam.questions import Question

OPENING = 24
"""Letters and digits by which a text is looked up; shorter texts count only with their options."""


class PromptIndex:
    """Finds the question that a prompt asks."""

    def __init__(self, questions: Sequence[Question], reduce: Callable[[str], str]) -> None:
        """`reduce` leaves the letters and digits of a text."""
        self._reduce = reduce
        self._by_opening: defaultdict[str, list[tuple[str, Question]]] = defaultdict(list)
        for question in questions:
            if text := reduce(question.asked):
                self._by_opening[text[:OPENING]].append((text, question))
        self._lengths = sorted({len(opening) for opening in self._by_opening})

    def find(self, prompt: str, options: Sequence[str]) -> list[Question]:
        """The questions that may be the last one of a prompt; those with the file's `options`, if it has any."""
        whole, given = self._reduce(prompt), sorted(map(self._reduce, options))
        found: list[tuple[int, int, bool, Question]] = []
        for start in range(len(whole)):
            for length in self._lengths:
                for text, question in self._by_opening.get(whole[start : start + length], ()):
                    if whole.startswith(text, start):
                        is_sure = self._has_options(whole[start + len(text) :], given, question)
                        if is_sure or (not given and len(text) >= OPENING):
                            found.append((start, len(text), is_sure, question))
        sure = [each for each in found if each[2]] or found
        last = max((each[:2] for each in sure), default=None)
        return [question for *place, _, question in sure if tuple(place) == last]

    def _has_options(self, rest: str, given: Sequence[str], question: Question) -> bool:
        """Whether a question's options are those that the file gives, or stand behind its text if it gives none."""
        texts = [self._reduce(option.text) for option in question.options]
        return sorted(texts) == given if given else all(texts) and all(text in rest for text in texts)
