"""Runs on the same exams beside a baseline: what is found, and its documents. `comparison_tables` shows it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from medexam.benchmarks.choice import comparison_tables as tables
from medexam.benchmarks.paired import Flipped, Group, Pair, PairedRuns, TableRun, difference_values
from medexam.items import AnswerKey
from medexam.metrics import Metrics
from medexam.metrics.paired.pairs import adjust_holm, compare_pair, complementarity, hold_to, judge
from medexam.metrics.paired.power import detectable_difference
from medexam.metrics.paired.results import Complementarity, Difference, Paired, Verdict
from medexam.metrics.paired.sheet import Sheet
from medexam.predictions import Answered
from medexam.questions import Question
from medexam.tables import Captioned

Outcomes = Mapping[str, Answered]


@dataclass(frozen=True)
class PairedExams(PairedRuns):
    """Two runs or more on the same questions of the same exams."""

    metrics: tuple[Metrics, ...]
    pairs: tuple[Pair, ...]
    """Every other run against the baseline, in their order."""
    together: Complementarity
    flipped: tuple[Flipped, ...]
    group: str = "discipline"
    """What the groups beside years are called."""
    clusters = "exams"

    @property
    def breakdown(self) -> str:
        """`discipline and year`."""
        return f"{self.group} and year"

    @property
    def verdicts(self) -> list[Verdict]:
        """What may be said of each pair's accuracy."""
        return [pair.verdict for pair in self.pairs]

    @property
    def known_by(self) -> list[Difference]:
        """Each pair's accuracy."""
        return [pair.paired.accuracy for pair in self.pairs]

    def held_to(self, floors: Sequence[float | None]) -> Self:
        """The same, where accuracies that differ by no more than the floor are not told apart."""
        held = (
            replace(pair, verdict=hold_to(pair.verdict, pair.paired.accuracy, floor))
            for pair, floor in zip(self.pairs, floors, strict=True)
        )
        return replace(self, pairs=tuple(held))

    @property
    def paired(self) -> tuple[Pair, ...]:
        """The same pairs."""
        return self.pairs

    @property
    def differences(self) -> Iterator[Difference]:
        """Accuracy and exam score of each pair; points are of exams, whatever the intervals of the others resample."""
        for pair in self.pairs:
            yield from (pair.paired.accuracy, pair.paired.exam_score)

    @property
    def size(self) -> dict[str, int]:
        """Exams that the compared questions come from."""
        return {"exams": len(self.metrics[0].by_exam)}

    @property
    def origin(self) -> str:
        """` of 30 exams`."""
        return f" of {self.size['exams']} exams"

    def sentences(self, names: Sequence[str]) -> list[str]:
        """One sentence a pair: what may be said of its accuracy."""
        return [tables.verdict(self.pairs, at, names, self.clusters) for at in range(len(self.pairs))]

    def overall_tables(self, runs: Sequence[TableRun[Any]]) -> list[Captioned]:
        """Scores, differences and agreement over all compared questions."""
        names = [run.name for run in runs]
        return [
            tables.scores(self.metrics, self.together, names),
            tables.differences(self.pairs, names, self.clusters),
            tables.agreement(self.pairs, names),
        ]

    def breakdown_tables(self, names: Sequence[str]) -> list[Captioned]:
        """The differences of every pair by group, then by year where the exams have one."""
        several = list(zip(names[1:], self.pairs, strict=True))
        return [
            *(
                tables.breakdown(name, names[0], what, groups, self.clusters)
                for what, found in ((self.group, "by_discipline"), ("year", "by_year"))
                for name, pair in several
                if (groups := getattr(pair, found))
            ),
        ]

    def flipped_tables(self, names: Sequence[str], shown: int) -> list[Captioned]:
        """The first `shown` flipped questions with every run's answer; empty if none flipped."""
        return tables.flipped(self.flipped, names, shown)

    def run_documents(self) -> list[dict[str, Any]]:
        """How many questions each run alone has right."""
        return [{"alone_right": alone} for alone in self.together.alone_right]

    def pair_documents(self) -> list[dict[str, Any]]:
        """The paired statistics over all questions, by discipline and by year."""
        return [
            {
                "verdict": pair.verdict,
                **_paired_document(pair.paired, pair.p_adjusted),
                **{
                    title: {name: _paired_document(group.paired, group.p_adjusted) for name, group in found.items()}
                    for title, found in (("by_discipline", pair.by_discipline), ("by_year", pair.by_year))
                },
            }
            for pair in self.pairs
        ]

    def more_documents(self, keys: Sequence[str]) -> dict[str, Any]:
        """What the runs have right together, and the flipped questions with each run's answer."""
        return {
            "together": self.together.model_dump(mode="json", exclude={"alone_right"}),
            "flipped": [
                {"question": each.question, "gold": each.gold, "answers": dict(zip(keys, each.answers, strict=True))}
                for each in self.flipped
            ],
        }

    def values(self) -> tuple[dict[str, float | None], list[dict[str, float | None]]]:
        """Flips and the oracle; of each pair p-values, kappa and differences."""
        overall: dict[str, float | None] = {"flipped": len(self.flipped), "any_right": self.together.any_right}
        return overall, [_values(pair) for pair in self.pairs]


@dataclass(frozen=True)
class PairedQuestions(PairedExams):
    """The same on questions that no exam holds together: intervals resample questions."""

    clusters = "questions"

    @property
    def size(self) -> dict[str, int]:
        """How many questions were compared."""
        return {"questions": self.together.n}

    @property
    def origin(self) -> str:
        """Nothing: there are no exams."""
        return ""


def compare_exams(
    questions: Sequence[Question],
    key: AnswerKey,
    runs: Sequence[Outcomes],
    metrics: Sequence[Metrics],
    *,
    group: str,
) -> PairedExams:
    """The first of `runs` beside each other one on exactly `questions`, which every run has scored.

    `group` is what a discipline is called.
    """
    sheet = Sheet.of(questions, key, runs)
    paired = [compare_pair(sheet, other) for other in range(1, len(runs))]
    adjusted = adjust_holm([each.flips.p for each in paired])
    disciplines = _groups(sheet, [question.exam.discipline for question in questions])
    years = _groups(sheet, [question.exam.year for question in questions])
    pairs = tuple(
        Pair(each, p, judge(each.accuracy, p), by_discipline, by_year)
        for each, p, by_discipline, by_year in zip(paired, adjusted, disciplines, years, strict=True)
    )
    kind = PairedQuestions if sheet.independent.any() else PairedExams
    return kind(tuple(metrics), pairs, complementarity(sheet), _flipped(sheet, key, runs), group)


def _groups(sheet: Sheet, group_of: Sequence[str | int | None]) -> list[dict[str, Group]]:
    """One breakdown a pair, its groups in the order of their names; one family of tests over all of them.

    Item i of `group_of` is the group of question i; None: it is in none.
    """
    members: dict[str, list[int]] = {}
    for place, group in enumerate(group_of):
        if group is not None:
            members.setdefault(str(group), []).append(place)
    parts = {name: sheet.only(members[name]) for name in sorted(members)}
    found = [
        {name: compare_pair(part, other) for name, part in parts.items()} for other in range(1, len(sheet.outcomes))
    ]
    adjusted = iter(adjust_holm([paired.flips.p for groups in found for paired in groups.values()]))
    return [{name: Group(paired, next(adjusted)) for name, paired in groups.items()} for groups in found]


def _flipped(sheet: Sheet, key: AnswerKey, runs: Sequence[Outcomes]) -> tuple[Flipped, ...]:
    """The questions that some runs have right and others have not."""
    right = sheet.right
    found = []
    together = right.sum(axis=0)
    for question in sheet.pick((together > 0) & (together < len(right))):
        gold, answers = key[question], tuple(run[question].answer for run in runs)
        found.append(Flipped(question, gold.number, answers, gold.others))
    return tuple(found)


def _values(pair: Pair) -> dict[str, float | None]:
    paired = pair.paired
    values: dict[str, float | None] = {"p": paired.flips.p, "p_holm": pair.p_adjusted, "kappa": paired.kappa}
    for name in ("accuracy", "exam_score", "points"):
        values |= difference_values(name, getattr(paired, name))
    return values


def _paired_document(paired: Paired, p_adjusted: float) -> dict[str, Any]:
    """The flipped questions as counts: their keys stand in the document's own list."""
    flips = paired.flips
    return {
        **paired.model_dump(mode="json", exclude={"flips"}),
        "right_to_wrong": len(flips.right_to_wrong),
        "wrong_to_right": len(flips.wrong_to_right),
        "both_right": flips.both_right,
        "both_wrong": flips.both_wrong,
        "p": flips.p,
        "p_holm": p_adjusted,
        "detectable_difference": detectable_difference(paired.n, paired.flipped),
    }
