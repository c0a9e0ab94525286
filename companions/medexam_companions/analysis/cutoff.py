"""`medexam compare --cutoff`: exams before and after the date at which a model's training data end.

A run that does better before than after, beyond what the baseline does, may have seen the earlier exams: the baseline
is the control for exams that are harder than others.
"""

import re
from functools import partial

import numpy as np

from medexam.errors import DatasetError, SpecError
from medexam.experiments import ComparisonScope, ComparisonSection, Finder
from medexam_companions.analysis.sides import SideWords, contrast_sides

_DATE = re.compile(r"(?P<year>(?:19|20)\d\d)(?:-(?P<month>0[1-9]|1[0-2]))?")


def at_cutoff(text: str) -> Finder:
    """Return what contrasts runs before and after `2023` or `2023-06`; raises `SpecError` for anything else."""
    if (date := _DATE.fullmatch(text)) is None:
        raise SpecError(f"--cutoff {text}: give the year, or year and month, such as 2023 or 2023-06")
    return partial(_find_around, date)


def _find_around(date: re.Match[str], compared: ComparisonScope) -> ComparisonSection:
    """Contrast the runs before and after the cutoff; raises `DatasetError` if no exam, or every one, lies before it.

    Exams of the cutoff's own year lie before it only if it is that year's end.
    """
    year, at_end = int(date["year"]), date["month"] in (None, "12")
    label = str(year) if at_end else date[0]
    items = {item.key: item for item in compared.items}
    years = [compared.benchmark.place(items[key]).get("year") for key in compared.scored.keys]
    before = np.array([each is not None and (each < year or (each == year and at_end)) for each in years])
    after = np.array([each is not None and each > year for each in years])
    if not before.any() or not after.any():
        raise DatasetError(
            f"--cutoff {label}: {int(before.sum()):,} of the compared questions are of years before it and "
            f"{int(after.sum()):,} of years after it: give a date between the exams' years, or leave it out"
        )
    words = SideWords(
        title=f"before and after the cutoff {label}",
        headers=("Before", "After"),
        phrases=(f"up to {label}", f"after {label}"),
        neither="their exam may lie on either side",
        cause="earlier exams in its training data",
    )
    return contrast_sides(words, before, after, compared)
