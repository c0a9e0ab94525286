"""`medexam compare --ensemble`: what the runs would answer together, beside each of them; nothing is asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.paired import PairedRuns, TableRun
from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.programs import build_prediction
from medexam.programs.steps.branches import combine
from medexam.questions import Question
from medexam.specs.programs.steps import Combine
from medexam.tables import Captioned


@dataclass(frozen=True)
class Together(ComparisonSection):
    """The answers of all runs as one, beside those of each."""

    rule: Combine
    statistics: PairedRuns[Any]
    """Of the ensemble, then of each run."""
    name = "ensemble"

    def _names(self, names: Sequence[str]) -> list[str]:
        return [f"ensemble of {len(names)} by {self.rule}", *names]

    def tables(self, names: Sequence[str]) -> list[Captioned]:
        """Build the tables of scores, differences and agreement."""
        runs = [
            TableRun(name, {}, metrics, is_best=False)
            for name, metrics in zip(self._names(names), self.statistics.metrics, strict=True)
        ]
        return [
            (replace(table, title=f"Ensemble: {table.title}"), caption)
            for table, caption in self.statistics.overall_tables(runs)
        ]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run beside the ensemble."""
        return self.statistics.sentences(self._names(names))

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the scores of the ensemble, and of each run its score minus the ensemble's."""
        return {
            "combine": self.rule,
            "metrics": self.statistics.metrics[0].model_dump(mode="json"),
            "pairs": dict(zip(keys, self.statistics.pair_documents(), strict=True)),
        }


def find_together(rule: Combine, compared: ComparisonScope) -> Together:
    """Combine the answers to each compared question; raises `SpecError` for runs that answer in words."""
    if compared.sets[0].in_words:
        raise SpecError("--ensemble: the runs answer in words; an ensemble combines numbered options: leave it out")
    combined = {
        question.key: build_prediction(
            question,
            combine(question, [run[question.key] for run in compared.predictions], rule),
            program="ensemble",
            spec_digest="",
            latency_s=0.0,
        )
        for question in compared.items
        if isinstance(question, Question)
    }
    first, *_ = compared.sets
    statistics = compared.benchmark.compare(
        replace(first, questions=tuple(compared.items)),
        [first, *compared.sets],
        [RunAnswers(lambda: combined), *compared.predictions],
    )
    return Together(rule, statistics)
