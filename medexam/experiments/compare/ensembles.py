"""`medexam compare --ensemble`: what the runs would answer together, beside each of them; nothing is asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from medexam.benchmarks import Benchmark
from medexam.benchmarks.answers import RunAnswers
from medexam.benchmarks.paired import Paired, TableRun, pair_runs
from medexam.benchmarks.paired_tables import document_of, overall_tables
from medexam.benchmarks.verdicts import find_case, pair_sentences
from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.programs import build_prediction
from medexam.programs.steps.branches import combine
from medexam.specs.programs.steps import Combine
from medexam.tables import Table


@dataclass(frozen=True)
class Together(ComparisonSection):
    """The answers of all runs as one, beside those of each."""

    rule: Combine
    benchmark: Benchmark[Any, Any]
    statistics: Paired
    """Of the ensemble, then of each run."""
    name = "ensemble"

    def _names(self, names: Sequence[str]) -> list[str]:
        return [f"ensemble of {len(names)} by {self.rule}", *names]

    def tables(self, names: Sequence[str]) -> list[Table]:
        """Build the tables of scores, differences and agreement."""
        named = zip(self._names(names), self.statistics.metrics, strict=True)
        runs = [TableRun(name, {"Run": name}, metrics, is_best=False) for name, metrics in named]
        tables = overall_tables(self.benchmark, self.statistics, runs)
        return [replace(table, title=f"Ensemble: {table.title}") for table in tables]

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write what may be said of each run beside the ensemble."""
        return pair_sentences(self.statistics, self._names(names))

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the scores of the ensemble, and of each run its score minus the ensemble's."""
        pairs = zip(keys, self.statistics.pairs, strict=True)
        return {
            "combine": self.rule,
            "metrics": self.statistics.metrics[0].model_dump(mode="json"),
            "pairs": {
                key: {"verdict": find_case(pair).verdict, "measures": document_of(pair.measures)} for key, pair in pairs
            },
        }


def find_together(rule: Combine, compared: ComparisonScope) -> Together:
    """Combine the answers to each compared question; raises `SpecError` for runs that answer in words."""
    if not compared.benchmark.right_or_wrong:
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
    }
    items = replace(compared.sets[0], questions=tuple(compared.items))
    runs = [RunAnswers(lambda: combined), *compared.predictions]
    paired = pair_runs(compared.benchmark, items, [items, *compared.sets], runs).with_views({})
    return Together(rule, compared.benchmark, paired)
