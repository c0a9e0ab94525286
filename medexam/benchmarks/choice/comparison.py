"""Runs on the same exams beside a baseline: what is found, and its documents. `comparison_tables` shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medexam.benchmarks.choice import comparison_tables as tables
from medexam.benchmarks.paired import Flipped, PairedGroup, PairedRun, PairedRuns, TableRun
from medexam.metrics import Metrics
from medexam.metrics.paired.pairs import adjust_holm, compare_pair, complementarity, judge
from medexam.metrics.paired.power import detectable_difference
from medexam.metrics.paired.results import Complementarity, Paired
from medexam.metrics.paired.sheet import Sheet
from medexam.predictions.prediction import Answered
from medexam.questions import AnswerKey, Question
from medexam.tables import Captioned

Outcomes = Mapping[str, Answered]


@dataclass(frozen=True)
class PairedExams(PairedRuns[PairedRun]):
    """Two runs or more on the same questions of the same exams."""

    together: Complementarity
    flipped: tuple[Flipped, ...]
    group: str = "discipline"
    """What the groups beside years are called."""

    @property
    def breakdown(self) -> str:
        """`discipline and year`."""
        return f"{self.group} and year"

    @property
    def paired(self) -> tuple[PairedRun, ...]:
        """The same pairs."""
        return self.pairs

    @property
    def origin(self) -> str:
        """` of 30 exams`; nothing if no exam holds the questions together."""
        return f" of {self.cluster_count} exams" if self.clusters == "exams" else ""

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write one sentence a pair: what may be said of its accuracy."""
        return [tables.verdict(self.pairs, place, names, self.clusters) for place in range(len(self.pairs))]

    def overall_tables(self, runs: Sequence[TableRun]) -> list[Captioned]:
        """Show scores, differences and agreement over all compared questions."""
        names = [run.name for run in runs]
        return [
            tables.scores(self.metrics, self.together, names),
            tables.difference_table(self.pairs, names, self.clusters),
            tables.agreement(self.pairs, names),
        ]

    def breakdown_tables(self, names: Sequence[str]) -> list[Captioned]:
        """Show the differences of every pair by group, then by year where the exams have one."""
        several = list(zip(names[1:], self.pairs, strict=True))
        return [
            *(
                tables.group_differences(name, names[0], facet, groups, self.clusters)
                for facet, field in ((self.group, "by_discipline"), ("year", "by_year"))
                for name, pair in several
                if (groups := getattr(pair, field))
            )
        ]

    def flipped_tables(self, names: Sequence[str], limit: int) -> list[Captioned]:
        """Show the first `limit` flipped questions with every run's answer; empty if none flipped."""
        return tables.flipped(self.flipped, names, limit)

    def run_documents(self) -> list[dict[str, Any]]:
        """Count how many questions each run alone has right."""
        return [{"alone_right": alone} for alone in self.together.alone_right]

    def pair_documents(self) -> list[dict[str, Any]]:
        """Return the paired statistics over all questions, by discipline and by year."""
        return [
            {
                "verdict": pair.verdict,
                **_paired_document(pair.paired, pair.p_adjusted),
                **{
                    title: {name: _paired_document(group.paired, group.p_adjusted) for name, group in groups.items()}
                    for title, groups in (("by_discipline", pair.by_discipline), ("by_year", pair.by_year))
                },
            }
            for pair in self.pairs
        ]

    def more_documents(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return what the runs have right together, and the flipped questions with each run's answer."""
        return {
            "together": self.together.model_dump(mode="json", exclude={"alone_right"}),
            "flipped": [
                {"question": flip.question, "gold": flip.gold, "answers": dict(zip(keys, flip.answers, strict=True))}
                for flip in self.flipped
            ],
        }


def compare_exams(
    questions: Sequence[Question], key: AnswerKey, runs: Sequence[Outcomes], metrics: Sequence[Metrics], *, group: str
) -> PairedExams:
    """Compare the first of `runs` with each other one on exactly `questions`, which every run has scored.

    `group` is what a discipline is called.
    """
    sheet = Sheet.of(questions, key, runs)
    paired = [compare_pair(sheet, other) for other in range(1, len(runs))]
    adjusted = adjust_holm([pair.flips.p for pair in paired])
    disciplines = _groups(sheet, [question.exam.discipline for question in questions])
    years = _groups(sheet, [question.exam.year for question in questions])
    pairs = tuple(
        PairedRun(comparison, p, judge(comparison.accuracy, p), by_discipline, by_year)
        for comparison, p, by_discipline, by_year in zip(paired, adjusted, disciplines, years, strict=True)
    )
    clusters, count = ("questions", len(questions)) if sheet.independent.any() else ("exams", len(metrics[0].by_exam))
    together = complementarity(sheet)
    return PairedExams(tuple(metrics), pairs, clusters, count, together, _flipped(sheet, key, runs), group)


def _groups(sheet: Sheet, group_of: Sequence[str | int | None]) -> list[dict[str, PairedGroup]]:
    """Build one breakdown a pair, its groups in the order of their names; one family of tests over all of them.

    Item i of `group_of` is the group of question i; None: it is in none.
    """
    members: dict[str, list[int]] = {}
    for place, group in enumerate(group_of):
        if group is not None:
            members.setdefault(str(group), []).append(place)
    parts = {name: sheet.only(members[name]) for name in sorted(members)}
    comparisons = [
        {name: compare_pair(part, other) for name, part in parts.items()} for other in range(1, len(sheet.outcomes))
    ]
    adjusted = iter(adjust_holm([paired.flips.p for groups in comparisons for paired in groups.values()]))
    return [{name: PairedGroup(paired, next(adjusted)) for name, paired in groups.items()} for groups in comparisons]


def _flipped(sheet: Sheet, key: AnswerKey, runs: Sequence[Outcomes]) -> tuple[Flipped, ...]:
    """List the questions that some runs have right and others have not."""
    right = sheet.right
    flips = []
    right_counts = right.sum(axis=0)
    for question in sheet.pick((right_counts > 0) & (right_counts < len(right))):
        gold, answers = key[question], tuple(run[question].answer for run in runs)
        flips.append(Flipped(question, gold.number, answers, gold.others))
    return tuple(flips)


def _paired_document(paired: Paired, p_adjusted: float) -> dict[str, Any]:
    """Build the document of a pair, the flipped questions as counts: their keys stand in the document's own list."""
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
