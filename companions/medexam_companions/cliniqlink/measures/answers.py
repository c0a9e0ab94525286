"""Items and replies brought together, and each open answer made a pair of texts.

Which text is compared with which depends on the format. Multi-hop inverse asks which step is wrong and why: its step is
read here, and so is the price of a wrong one. How near texts are is found elsewhere.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medexam.errors import DatasetError
from medexam_companions.cliniqlink.measures.items import Format, Malformed, ScoringItem, ScoringProfile
from medexam_companions.cliniqlink.measures.texts import Reply, is_echo, reply_text

_GOLD_STEP = re.compile(r"step\D*(\d+)", re.IGNORECASE)
_STEP = re.compile(r"step\s*[:\-]?\s*(\d+)", re.IGNORECASE)
_EXPLANATION = re.compile(r"(?:incorrect\s+reasoning\s+)?explanation\s*[:\-]?", re.IGNORECASE)
_PENALTIES = (1.0, 0.7, 0.3)
_PREFIX = re.compile(r"\s*incorrect explanation\s*:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Flaw:
    """A wrong step and why it is wrong."""

    step: int | None
    """None if no number can be read."""
    explanation: str
    has_marker: bool
    """The word "explanation" was found."""


def gold_flaw(lines: Sequence[str]) -> Flaw:
    """Read the gold: the number in the first line with a step, and the first line that holds "explanation".

    That line is taken after its first colon, or whole without one. So where the line of the step says "explanation",
    it is taken for the explanation; the released scorer does so.
    """
    step = next((int(match[1]) for line in lines if (match := _GOLD_STEP.search(line))), None)
    line = next((line for line in lines if "explanation" in line.lower()), None)
    if line is None:
        return Flaw(step, "", has_marker=False)
    return Flaw(step, line.split(":", 1)[-1].strip(), has_marker=True)


def read_flaw(text: str) -> Flaw:
    """Read an answer: the first "step" with a number, wherever it stands, and what follows the first "explanation".

    Without that word the whole answer is the explanation.
    """
    number = _STEP.search(text)
    mark = _EXPLANATION.search(text)
    explanation = text[mark.end() :] if mark else text
    return Flaw(int(number[1]) if number else None, explanation.strip(), has_marker=mark is not None)


def step_factor(gold: int | None, predicted: int | None, profile: ScoringProfile) -> float:
    """Return what the explanation's score is multiplied by: 1, 0.7 and 0.3 for a distance of 0, 1 and 2 steps.

    Beyond, the published profile halves 0.3 with each step; the paper's stays at 0.3. 1 where either step is unknown.
    """
    if gold is None or predicted is None:
        return 1.0
    distance = abs(gold - predicted)
    beyond = max(distance - 2, 0)
    factor = _PENALTIES[min(distance, 2)]
    return factor * 0.5**beyond if profile.halving_penalty else factor


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """An item and the text of its reply."""

    item: ScoringItem
    text: str

    @property
    def flaws(self) -> tuple[Malformed, ...]:
        """What is wrong with the text whatever its format."""
        flaws = [Malformed.EMPTY] if not self.text else []
        return (*flaws, Malformed.UNCLOSED_REASONING) if "<think>" in self.text.lower() else tuple(flaws)


@dataclass(frozen=True, slots=True)
class OpenAnswer:
    """What is compared for an open answer."""

    item: ScoringItem
    gold: str
    predicted: str
    """Lower-cased for short and multi-hop; without its leading "incorrect explanation:" for short inverse."""
    factor: float
    """What the semantic score is multiplied by: the step penalty, 0 for an echo of the question, else 1."""
    names_step: bool
    """Multi-hop inverse: the wrong step is named."""
    flaws: tuple[Malformed, ...]

    @property
    def is_echo(self) -> bool:
        """The answer is the question."""
        return Malformed.ECHO in self.flaws


def match_replies(items: Sequence[ScoringItem], replies: Mapping[str, Reply]) -> list[ItemAnswer]:
    """Match each item with its reply: one answer for each item, in order.

    Raises `DatasetError` if a key occurs twice, has no reply or is of no item, and where a reply is no text.
    """
    keys: set[str] = set()
    answers = []
    for item in items:
        if item.key in keys:
            raise DatasetError(f"two items have the key {item.key!r}; give each its own")
        keys.add(item.key)
    counts = f"{len(items)} items and {len(replies)} replies"
    if (missing := next((item.key for item in items if item.key not in replies), None)) is not None:
        raise DatasetError(f"{counts}: item {missing!r} has no reply; ask it again, or leave the item out")
    if (unknown := next((key for key in replies if key not in keys), None)) is not None:
        raise DatasetError(f"{counts}: the reply {unknown!r} belongs to no item; leave it out, or give its item")
    for item in items:
        try:
            answers.append(ItemAnswer(item, reply_text(replies[item.key])))
        except TypeError as error:
            raise DatasetError(
                f"the reply {item.key!r} is of type {error}; give a text, a list of texts, or an object with "
                "generated_text or text"
            ) from None
    return answers


def open_answer(answer: ItemAnswer, profile: ScoringProfile) -> OpenAnswer:
    """Build the pair of texts of an answer to an open format."""
    item, text = answer.item, answer.text
    if item.format is Format.MULTI_HOP_INVERSE:
        return _inverse(answer, profile)
    echo = bool(text) and is_echo(item.question, text)
    flaws = (*answer.flaws, Malformed.ECHO) if echo else answer.flaws
    if item.format is Format.SHORT_INVERSE:
        gold, predicted = item.incorrect_explanation, _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
    else:
        gold, predicted = item.answer, text.lower()
    return OpenAnswer(item, gold, predicted, 0.0 if echo else 1.0, names_step=False, flaws=flaws)


def _inverse(answer: ItemAnswer, profile: ScoringProfile) -> OpenAnswer:
    gold, flaw = gold_flaw(answer.item.incorrect_step), read_flaw(answer.text)
    flaws = list(answer.flaws)
    if flaw.step is None:
        flaws.append(Malformed.NO_STEP)
    if not flaw.has_marker:
        flaws.append(Malformed.NO_EXPLANATION)
    factor = step_factor(gold.step, flaw.step, profile)
    names_step = flaw.step is not None and flaw.step == gold.step
    return OpenAnswer(
        answer.item, gold.explanation, flaw.explanation, factor, names_step=names_step, flaws=tuple(flaws)
    )
