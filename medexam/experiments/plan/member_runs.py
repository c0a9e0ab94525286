"""Runs that an ensemble needs: what they are asked beside their own questions, and runs of other experiments."""

import re
from collections.abc import Sequence
from dataclasses import replace

from medexam.benchmarks import find_benchmark
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.plan.cells import AnyCell, take_stock
from medexam.experiments.plan.leakage import check_apart
from medexam.experiments.plan.sources import Prepared
from medexam.experiments.store.data_changes import as_asked
from medexam.experiments.store.run_folder import RunFolder
from medexam.items import AnySet
from medexam.specs.identity import digest


def training_of(prepared: Sequence[Prepared]) -> dict[str, AnySet]:
    """Digest of a member -> the questions that ensembles of it are fitted on.

    Raises `SpecError` where an ensemble is fitted on an exam that it is asked.
    """
    found: dict[str, AnySet] = {}
    for item in prepared:
        if item.training is None:
            continue
        check_apart({"dataset": item.question_set, "program.train": item.training})
        for member in item.members:
            known = found.get(digest(member.identity))
            found[digest(member.identity)] = item.training if known is None else merge(known, item.training)
    return found


def merge(one: AnySet, other: AnySet) -> AnySet:
    """The questions of both, each once."""
    questions = {item.key: item for item in (*one.questions, *other.questions)}
    golds = {key: (one if key in one.golds else other).golds[key] for key in questions}
    return replace(one, questions=tuple(questions.values()), golds=type(one.golds)(golds))


def borrow(cell: AnyCell) -> AnyCell | None:
    """The cell with the run of another experiment that has the same digest; None if there is none.

    What that run lacks of the cell's questions is asked into it; what it was asked for itself stays as it is.
    """
    form = re.compile(rf".*-{cell.spec_digest}(-\d+)?")
    parent = cell.folder.path.parent
    names = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
    folders = [RunFolder(parent / name, cell.spec_digest) for name in names if form.fullmatch(name)]
    counted = {folder: take_stock(folder, cell.question_sets, cell.benchmark) for folder in folders if folder.exists()}
    if not counted:
        return None
    folder = min(counted, key=lambda one: len(counted[one][0]))
    pending, right, answered = counted[folder]
    taken = replace(cell, folder=folder, pending=pending, right=right, answered=answered, borrowed=True)
    if not pending:
        return taken
    try:
        record = folder.read_record()
        whole = record.cell.dataset.whole
        own = as_asked(record, find_benchmark(whole).load(whole))
    except (DatasetError, RunFolderError):
        return None
    needed = cell.question_set if cell.training is None else merge(cell.question_set, cell.training)
    mine = {question.key for question in own.questions}
    more = replace(needed, questions=tuple(one for one in needed.questions if one.key not in mine))
    return replace(taken, question_set=own, training=more if more.questions else None)
