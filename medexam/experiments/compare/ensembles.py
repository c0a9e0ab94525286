"""`medexam compare --ensemble`: what the runs would answer together, beside each of them; nothing is asked."""

from dataclasses import replace

from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.measures.comparing import RunAnswers, pair_runs
from medexam.measures.paired_tables import overall_tables, paired_document
from medexam.measures.tables import TableRun
from medexam.measures.verdicts import pair_sentences
from medexam.programs import build_prediction
from medexam.programs.steps.branches import combine
from medexam.questions import Question
from medexam.specs.programs.steps import Combine


def find_together(rule: Combine, compared: ComparisonScope) -> ComparisonSection:
    """Combine the answers to each compared question, and compare each run with that as the baseline.

    Raises `SpecError` for runs that answer in words.
    """
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
        if isinstance(question, Question)
    }
    items = replace(compared.sets[0], questions=tuple(compared.items))
    runs = [RunAnswers(lambda: combined), *compared.predictions]
    paired = pair_runs(compared.benchmark, items, [items, *compared.sets], runs).with_views({})
    names = [f"ensemble of {len(compared.names)} by {rule}", *compared.names]
    rows = [
        TableRun(name, {"Run": name}, each, is_best=False) for name, each in zip(names, paired.metrics, strict=True)
    ]
    tables = overall_tables(compared.benchmark, paired, rows)
    pairs = paired_document(paired, items.golds, ["", *compared.run_keys])["pairs"]
    document = {
        "combine": rule,
        "metrics": paired.metrics[0].model_dump(mode="json"),
        "pairs": {pair.pop("run"): pair for pair in pairs},
    }
    titled = [replace(table, title=f"Ensemble: {table.title}") for table in tables]
    return ComparisonSection("ensemble", pair_sentences(paired, names), document, titled)
