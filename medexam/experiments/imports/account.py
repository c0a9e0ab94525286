"""What is kept of an import, and what a reader of its scores is told: no sample is left out silently."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from medexam.experiments.imports.answers import ChoiceReader, Pair, is_other_gold
from medexam.experiments.imports.matching import Matched
from medexam.experiments.imports.samples import Results
from medexam.predictions import Prediction, Reason

_LEFT_OUT = {
    "unmatched": "match no question",
    "ambiguous": "may be of several questions",
    "repeated": "are further ones of the same question",
    "failed": "could not be asked or scored there",
}
"""Count of samples that are left out -> what is said of them."""


def describe(
    path: Path, results: Results, matched: Matched, pairs: Sequence[Pair], reader: ChoiceReader
) -> dict[str, Any]:
    """What is kept of the file, JSON-ready."""
    told = asdict(replace(results, samples=()))
    del told["samples"], told["beside"]
    return {
        "file": str(path),
        "beside": [one.name for one in results.beside],
        **told,
        "notes": list(results.notes),
        **matched.counts(),
        "unreadable": len(reader.unreadable),
        "other_gold": sum(is_other_gold(reader.target(question), gold) for _, question, gold in pairs),
    }


def warn_of(results: Results, said: dict[str, Any], predictions: Sequence[Prediction]) -> tuple[str, ...]:
    """What a reader of the run's scores should know."""
    found = list(results.notes)
    lost = [f"{said[name]:,} {word}" for name, word in _LEFT_OUT.items() if said[name]]
    if lost:
        found.append(f"of {said['samples']:,} samples in the file {', '.join(lost)}; they are not counted")
    if said["other_gold"]:
        found.append(f"the file names another right answer than the data set to {said['other_gold']:,} questions")
    if said["unreadable"]:
        found.append(f"{said['unreadable']:,} answers in the file cannot be read: they count as unanswered")
    if untold := sum(one.reason is Reason.NOT_TOLD for one in predictions):
        found.append(
            f"the file says of {untold:,} answers only that they are wrong: they count as unanswered, so accuracy is "
            "the harness's own, and exam score and points are higher than what was answered"
        )
    return tuple(found)
