"""Runs on altered questions beside the same asking of the questions as they are: `dataset.alter` of a spec.

A run's change is set against that of the first run with the same alteration, which is the control.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from medexam.benchmarks import describe_resampling, signed
from medexam.experiments import ComparisonScope, RunRecord
from medexam.metrics import Difference
from medexam.specs import Alteration, differing_keys
from medexam.tables import NONE, Captioned, Table, percent
from medexam_companions.contamination.contrasts import mean_value, right_by_place

_BY_ALTERATION = ("dataset.alter", "dataset.fingerprint")
"""What the identities of a run and of the same asking without alteration differ in."""
_ABOVE: Mapping[str, str] = MappingProxyType(
    {
        "question_withheld": "cues in the options, or questions that the model has seen",
        "options_withheld": "remembered places of the right options",
    }
)
"""Alteration -> what right answers beyond a preference for places are consistent with."""
_LOST: Mapping[str, str] = MappingProxyType(
    {
        "none_of_the_above": "right options that the model recognises",
        "options_replaced": "questions that the model remembers with their options",
        "paraphrased": "questions whose words the model remembers",
    }
)
"""Alteration -> what a run that loses more, or gains less, than the control is consistent with."""


@dataclass(frozen=True)
class AlteredRun:
    """One run on altered questions; runs are known by their place among the compared ones, the baseline is 0."""

    run: int
    alteration: Alteration
    accuracy: float
    by_place: float
    """What a preference for some places gives alone: the expected accuracy if the right places were exchanged."""
    above: Difference
    """`accuracy` minus `by_place`."""
    plain: int | None
    """The same asking of the questions as they are; None if it is not among the runs."""
    change: Difference | None
    """The accuracy minus that of `plain`."""
    control: int | None
    """The first run with the same alteration and a `plain` one; None for that run itself."""
    against: Difference | None
    """The change minus the control's."""


@dataclass(frozen=True)
class AlteredRuns:
    """All runs on altered questions, at least one."""

    runs: tuple[AlteredRun, ...]
    accuracies: tuple[float, ...]
    """Of each compared run."""
    clusters: str

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build one table with a row for each run on altered questions."""
        rows = tuple(
            (
                names[altered_run.run],
                NONE if altered_run.plain is None else percent(self.accuracies[altered_run.plain]),
                percent(altered_run.accuracy),
                percent(altered_run.by_place),
                signed(altered_run.above),
                NONE if altered_run.change is None else signed(altered_run.change),
                NONE if altered_run.against is None else signed(altered_run.against),
            )
            for altered_run in self.runs
        )
        contrasts = [
            contrast for run in self.runs for contrast in (run.above, run.change, run.against) if contrast is not None
        ]
        method = describe_resampling({contrast.resampled for contrast in contrasts}, "paired bootstrap", self.clusters)
        caption = (
            "Accuracy, percent, on the compared questions. By place: the accuracy that the run's preference for some "
            "places alone would give. Above it, Change and Against control in percentage "
            f"points with 95 % intervals ({method}). Change: altered minus unaltered. Against control: minus the "
            "change of the first run with the same alteration."
        )
        headers = ("Run", "Unaltered", "Altered", "By place", "Above it", "Change", "Against control")
        return [(Table("Contamination: altered questions", headers, rows), caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run."""
        return [_sentence(altered_run, names) for altered_run in self.runs]

    def document(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """Build what `--json` says of each run; fractions of 1."""
        entries: list[tuple[AlteredRun, dict[str, Difference | None]]] = [
            (
                altered_run,
                {
                    "above_place": altered_run.above,
                    "change": altered_run.change,
                    "against_control": altered_run.against,
                },
            )
            for altered_run in self.runs
        ]
        return [
            {
                "run": keys[altered_run.run],
                "alter": altered_run.alteration,
                "accuracy": altered_run.accuracy,
                "by_place": altered_run.by_place,
                "unaltered": None if altered_run.plain is None else keys[altered_run.plain],
                "control": None if altered_run.control is None else keys[altered_run.control],
                **{name: difference and difference.model_dump(mode="json") for name, difference in contrasts.items()},
            }
            for altered_run, contrasts in entries
        ]


def find_altered(compared: ComparisonScope) -> AlteredRuns | None:
    """Find the runs on altered questions; None if no run is on them."""
    records = [folder.read_record() for folder in compared.folders]
    controls: dict[str, tuple[int, Any]] = {}
    altered_runs = []
    for place, record in enumerate(records):
        alteration = record.cell.dataset.alter
        if alteration is None:
            continue
        plain = _find_plain(record, records)
        change = None if plain is None else compared.matrix[place] - compared.matrix[plain]
        control, control_change = controls.get(record.cell.dataset.altered, (None, None))
        if change is not None and control is None:
            controls[record.cell.dataset.altered] = place, change
        altered_runs.append(
            _describe(
                compared,
                place,
                alteration,
                plain=plain,
                control=control if change is not None else None,
                change=change,
                control_change=control_change,
            )
        )
    if not altered_runs:
        return None
    return AlteredRuns(
        tuple(altered_runs), tuple(map(float, compared.matrix.mean(axis=1))), compared.statistics.clusters
    )


def _describe(
    compared: ComparisonScope,
    place: int,
    alteration: Alteration,
    *,
    plain: int | None,
    control: int | None,
    change: Any,
    control_change: Any,
) -> AlteredRun:
    answers = {item.key: compared.predictions[place][item.key].answer for item in compared.items}
    items_by_key = {item.key: item for item in compared.sets[place].questions}
    questions = [items_by_key[item.key] for item in compared.items]
    by_place = right_by_place(questions, compared.sets[place].golds, answers)
    mean: Callable[[Any], Difference] = lambda values: mean_value(values, compared.clusters)  # noqa: E731
    right = compared.matrix[place]
    return AlteredRun(
        run=place,
        alteration=alteration,
        accuracy=float(right.mean()),
        by_place=float(by_place.mean()),
        above=mean(right - by_place),
        plain=plain,
        change=None if change is None else mean(change),
        control=control,
        against=None if control is None else mean(change - control_change),
    )


def _find_plain(record: RunRecord, records: Sequence[RunRecord]) -> int | None:
    """Find the first run that asks as `record` does, but the questions as they are; None if there is none."""
    for place, other in enumerate(records):
        differing = differing_keys(record.identity, other.identity)
        if other.cell.dataset.alter is None and all(key.startswith(_BY_ALTERATION) for key in differing):
            return place
    return None


def _sentence(altered_run: AlteredRun, names: Sequence[str]) -> str:
    name = names[altered_run.run]
    if altered_run.alteration == "question_continued":
        return (
            f"{name} picks the true second half of {percent(altered_run.accuracy)} % of the questions, often "
            "by its meaning: --cutoff on the same runs shows more."
        )
    if altered_run.alteration in _ABOVE:
        sentence = f"{name} has {signed(altered_run.above)} percentage points over what its preference for places gives"
        if altered_run.above.excludes_zero and altered_run.above.value > 0:
            return f"{sentence}. This is consistent with {_ABOVE[altered_run.alteration]}."
        return f"{sentence}, which is no sign of remembered questions."
    if altered_run.against is None or altered_run.control is None:
        return (
            f"{name} has no control: give two runs of another model, with the same alteration and without, before it."
        )
    sentence = f"{name} changes by {signed(altered_run.against)} percentage points beyond {names[altered_run.control]}"
    if altered_run.against.excludes_zero and altered_run.against.value < 0:
        return f"{sentence}. This is consistent with {_LOST[altered_run.alteration]}."
    return f"{sentence}, which is no sign of remembered questions."
