"""Runs on altered questions beside the same asking of the questions as they are: `dataset.alter` of a spec.

A run's change is set against that of the first run with the same alteration, which is the control.
"""

from collections.abc import Sequence
from typing import Any

from medexam.experiments import ComparisonScope, ComparisonSection
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


def find_altered(compared: ComparisonScope) -> ComparisonSection | None:
    """Find the runs on altered questions; None if no run is on them.

    By run, `--json` has its accuracy; `by_place`, what a preference for some places gives alone; `above_place`, the
    difference of both; `unaltered`, the same asking of the questions as they are, and the `change` from it; `control`,
    the first run with the same alteration and an `unaltered` one, and `against_control`, the change minus the
    control's. None where there is no such run.
    """
    controls: dict[str, tuple[int, Floats]] = {}
    names, keys, scored = compared.names, compared.run_keys, compared.scored
    document: dict[str, Any] = {}
    rows, sentences, kinds = [], [], set()
    for place, record in enumerate(compared.records):
        if (alter := record.cell.dataset.alter) is None:
            continue
        right, items = scored.first[place], {item.key: item for item in compared.sets[place].questions}
        by_place = right_by_place(
            [items[item.key] for item in compared.items],
            compared.sets[place].golds,
            {item.key: compared.predictions[place][item.key].answer for item in compared.items},
        )
        above_place, change, against = mean_value(right - by_place, scored.clusters), None, None
        plain, control = _find_plain(record, compared.records), None
        if plain is not None:
            changes = right - scored.first[plain]
            change = mean_value(changes, scored.clusters)
            first, first_changes = controls.setdefault(alter.label, (place, changes))
            if first != place:
                control, against = first, mean_value(changes - first_changes, scored.clusters)
        contrasts = {"above_place": above_place, "change": change, "against_control": against}
        kinds |= {contrast.resampled for contrast in contrasts.values() if contrast}
        document[keys[place]] = {
            "alter": alter.how,
            "accuracy": float(right.mean()),
            "by_place": float(by_place.mean()),
            "unaltered": None if plain is None else keys[plain],
            "control": None if control is None else keys[control],
            **{name: contrast and contrast.model_dump(mode="json") for name, contrast in contrasts.items()},
        }
        rows.append(
            (
                names[place],
                NONE if plain is None else percent(scored.first[plain].mean()),
                *(percent(values.mean()) for values in (right, by_place)),
                *(NONE if contrast is None else signed(contrast) for contrast in contrasts.values()),
            )
        )
        if alter.how != "question_continued":  # whose meaning tells the second half
            sentences.append(_sentence(alter.how, above_place, against, names[place], names[control or 0]))
    if not document:
        return None
    clusters = compared.statistics.clusters
    caption = (
        "Accuracy, percent, on the compared questions. By place: the accuracy that the run's preference for some "
        "places alone would give. Above it, Change and Against control in percentage "
        f"points with 95 % intervals ({describe_resampling(kinds, 'paired bootstrap', clusters)}). Change: altered "
        "minus unaltered. Against control: minus the change of the first run with the same alteration. "
        f"{CAVEAT}"
    )
    headers = ("Run", "Unaltered", "Altered", "By place", "Above it", "Change", "Against control")
    table = Table("Contamination: altered questions", headers, tuple(rows), caption=caption)
    return ComparisonSection("altered", sentences, document, [table])


def _find_plain(record: Any, records: Sequence[Any]) -> int | None:
    """Find the first run that asks as `record` does, but the questions as they are; None if there is none."""
    plain = (place for place, other in enumerate(records) if other.cell.dataset.alter is None)
    differing = ((place, differing_keys(record.identity, records[place].identity)) for place in plain)
    return next((place for place, keys in differing if all(key.startswith(_BY_ALTERATION) for key in keys)), None)


def _sentence(alter: str, above_place: Difference, against: Difference | None, name: str, control: str) -> str:
    cause = _CAUSES.get(alter, "questions that the model remembers")
    if alter in _WITHHELD:
        points = f"{name} has {signed(above_place)} percentage points over what its preference for places gives"
        return judge(points, above_place, cause)
    if against is None:
        return (
            f"{name} has no control: give two runs of another model, with the same alteration and without, before it."
        )
    return judge(f"{name} changes by {signed(against)} percentage points beyond {control}", against, cause, sign=-1)
