"""Runs that say that they are the same, by digest and model, and whose answers differ all the same."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

from medexam.errors import RunFolderError
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.experiments.store.stored_run import StoredRun
from medexam.predictions import Status
from medexam.predictions.prediction import as_read

_ROUNDED = 0.05
"""Share of the answers in which one model may differ from itself: batches of other sizes round otherwise."""


def describe_unequal_beside(runs: Sequence[StoredRun]) -> list[str]:
    """Do the same for these runs and those of their digests in the folders that hold them; pairs of others are left
    out.
    """
    folders = {run.folder.path: (run.folder, run.record) for run in runs}
    for run in runs:
        for path in sorted(run.folder.path.parent.glob(f"*-{run.record.spec_digest}*")):
            if path not in folders and (folder := RunFolder(path)).exists():
                with suppress(RunFolderError):
                    folders[path] = folder, folder.read_record()
    names = [run.folder.name for run in runs]
    return [line for line in describe_unequal(folders.values()) if any(name in line for name in names)]


def describe_unequal(runs: Iterable[tuple[RunFolder, RunRecord]]) -> list[str]:
    """Name each pair of equal runs whose answers differ, without a full stop; usually empty."""
    groups: dict[str, list[RunFolder]] = {}
    for folder, record in runs:
        model = record.cell.model
        is_drawn_anew = model.temperature != 0 and model.seed is None
        if record.cell.program.asks_model and not is_drawn_anew and not folder.repeat_number:
            groups.setdefault(record.spec_digest, []).append(folder)
    lines = []
    for folders in groups.values():
        answers = {folder.name: _read_answers(folder) for folder in folders} if len(folders) > 1 else {}
        for first, second in combinations(sorted(answers), 2):
            shared = answers[first].keys() & answers[second].keys()
            differing = sum(answers[first][key] != answers[second][key] for key in shared)
            servers = differing > _ROUNDED * len(shared)
            reason = "two servers may stand behind one name" if servers else "batches of other sizes may change as much"
            if differing:
                lines.append(
                    f"the runs {first} and {second} say that they are the same, and {differing:,} of {len(shared):,} "
                    f"answers differ: {reason}"
                )
    return lines


def _read_answers(folder: RunFolder) -> dict[str, tuple[Any, ...]]:
    """Map each question that has an answer, or none for good, to it."""
    answers: dict[str, tuple[Any, ...]] = {}
    for stored in folder.scan_predictions():
        prediction = as_read(stored, "strict")
        if prediction.status is Status.FAILED:
            answers.pop(prediction.question, None)
        else:
            answers[prediction.question] = prediction.answer, prediction.text, str(prediction.outputs)
    return answers
