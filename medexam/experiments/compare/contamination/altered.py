"""Runs on altered questions beside the same asking of the questions as they are: `dataset.alter` of a spec.

A run's change is set against that of the first run with the same alteration, which is the control.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from medexam.benchmarks.paired import signed
from medexam.benchmarks.resampling import describe_resampling
from medexam.experiments.compare.section import Compared
from medexam.experiments.store.run_folder import RunRecord
from medexam.formatting import NONE, percent
from medexam.metrics.contamination.contrasts import mean_value, right_by_place
from medexam.metrics.paired.results import Difference
from medexam.specs.dataset import Alteration
from medexam.specs.identity import differences
from medexam.tables import Captioned, Table

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
    how: Alteration
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
        """A row a run on altered questions."""
        rows = tuple(
            (
                names[each.run],
                NONE if each.plain is None else percent(self.accuracies[each.plain]),
                percent(each.accuracy),
                percent(each.by_place),
                signed(each.above, 100),
                NONE if each.change is None else signed(each.change, 100),
                NONE if each.against is None else signed(each.against, 100),
            )
            for each in self.runs
        )
        found = [each for run in self.runs for each in (run.above, run.change, run.against) if each is not None]
        how = describe_resampling({each.resampled for each in found}, "paired bootstrap", self.clusters)
        caption = (
            "Accuracy, percent, on the compared questions. By place: what the run's preference for some places gives "
            "alone, if the right options changed places. Above it, Change and Against control in percentage points "
            f"with 95 % intervals ({how}). Change: altered minus unaltered. Against control: minus the change of the "
            "first run with the same alteration."
        )
        headers = ("Run", "Unaltered", "Altered", "By place", "Above it", "Change", "Against control")
        return [(Table("Contamination: altered questions", headers, rows), caption)]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """What may be said of each."""
        return [_sentence(each, names) for each in self.runs]

    def document(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """What `--json` says of each; fractions of 1."""
        found: list[tuple[AlteredRun, dict[str, Difference | None]]] = [
            (each, {"above_place": each.above, "change": each.change, "against_control": each.against})
            for each in self.runs
        ]
        return [
            {
                "run": keys[each.run],
                "alter": each.how,
                "accuracy": each.accuracy,
                "by_place": each.by_place,
                "unaltered": None if each.plain is None else keys[each.plain],
                "control": None if each.control is None else keys[each.control],
                **{name: of and of.model_dump(mode="json") for name, of in measured.items()},
            }
            for each, measured in found
        ]


def find_altered(compared: Compared) -> AlteredRuns | None:
    """The runs on altered questions; None if no run is."""
    records = [folder.read_record() for folder in compared.folders]
    controls: dict[str, tuple[int, Any]] = {}
    found = []
    for place, record in enumerate(records):
        how = record.cell.dataset.alter
        if how is None:
            continue
        plain = _find_plain(record, records)
        change = None if plain is None else compared.matrix[place] - compared.matrix[plain]
        control, theirs = controls.get(record.cell.dataset.altered, (None, None))
        if change is not None and control is None:
            controls[record.cell.dataset.altered] = place, change
        found.append(
            _describe(
                compared,
                place,
                how,
                plain=plain,
                control=control if change is not None else None,
                change=change,
                theirs=theirs,
            )
        )
    if not found:
        return None
    return AlteredRuns(tuple(found), tuple(map(float, compared.matrix.mean(axis=1))), compared.found.clusters)


def _describe(
    compared: Compared,
    place: int,
    how: Alteration,
    *,
    plain: int | None,
    control: int | None,
    change: Any,
    theirs: Any,
) -> AlteredRun:
    answers = {item.key: compared.predictions[place][item.key].answer for item in compared.items}
    shown = {item.key: item for item in compared.sets[place].questions}
    asked = [shown[item.key] for item in compared.items]
    by_place = right_by_place(asked, compared.sets[place].golds, answers)
    mean: Callable[[Any], Difference] = lambda values: mean_value(values, compared.clusters)  # noqa: E731
    right = compared.matrix[place]
    return AlteredRun(
        run=place,
        how=how,
        accuracy=float(right.mean()),
        by_place=float(by_place.mean()),
        above=mean(right - by_place),
        plain=plain,
        change=None if change is None else mean(change),
        control=control,
        against=None if control is None else mean(change - theirs),
    )


def _find_plain(record: RunRecord, records: Sequence[RunRecord]) -> int | None:
    """The first run that asks as `record` does, but the questions as they are."""
    for place, other in enumerate(records):
        differing = differences(record.identity, other.identity)
        if other.cell.dataset.alter is None and all(key.startswith(_BY_ALTERATION) for key in differing):
            return place
    return None


def _sentence(found: AlteredRun, names: Sequence[str]) -> str:
    name = names[found.run]
    if found.how == "question_continued":
        return (
            f"{name} picks the own second half of {percent(found.accuracy)} % of the questions, much of it by the "
            "sense: what --cutoff says of the same runs tells more."
        )
    if found.how in _ABOVE:
        said = f"{name} has {signed(found.above, 100)} percentage points over what its preference for places gives"
        if found.above.excludes_zero and found.above.value > 0:
            return f"{said}. This is consistent with {_ABOVE[found.how]}."
        return f"{said}, which is no sign of remembered questions."
    if found.against is None or found.control is None:
        return (
            f"{name} has no control: give two runs of another model, with the same alteration and without, before it."
        )
    said = f"{name} changes by {signed(found.against, 100)} percentage points beyond {names[found.control]}"
    if found.against.excludes_zero and found.against.value < 0:
        return f"{said}. This is consistent with {_LOST[found.how]}."
    return f"{said}, which is no sign of remembered questions."
