"""What `medexam demo` shows: the study's stored answers as run folders, and what it found in sentences.

The package keeps which option each of fifteen runs chose of 1,020 questions, and every call of the one with free
replies, whose form decides. They are scored, compared and shown like any others, and no model is asked. The figures of
the sentences are those of the paired tests and of no hand.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.datasets.locating import SHIPPED
from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.report.current import current_run, write_run
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures import find_benchmark
from medexam.measures.shown import signed
from medexam.measures.verdicts import describe_views, find_case, turn
from medexam.predictions import Prediction
from medexam.questions import AnySet
from medexam.specs import build_cells, load_document
from medexam.specs.identity import build_identity, digest
from medexam.tables import equals, percent
from medexam.text import count_of, print_notice

ANSWERS = SHIPPED / "study" / "predictions.jsonl.gz"
MODEL = "Qwen2.5-Coder-1.5B-Instruct"
_BASE = "zero_shot-guided"
ASKED = "2026-11-20"
"""The day on which the study was asked; its free replies were asked on 2026-11-30."""
DESCRIPTION = (
    "Of the free replies (zero_shot) every call is stored; the other answers say which option was chosen. `medexam run "
    "study` asks all of them again, in some 2.5 hours on two processor cores."
)


def make_runs(runs_dir: Path) -> list[StoredRun]:
    """Write and score the study's runs in `runs_dir`, in the order of its spec; those that are there are read.

    Raises `RunFolderError` where nothing can be written.
    """
    answers = defaultdict[str, list[dict[str, Any]]](list)
    with gzip.open(ANSWERS) as lines:
        for row in map(json.loads, lines):
            answers[row["program"]].append(row)
    _, cells = build_cells(load_document("study"), {"dataset": {"name": "headqa_study"}, "model.name": MODEL})
    times = {"ended_at": f"{ASKED}T02:30:00+00:00", "engine": None}
    items: dict[str, AnySet] = {}
    runs = []
    for place, (cell, rows) in enumerate(zip(cells, answers.values(), strict=True)):
        label, language = cell.program.label, cell.dataset.language
        if language not in items:
            items[language] = find_benchmark(cell.dataset).load(cell.dataset)
        identity = build_identity(cell, fingerprint=items[language].fingerprint, words={})
        identity["answers"] = "bench/results/study.csv"
        spec_digest = digest(identity)
        folder = RunFolder.last_or_new(["study", label, language], spec_digest, runs_dir, fresh=False)
        if folder.exists():
            runs.append(current_run(folder, print_notice))
            continue
        predictions = (Prediction.model_validate({**row, "program": label, "spec_digest": spec_digest}) for row in rows)
        fields = {"identity": identity, "cell": cell, "description": DESCRIPTION}
        environment = {"started_at": f"{ASKED}T00:00:{place:02}+00:00", **times}
        runs.append(write_run(folder, items[language], predictions, environment, **fields))
    return runs


def study_sentences(runs: Sequence[StoredRun]) -> list[str]:
    """Describe what guided answers, chain-of-thought, passages and Spanish change, and which way is best.

    Each difference is said with the p of McNemar's test, after Holm over all ways in English.
    """
    base = _base(runs, "en")
    english = [run for run in runs if run.record.cell.dataset.language == "en" and run is not base]
    ways = compare_runs((base.folder, *(run.folder for run in english)))
    spanish = compare_runs((base.folder, _base(runs, "es").folder))
    labels = [run.record.cell.program.label for run in english]

    def said(label: str, subject: str, reverse: bool = False) -> str:
        return describe(subject, ways, labels.index(label), reverse=reverse)

    best = max([base, *english], key=lambda run: run.score or 0)
    accuracy = best.metrics.measure("accuracy")
    return [
        said("zero_shot", "Guided answers instead of free ones", reverse=True),
        said("chain_of_thought-guided", "Chain-of-thought"),
        said("retrieve_then_answer-guided-bm25", "Two retrieved passages"),
        said("few_shot-guided", "Demonstrations"),
        describe("Spanish instead of English", spanish, 0),
        f"The best way, {best.record.cell.program.label}, has {percent(accuracy.value)} % right; chance is "
        f"{percent(accuracy.chance)} %.",
    ]


def describe(subject: str, comparison: Comparison, place: int, *, reverse: bool = False) -> str:
    """Say in a sentence by how much the pair at `place` differs in accuracy, `reverse`: the baseline from the other."""
    pair = comparison.statistics.pairs[place]
    pair = turn(pair) if reverse else pair
    case, first = find_case(pair), pair.first
    p = f"p {equals(first.p_adjusted or 0.0)}"
    if case.result is None:
        views = describe_views(pair, comparison.statistics.measure, adjusted=True)
        return f"{subject}: the form of the replies decides; {signed(first.difference)} points ({p}), {views}."
    if case.verdict == "not told apart":
        return f"{subject}: no difference shown ({signed(first.difference)} points, {p})."
    size = count_of(round(abs(100 * first.difference.value)), "point")
    return f"{subject}: right {size} {'more' if case.verdict == 'better' else 'less'} often ({p})."


def _base(runs: Sequence[StoredRun], language: str) -> StoredRun:
    cells = ((run, run.record.cell) for run in runs)
    return next(run for run, cell in cells if (cell.program.label, cell.dataset.language) == (_BASE, language))
