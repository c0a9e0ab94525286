"""What is kept of an import, and what a reader of its scores is told: no sample is left out silently."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from medexam import Prediction
from medexam.predictions import Reason
from medexam.text import count_of
from medexam_companions.harnesses.imports.matching import MatchReport
from medexam_companions.harnesses.imports.samples import Results

_LEFT_OUT = {
    "unmatched": "match no question",
    "ambiguous": "may be of several questions",
    "repeated": "are further ones of the same question",
    "failed": "could not be asked or scored there",
}
"""Count of samples that are left out -> what is said of them."""


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """What the matched samples of a file were read as."""

    predictions: Sequence[Prediction]
    """In the order of the questions."""
    unreadable: int
    """Answers that are no option, and that nobody calls right."""
    other_gold: int
    """Questions of which the file expects another answer than our data."""


def describe_import(path: Path, results: Results, matched: MatchReport, read: ReadAnswers) -> dict[str, Any]:
    """Describe the import as it is stored, JSON-ready: the file, and how its samples were matched and read."""
    account = asdict(replace(results, samples=()))
    del account["samples"], account["companions"]
    return {
        "file": str(path),
        "beside": [companion.name for companion in results.companions],
        **account,
        "notes": list(results.notes),
        **matched.counts(),
        "unreadable": read.unreadable,
        "other_gold": read.other_gold,
    }


def warn_of(results: Results, account: dict[str, Any], predictions: Sequence[Prediction]) -> tuple[str, ...]:
    """List what a reader of the run's scores should know."""
    warnings = list(results.notes)
    losses = [f"{account[name]:,} {word}" for name, word in _LEFT_OUT.items() if account[name]]
    if losses:
        warnings.append(f"of {account['samples']:,} samples in the file {', '.join(losses)}; they are not counted")
    if account["other_gold"]:
        warnings.append(
            f"the file and the data set have different right answers to {count_of(account['other_gold'], 'question')}"
        )
    if account["unreadable"]:
        warnings.append(f"unreadable answers in the file count as unanswered: {account['unreadable']:,}")
    if untold_count := sum(prediction.reason is Reason.NOT_TOLD for prediction in predictions):
        warnings.append(
            f"the file marks {count_of(untold_count, 'answer')} only as wrong: counted as unanswered, so "
            "accuracy is the harness's own, but exam score and points are too high"
        )
    return tuple(warnings)
