"""The words of ClinIQLink: the seven formats, what an item expects, what can be wrong with an output, and two profiles.

The profiles are two readings of its rules: what the released scorer does, and what its paper says. They differ in five
places. Everything else, the scorer's other peculiarities included, is the same in both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Format(StrEnum):
    """The seven kinds of questions."""

    TRUE_FALSE = "true_false"
    MULTIPLE_CHOICE = "multiple_choice"
    LIST = "list"
    SHORT = "short"
    SHORT_INVERSE = "short_inverse"
    MULTI_HOP = "multi_hop"
    MULTI_HOP_INVERSE = "multi_hop_inverse"


CLOSED = (Format.TRUE_FALSE, Format.MULTIPLE_CHOICE, Format.LIST)
"""Formats that are scored by equal texts."""
OPEN = (Format.SHORT, Format.SHORT_INVERSE, Format.MULTI_HOP, Format.MULTI_HOP_INVERSE)
"""Formats that are scored by meaning."""


class Malformed(StrEnum):
    """What keeps an output from being what its prompt asked for. One output may have several."""

    EMPTY = "empty"
    """Nothing is left once the closed reasoning is removed."""
    UNCLOSED_REASONING = "unclosed reasoning"
    """A `<think>` without its end; it stays in the answer."""
    NO_VERDICT = "no verdict"
    """True/false: it begins with neither word."""
    TRAILING_TEXT = "trailing text"
    """True/false: text follows the word. It costs nothing."""
    NOT_AN_OPTION = "not an option"
    """Multiple choice: it is no option's text."""
    UNMATCHED_PIECE = "unmatched piece"
    """List: at least one piece is no option, which costs the whole item."""
    ECHO = "echo"
    """Open formats: it is the question."""
    NO_STEP = "no step"
    """Multi-hop inverse: no step number can be read, which spares the step penalty."""
    NO_EXPLANATION = "no explanation"
    """Multi-hop inverse: no explanation is marked, so that the whole output counts as one."""


@dataclass(frozen=True, slots=True)
class ScoringItem:
    """A question and what is expected, as the scorer needs it."""

    format: Format
    key: str
    """Identity; unique among the items that are scored together."""
    question: str
    gold: tuple[str, ...]
    """The answer: one text, or a list's entries. `correct_answer` of multiple choice (a text or a letter), the false
    answer of the inverse formats."""
    options: tuple[str, ...] = ()
    """Multiple choice and list, in the order shown."""
    incorrect_explanation: str = ""
    """Short inverse: why the false answer is wrong."""
    incorrect_step: tuple[str, ...] = ()
    """Multi-hop inverse: the lines of `incorrect_reasoning_step`."""
    paragraph: str | None = None
    """`source.paragraph_id`. The published code keeps the last of the items that share it in everything but true/false
    and multiple-choice accuracy and the mean semantic scores. None: shared with no other item."""

    @property
    def answer(self) -> str:
        """The gold as one text, a list's entries joined by a space."""
        return " ".join(self.gold).strip()


def reference_texts(items: Iterable[ScoringItem]) -> list[str]:
    """List the non-empty `answer` fields, in the order of `items`: what word weights and the baseline are counted over.

    Multiple choice has no such field. The inverse formats give their false answer, true/false gives its word.
    """
    answers = (item.answer for item in items if item.format is not Format.MULTIPLE_CHOICE)
    return [answer for answer in answers if answer]


@dataclass(frozen=True, slots=True)
class ScoringProfile:
    """Where the released code and the paper part."""

    name: str
    item_macro: bool
    """The list score is the mean of the items' F1; otherwise the mean over distinct label strings."""
    halving_penalty: bool
    """The step penalty halves with each step beyond the second; otherwise it is 0.3 from two steps on."""
    raw_paragraph: bool
    """The paragraph layer compares the texts as they are; otherwise without stop words."""
    last_of_paragraph: bool
    """Of items that share a paragraph the last alone counts in list figures, step rate and n-gram means."""
    missing_counts_zero: bool
    """A format without scored items counts 0 in the overall mean; otherwise there is no overall mean then."""


PUBLISHED = ScoringProfile(
    "published",
    item_macro=False,
    halving_penalty=True,
    raw_paragraph=False,
    last_of_paragraph=True,
    missing_counts_zero=True,
)
"""The released code (commit 25cf06f of `Brandonio-c/ClinIQLink_CodaBench_docker-setup`), faults included."""
PAPER = ScoringProfile(
    "paper",
    item_macro=True,
    halving_penalty=False,
    raw_paragraph=True,
    last_of_paragraph=False,
    missing_counts_zero=False,
)
"""The shared task's paper where it differs from the code."""
