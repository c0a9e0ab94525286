"""Multi-hop inverse: which step is wrong and why, read from the gold and from an answer, and the price of a wrong step.

The explanations are compared elsewhere; this knows texts and numbers only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from medexam.metrics.cliniqlink.profiles import Profile

_GOLD_STEP = re.compile(r"step\D*(\d+)", re.IGNORECASE)
_STEP = re.compile(r"step\s*[:\-]?\s*(\d+)", re.IGNORECASE)
_EXPLANATION = re.compile(r"(?:incorrect\s+reasoning\s+)?explanation\s*[:\-]?", re.IGNORECASE)
_PENALTIES = (1.0, 0.7, 0.3)


@dataclass(frozen=True, slots=True)
class Flaw:
    """A wrong step and why it is wrong."""

    step: int | None
    """None where no number can be read."""
    explanation: str
    marked: bool
    """The word "explanation" was found."""


def gold_flaw(lines: Sequence[str]) -> Flaw:
    """The gold: the number in the first line with a step, and the first line that holds "explanation".

    That line is taken after its first colon, or whole without one. So where the line of the step says "explanation",
    it is taken for the explanation; the released scorer does so.
    """
    step = next((int(found[1]) for line in lines if (found := _GOLD_STEP.search(line))), None)
    line = next((line for line in lines if "explanation" in line.lower()), None)
    if line is None:
        return Flaw(step, "", marked=False)
    return Flaw(step, line.split(":", 1)[-1].strip(), marked=True)


def read_flaw(text: str) -> Flaw:
    """An answer: the first "step" with a number, wherever it stands, and what follows the first "explanation".

    Without that word the whole answer is the explanation.
    """
    number = _STEP.search(text)
    mark = _EXPLANATION.search(text)
    explanation = text[mark.end() :] if mark else text
    return Flaw(int(number[1]) if number else None, explanation.strip(), marked=mark is not None)


def step_factor(gold: int | None, predicted: int | None, profile: Profile) -> float:
    """What the explanation's score is multiplied by: 1, 0.7 and 0.3 for a distance of 0, 1 and 2 steps.

    Beyond, the published profile halves 0.3 with each step; the paper's stays at 0.3. 1 where either step is unknown.
    """
    if gold is None or predicted is None:
        return 1.0
    distance = abs(gold - predicted)
    beyond = max(distance - 2, 0)
    factor = _PENALTIES[min(distance, 2)]
    return factor * 0.5**beyond if profile.halving_penalty else factor
