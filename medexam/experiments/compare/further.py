"""Which further parts of a comparison are asked for, on the command line and in Python."""

from functools import partial

from medexam.errors import SpecError
from medexam.experiments.compare.ensembles import find_together
from medexam.experiments.compare.margins import Equivalence, find_margins
from medexam.experiments.compare.protocols import find_protocols
from medexam.experiments.compare.section import Finder
from medexam.plugins import load_part
from medexam.specs.programs.steps import Combine

COMPARISONS = "medexam.comparisons"
"""The group in which companions register parts."""


def find_further(
    equivalent_within: float | None = None,
    *,
    ensemble: Combine | None = None,
    strengths: bool = False,
    item_response: bool = False,
    subset: int | None = None,
    protocol: bool = False,
    cutoff: str | None = None,
    overlap: str | None = None,
    overlap_words: int | None = None,
) -> list[Finder]:
    """Return the finders of the parts; raises `SpecError` for a value that cannot be.

    `equivalent_within` is a margin in percentage points; None tests none. `ensemble` combines the answers of all runs.
    `strengths` sets all runs in an order. `item_response` judges the questions by them. `subset` chooses that many
    questions that stand for all. `protocol` says where their protocols differ. `cutoff` is where training data end, a
    year or `2023-06`. `overlap` is a corpus that is searched for the questions' words, `overlap_words` in a row, by
    default 13. Runs on altered questions are looked for without being asked to.
    """
    finders: list[Finder] = []
    if equivalent_within is not None:
        if not 0 < equivalent_within < 100:
            raise SpecError(
                f"--equivalent-within {equivalent_within:g}: give percentage points over 0 and under 100, such as 2.0"
            )
        finders.append(partial(find_margins, Equivalence, equivalent_within))
    if ensemble is not None:
        finders.append(partial(find_together, ensemble))
    if strengths:
        finders.append(load_part("strengths", COMPARISONS))
    if item_response:
        finders.append(load_part("item_response", COMPARISONS))
    if protocol:
        finders.append(find_protocols)
    if subset is not None:
        finders.append(partial(load_part("subset", COMPARISONS), subset))
    return [*finders, load_part("contamination", COMPARISONS)(cutoff, overlap, overlap_words)]
