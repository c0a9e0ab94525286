"""The two readings of ClinIQLink's rules: what the released scorer does, and what its paper says.

They differ in five places. Everything else, the scorer's other peculiarities included, is the same in both.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
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


PUBLISHED = Profile(
    "published",
    item_macro=False,
    halving_penalty=True,
    raw_paragraph=False,
    last_of_paragraph=True,
    missing_counts_zero=True,
)
"""The released code (commit 25cf06f of `Brandonio-c/ClinIQLink_CodaBench_docker-setup`), faults included."""
PAPER = Profile(
    "paper",
    item_macro=True,
    halving_penalty=False,
    raw_paragraph=True,
    last_of_paragraph=False,
    missing_counts_zero=False,
)
"""The shared task's paper where it differs from the code."""
