"""What `medexam compare` finds of several runs, as one value, and the further parts that somebody may ask for."""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from medexam.distributions import LEVEL
from medexam.experiments.report.shown import Block, Displayed
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures import Benchmark
from medexam.measures.comparing import Paired, RunAnswers
from medexam.measures.intervals import RESAMPLES, SEED
from medexam.measures.margins import Noise
from medexam.measures.paired import Measured, Sheet
from medexam.measures.paired_tables import document_of, paired_document
from medexam.measures.results import Resampling
from medexam.questions import AnySet
from medexam.tables import Table


@dataclass(frozen=True)
class ComparisonScope:
    """What a part may be found from: runs, and the items that all of them have scored."""

    benchmark: Benchmark[Any, Any]
    statistics: Paired
    folders: Sequence[RunFolder]
    """The baseline first, as in all that follows."""
    records: Sequence[RunRecord]
    sets: Sequence[AnySet]
    """The data of each run."""
    items: Sequence[Any]
    predictions: Sequence[RunAnswers]
    """The whole run's, also of items that are not compared."""
    exclusions: Mapping[str, int]
    """Reason -> questions that at least one run was asked for and that are not compared, each under its first one."""
    noises: tuple[Noise | None, ...]
    """How far each run varies; None: it was not asked again."""
    names: Sequence[str] = ()
    """What tables call the runs."""
    run_keys: Sequence[str] = ()
    """What `--json` calls them."""

    @cached_property
    def scored(self) -> Sheet:
        """The items that all runs have a score for in the measure that runs are known by."""
        return self.statistics.sheet.only(~np.isnan(self.statistics.sheet.first).any(axis=0))


@dataclass(frozen=True)
class ComparisonSection:
    """What was found."""

    name: str
    """Its key in `--json`."""
    sentences: Sequence[str]
    """What may be said."""
    document: Mapping[str, Any]
    """What `--json` says, where runs are called by their keys."""
    tables: Sequence[Table] = ()


Finder = Callable[[ComparisonScope], ComparisonSection | None]
"""Finds a part; None if the runs have nothing for it."""
DROPPED = {
    "not_in_every_run": "not in every run",
    "failed": "failed in at least one",
    "not_asked_yet": "not asked yet in at least one",
    "other_gold": "with another text or right answer in another run's data",
}
"""Why a question is not compared -> its words."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Comparison(Displayed, ComparisonScope):
    """Two runs or more on the same questions, and what is found of them."""

    runs: tuple[StoredRun, ...]
    """The baseline first. Their metrics are those of the compared questions and of no others."""
    pending: tuple[int, ...]
    """Questions that each run was asked for and has not scored: failed, or not asked yet."""
    notes: tuple[str, ...]
    """What a reader should know of how the runs differ in what they asked; usually empty."""
    own: list[Measured]
    """Of each pair, the user's own metrics that all runs were scored by; empty if there is none."""
    sections: tuple[ComparisonSection, ...]
    """Further parts that were asked for."""

    @property
    def questions(self) -> tuple[str, ...]:
        """Keys of the compared questions, in the baseline's order."""
        return tuple(self.statistics.sheet.keys)

    def blocks(self) -> list[Block]:
        """Build what `medexam compare` prints."""
        from medexam.experiments.report.comparison_tables import comparison_blocks

        return comparison_blocks(self)

    def markdown(self) -> str:
        """Render what `medexam compare --markdown` writes."""
        from medexam.experiments.report.comparison_tables import paired_report

        return paired_report(self)

    def latex(self) -> str:
        """Render the tables of scores and differences in LaTeX; what may be said of them is comments."""
        from medexam.experiments.report.comparison_tables import comparison_blocks
        from medexam.experiments.report.markdown import render_latex

        return render_latex(comparison_blocks(self, flips=0))

    def document(self) -> dict[str, Any]:
        """Build what `--json` prints, JSON-ready.

        Scores are fractions of 1 but for `points`, and differences are the run's score minus the baseline's. Runs are
        named by their `key`.
        """
        keys, paired = self.run_keys, self.statistics
        document = paired_document(paired, self.sets[0].golds, keys)
        for place, (name, pair) in enumerate(zip(self.names[1:], document["pairs"], strict=True)):
            pair |= {"name": name} | ({"own": document_of(self.own[place])} if self.own else {})
        clusters = str(Resampling.WITHIN_EXAMS) if Resampling.WITHIN_EXAMS in paired.resampled else paired.clusters
        return {
            "dataset": self.runs[0].record.cell.dataset.name,
            "baseline": keys[0],
            "questions": len(self.questions),
            paired.clusters.replace(" ", "_"): len(set(paired.sheet.clusters)),
            "dropped": dict(self.exclusions),
            "notes": list(self.notes),
            "interval": {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED, "clusters": clusters},
            "runs": [
                {**run.document(), "key": key, "name": name, "asked": len(run.record.questions), "owed": pending}
                for run, key, name, pending in zip(self.runs, keys, self.names, self.pending, strict=True)
            ],
            **document,
            **{section.name: section.document for section in self.sections},
        }


def describe_all(runs: Sized) -> str:
    """Return `both runs`, or `all 3 runs`."""
    return "both runs" if len(runs) == 2 else f"all {len(runs)} runs"


def describe_dropped(exclusions: Mapping[str, int]) -> str:
    """Describe how many questions are dropped for which reasons."""
    reasons = ", ".join(f"{count} {DROPPED[reason]}" for reason, count in exclusions.items() if count)
    return f"Dropped: {reasons}" if reasons else "None dropped"


def name_documents(runs: Sequence[StoredRun]) -> tuple[str, ...]:
    """Return what `--json` calls each run: its id, or its folder if two of `runs` have the same id."""
    ids = tuple(run.record.run_id for run in runs)
    return ids if len(set(ids)) == len(ids) else tuple(str(run.folder.path.resolve()) for run in runs)
