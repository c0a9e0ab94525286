"""Runs on altered questions beside the same asking of the questions as they are: `dataset.alter` of a spec.

A run's change is set against that of the first run with the same alteration, which is the control.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.frozen_model import FrozenModel
from medexam.measures import Difference, describe_resampling, signed
from medexam.specs import differing_keys
from medexam.tables import NONE, Table, percent
from medexam_companions.analysis.contrasts import Floats, mean_value, right_by_place
from medexam_companions.analysis.sides import CAVEAT, judge

_BY_ALTERATION = ("dataset.alter", "dataset.fingerprint")
"""What the identities of a run and of the same asking without alteration differ in."""
_CAUSES = {
    "question_withheld": "cues in the options, or questions that the model has seen",
    "options_withheld": "remembered places of the right options",
    "none_of_the_above": "right options that the model recognises",
    "options_replaced": "questions that the model remembers with their options",
    "paraphrased": "questions whose words the model remembers",
}
"""Alteration -> what a run is consistent with that has more right answers than a preference for places gives, of the
first two, or that loses more than the control, or gains less."""
_WITHHELD = ("question_withheld", "options_withheld")


class AlteredRun(FrozenModel):
    """One run on altered questions; runs are known by their place among the compared ones, the baseline is 0."""

    alter: str
    accuracy: float
    by_place: float
    """What a preference for some places gives alone: the expected accuracy if the right places were exchanged."""
    above_place: Difference
    """`accuracy` minus `by_place`."""
    unaltered: int | None = None
    """The same asking of the questions as they are; None if it is not among the runs."""
    change: Difference | None = None
    """The accuracy minus that of `unaltered`."""
    control: int | None = None
    """The first run with the same alteration and an `unaltered` one; None for that run itself."""
    against_control: Difference | None = None
    """The change minus the control's."""


@dataclass(frozen=True)
class AlteredRuns:
    """All runs on altered questions, by place; at least one."""

    name = "altered"
    runs: Mapping[int, AlteredRun]
    clusters: str

    def tables(self, names: Sequence[str]) -> list[Table]:
        """Build one table with a row for each run on altered questions."""
        contrasts = {place: (run.above_place, run.change, run.against_control) for place, run in self.runs.items()}
        rows = tuple(
            (
                names[place],
                NONE if run.change is None else percent(run.accuracy - run.change.value),
                percent(run.accuracy),
                percent(run.by_place),
                *(NONE if contrast is None else signed(contrast) for contrast in contrasts[place]),
            )
            for place, run in self.runs.items()
        )
        kinds = {contrast.resampled for each in contrasts.values() for contrast in each if contrast}
        method = describe_resampling(kinds, "paired bootstrap", self.clusters)
        caption = (
            "Accuracy, percent, on the compared questions. By place: the accuracy that the run's preference for some "
            "places alone would give. Above it, Change and Against control in percentage "
            f"points with 95 % intervals ({method}). Change: altered minus unaltered. Against control: minus the "
            f"change of the first run with the same alteration. {CAVEAT}"
        )
        headers = ("Run", "Unaltered", "Altered", "By place", "Above it", "Change", "Against control")
        return [Table("Contamination: altered questions", headers, rows, caption=caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run, but of continued questions, whose meaning tells the second half."""
        return [
            _sentence(run, names[place], names[run.control or 0])
            for place, run in self.runs.items()
            if run.alter != "question_continued"
        ]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says of each run; fractions of 1."""
        names: dict[int | None, str] = dict(enumerate(keys))
        return {
            keys[place]: run.model_dump(mode="json")
            | {"unaltered": names.get(run.unaltered), "control": names.get(run.control)}
            for place, run in self.runs.items()
        }


def find_altered(compared: ComparisonScope) -> ComparisonSection | None:
    """Find the runs on altered questions; None if no run is on them."""
    records = [folder.read_record() for folder in compared.folders]
    controls: dict[str, tuple[int, Floats]] = {}
    runs = {}
    for place, record in enumerate(records):
        if (alter := record.cell.dataset.alter) is None:
            continue
        right, items = compared.scored.first[place], {item.key: item for item in compared.sets[place].questions}
        by_place = right_by_place(
            [items[item.key] for item in compared.items],
            compared.sets[place].golds,
            {item.key: compared.predictions[place][item.key].answer for item in compared.items},
        )
        more: dict[str, Any] = {}
        if (plain := _find_plain(record, records)) is not None:
            changes = right - compared.scored.first[plain]
            more = {"unaltered": plain, "change": mean_value(changes, compared.scored.clusters)}
            control, control_changes = controls.setdefault(alter.label, (place, changes))
            if control != place:
                against = mean_value(changes - control_changes, compared.scored.clusters)
                more |= {"control": control, "against_control": against}
        runs[place] = AlteredRun(
            alter=alter.how,
            accuracy=float(right.mean()),
            by_place=float(by_place.mean()),
            above_place=mean_value(right - by_place, compared.scored.clusters),
            **more,
        )
    if not runs:
        return None
    part, names = AlteredRuns(runs, compared.statistics.clusters), compared.names
    document = part.document(compared.run_keys)
    return ComparisonSection(part.name, part.sentences(names), document, part.tables(names))


def _find_plain(record: Any, records: Sequence[Any]) -> int | None:
    """Find the first run that asks as `record` does, but the questions as they are; None if there is none."""
    plain = (place for place, other in enumerate(records) if other.cell.dataset.alter is None)
    differing = ((place, differing_keys(record.identity, records[place].identity)) for place in plain)
    return next((place for place, keys in differing if all(key.startswith(_BY_ALTERATION) for key in keys)), None)


def _sentence(run: AlteredRun, name: str, control: str) -> str:
    cause = _CAUSES.get(run.alter, "questions that the model remembers")
    if run.alter in _WITHHELD:
        points = f"{name} has {signed(run.above_place)} percentage points over what its preference for places gives"
        return judge(points, run.above_place, cause)
    if run.against_control is None:
        return (
            f"{name} has no control: give two runs of another model, with the same alteration and without, before it."
        )
    points = f"{name} changes by {signed(run.against_control)} percentage points beyond {control}"
    return judge(points, run.against_control, cause, sign=-1)
