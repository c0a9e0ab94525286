"""The study's stored answers as run folders: scored, compared and shown like any runs, and no model is asked.

The package keeps which option each of fifteen runs chose of 1,020 questions. It keeps no replies, tokens or seconds.
"""

import csv
import gzip
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from medexam.datasets.locating import SHIPPED
from medexam.experiments.plan.prompt_samples import asked_words
from medexam.experiments.store.derived_files import score_all, write_parquet
from medexam.experiments.store.items import begin_run
from medexam.experiments.store.run_folder import (
    ENVIRONMENT,
    PARQUET,
    PREDICTIONS,
    RunFolder,
)
from medexam.experiments.store.stored_run import StoredRun, stored_run
from medexam.files import whole_file
from medexam.measures import find_benchmark
from medexam.predictions import Prediction, Reason, Status
from medexam.questions import AnySet
from medexam.specs import CellSpec, build_cells, load_document
from medexam.specs.identity import build_identity, digest

ANSWERS = SHIPPED / "study" / "answers.csv.gz"
MODEL = "Qwen2.5-Coder-1.5B-Instruct"
ASKED = "2026-11-20"
"""The day on which the study was asked."""
DESCRIPTION = (
    "These answers say which option was chosen. Prompts, replies, tokens and seconds were not stored: `medexam run "
    "study` asks again and stores them, in some 2.5 hours on two processor cores."
)


def make_runs(runs_dir: Path) -> list[StoredRun]:
    """Write and score the study's runs in `runs_dir`, in the order of its spec; those that are there are scored again.

    Raises `RunFolderError` where nothing can be written.
    """
    answers = read_columns()
    _, cells = build_cells(load_document("study"), {"dataset": {"name": "headqa_study"}, "model.name": MODEL})
    experiment = digest({"name": "study", "columns": list(answers)})
    items: dict[str, AnySet] = {}
    runs = []
    for place, (cell, numbers) in enumerate(zip(cells, answers.values(), strict=True)):
        language = cell.dataset.language
        if language not in items:
            items[language] = find_benchmark(cell.dataset).load(cell.dataset)
        runs.append(_make(runs_dir, cell, items[language], numbers, experiment, place))
    return runs


def read_columns() -> dict[str, dict[str, int | None]]:
    """Read the stored answers: column of a run -> key of a question -> the option's number; None: no legal answer."""
    with gzip.open(ANSWERS) as stream:
        rows = list(csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8")))
    columns = [name for name in rows[0] if name not in ("question", "gold")]
    return {column: {row["question"]: int(row[column]) if row[column] else None for row in rows} for column in columns}


def _make(
    runs_dir: Path, cell: CellSpec, items: AnySet, numbers: Mapping[str, int | None], experiment: str, place: int
) -> StoredRun:
    run_identity = {
        **build_identity(cell, fingerprint=items.fingerprint, words=asked_words(cell.program, cell.dataset.language)),
        "answers": "bench/results/study.csv",
    }
    spec_digest = digest(run_identity)
    words = ["study", cell.program.label, cell.dataset.language]
    folder = RunFolder.last_or_new(words, spec_digest, runs_dir, fresh=False)
    predictions = {each.question: each for each in _predictions(cell, items, numbers, spec_digest)}
    if not folder.exists():
        folder.create()
        with folder.locked():
            with whole_file(folder.path / PREDICTIONS) as draft:
                draft.write_bytes(b"".join(prediction.to_line() for prediction in predictions.values()))
            times = {"started_at": f"{ASKED}T00:00:00+00:00", "ended_at": f"{ASKED}T02:30:00+00:00", "engine": None}
            folder.write_json(ENVIRONMENT, times)
            # Written last: a folder without it is no run yet.
            begin_run(
                *(folder, items),
                identity=run_identity,
                cell=cell,
                description=DESCRIPTION,
                experiment_digest=experiment,
                place=place,
            )
    benchmark = find_benchmark(cell.dataset)
    scored = score_all(folder, benchmark, items, predictions)
    # Which run leads is tested on what this file says of each question.
    if not (folder.path / PARQUET).exists():
        write_parquet(folder, benchmark, items, predictions, scored)
    return stored_run(folder, scored.metrics)


def _predictions(
    cell: CellSpec, items: AnySet, numbers: Mapping[str, int | None], spec_digest: str
) -> Iterator[Prediction]:
    for question in items.questions:
        answer = numbers[question.key]
        yield Prediction(
            question=question.key,
            program=cell.program.label,
            spec_digest=spec_digest,
            status=Status.UNANSWERED if answer is None else Status.ANSWERED,
            reason=Reason.UNPARSED if answer is None else None,
            answer=answer,
        )
