"""Runs on altered questions beside the same asking of the questions as they are: `dataset.alter` of a spec.

A run's change is set against that of the first run with the same alteration, which is the control.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from medexam.benchmarks import describe_resampling, signed
from medexam.experiments import ComparisonScope, ComparisonSection, RunRecord
from medexam.metrics import Difference
from medexam.specs import differing_keys
from medexam.tables import NONE, Captioned, Table, percent
from medexam_companions.analysis.contrasts import Floats, mean_value, right_by_place
from medexam_companions.analysis.sides import CAVEAT

_BY_ALTERATION = ("dataset.alter", "dataset.fingerprint")
"""What the identities of a run and of the same asking without alteration differ in."""
_ABOVE = {
    "question_withheld": "cues in the options, or questions that the model has seen",
    "options_withheld": "remembered places of the right options",
}
"""Alteration -> what right answers beyond a preference for places are consistent with."""
_LOST = {
    "none_of_the_above": "right options that the model recognises",
    "options_replaced": "questions that the model remembers with their options",
    "paraphrased": "questions whose words the model remembers",
}
"""Alteration -> what a run that loses more, or gains less, than the control is consistent with."""
_NO_SIGN = "which is no sign of remembered questions."


@dataclass(frozen=True)
class AlteredRun:
    """One run on altered questions; runs are known by their place among the compared ones, the baseline is 0."""

    run: int
    how: str
    """The alteration."""
    accuracy: float
    by_place: float
    """What a preference for some places gives alone: the expected accuracy if the right places were exchanged."""
    above: Difference
    """`accuracy` minus `by_place`."""
    plain: int | None
    """The same asking of the questions as they are; None if it is not among the runs."""
    unaltered: float | None
    """Its accuracy."""
    change: Difference | None
    """The accuracy minus that of `plain`."""
    control: int | None
    """The first run with the same alteration and a `plain` one; None for that run itself."""
    against: Difference | None
    """The change minus the control's."""


@dataclass(frozen=True)
class AlteredRuns(ComparisonSection):
    """All runs on altered questions, at least one."""

    name = "altered"
    runs: tuple[AlteredRun, ...]
    clusters: str

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build one table with a row for each run on altered questions."""
        rows = tuple(
            (
                names[each.run],
                percent(each.unaltered),
                percent(each.accuracy),
                percent(each.by_place),
                *(
                    NONE if contrast is None else signed(contrast)
                    for contrast in (each.above, each.change, each.against)
                ),
            )
            for each in self.runs
        )
        contrasts = [contrast for each in self.runs for contrast in (each.above, each.change, each.against) if contrast]
        method = describe_resampling({contrast.resampled for contrast in contrasts}, "paired bootstrap", self.clusters)
        caption = (
            "Accuracy, percent, on the compared questions. By place: the accuracy that the run's preference for some "
            "places alone would give. Above it, Change and Against control in percentage "
            f"points with 95 % intervals ({method}). Change: altered minus unaltered. Against control: minus the "
            f"change of the first run with the same alteration. {CAVEAT}"
        )
        headers = ("Run", "Unaltered", "Altered", "By place", "Above it", "Change", "Against control")
        return [(Table("Contamination: altered questions", headers, rows), caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run."""
        return [_sentence(each, names) for each in self.runs]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says of each run; fractions of 1."""
        return {
            keys[each.run]: {
                "alter": each.how,
                "accuracy": each.accuracy,
                "by_place": each.by_place,
                "unaltered": None if each.plain is None else keys[each.plain],
                "control": None if each.control is None else keys[each.control],
                "above_place": each.above.model_dump(mode="json"),
                "change": each.change and each.change.model_dump(mode="json"),
                "against_control": each.against and each.against.model_dump(mode="json"),
            }
            for each in self.runs
        }


def find_altered(compared: ComparisonScope) -> AlteredRuns | None:
    """Find the runs on altered questions; None if no run is on them."""
    records = [folder.read_record() for folder in compared.folders]
    controls: dict[str, tuple[int, Floats]] = {}
    runs = []
    for place, record in enumerate(records):
        if (alter := record.cell.dataset.alter) is None:
            continue
        right, items = compared.matrix[place], {item.key: item for item in compared.sets[place].questions}
        by_place = right_by_place(
            [items[item.key] for item in compared.items],
            compared.sets[place].golds,
            {item.key: compared.predictions[place][item.key].answer for item in compared.items},
        )
        plain = _find_plain(record, records)
        control, change, against = None, None, None
        if plain is not None:
            changes = right - compared.matrix[plain]
            change = mean_value(changes, compared.clusters)
            first, control_changes = controls.setdefault(alter.label, (place, changes))
            if first != place:
                control, against = first, mean_value(changes - control_changes, compared.clusters)
        runs.append(
            AlteredRun(
                run=place,
                how=alter.how,
                accuracy=float(right.mean()),
                by_place=float(by_place.mean()),
                above=mean_value(right - by_place, compared.clusters),
                plain=plain,
                unaltered=None if plain is None else float(compared.matrix[plain].mean()),
                change=change,
                control=control,
                against=against,
            )
        )
    return AlteredRuns(tuple(runs), compared.statistics.clusters) if runs else None


def _find_plain(record: RunRecord, records: Sequence[RunRecord]) -> int | None:
    """Find the first run that asks as `record` does, but the questions as they are; None if there is none."""
    for place, other in enumerate(records):
        differing = differing_keys(record.identity, other.identity)
        if other.cell.dataset.alter is None and all(key.startswith(_BY_ALTERATION) for key in differing):
            return place
    return None


def _sentence(altered: AlteredRun, names: Sequence[str]) -> str:
    name = names[altered.run]
    if altered.how == "question_continued":
        return (
            f"{name} picks the true second half of {percent(altered.accuracy)} % of the questions, often "
            "by its meaning: --cutoff on the same runs shows more."
        )
    if altered.how in _ABOVE:
        sentence = f"{name} has {signed(altered.above)} percentage points over what its preference for places gives"
        shows = altered.above.excludes_zero and altered.above.value > 0
        return f"{sentence}. This is consistent with {_ABOVE[altered.how]}." if shows else f"{sentence}, {_NO_SIGN}"
    if altered.against is None or altered.control is None:
        return (
            f"{name} has no control: give two runs of another model, with the same alteration and without, before it."
        )
    sentence = f"{name} changes by {signed(altered.against)} percentage points beyond {names[altered.control]}"
    if altered.against.excludes_zero and altered.against.value < 0:
        return f"{sentence}. This is consistent with {_LOST.get(altered.how, 'questions that the model remembers')}."
    return f"{sentence}, {_NO_SIGN}"
