"""Runs that an ensemble needs: what they are asked beside their own questions, and runs of other experiments."""

import re
from collections.abc import Sequence
from dataclasses import replace

from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.plan.cells import AnyCell, take_stock
from medexam.experiments.plan.leakage import check_apart
from medexam.experiments.plan.sources import Prepared
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.run_folder import RunFolder
from medexam.questions import AnySet
from medexam.specs.identity import digest


def training_of(prepared: Sequence[Prepared]) -> dict[str, AnySet]:
    """Map each member's digest to the questions that ensembles of it are fitted on.

    Raises `SpecError` where an ensemble is fitted on an exam that it is asked.
    """
    training_by_digest: dict[str, AnySet] = {}
    for item in prepared:
        if item.training is None:
            continue
        check_apart({"dataset": item.question_set, "program.train": item.training})
        for member in item.members:
            training = training_by_digest.get(digest(member.identity))
            training_by_digest[digest(member.identity)] = (
                item.training if training is None else merge_questions(training, item.training)
            )
    return training_by_digest


def merge_questions(first: AnySet, second: AnySet) -> AnySet:
    """Merge the questions of both, each once."""
    questions = {item.key: item for item in (*first.questions, *second.questions)}
    golds = {key: (first if key in first.golds else second).golds[key] for key in questions}
    return replace(first, questions=tuple(questions.values()), golds=type(first.golds)(golds))


def borrow(cell: AnyCell) -> AnyCell | None:
    """Return the cell with the run of another experiment that has the same digest; None if there is none.

    What that run lacks of the cell's questions is asked into it; what it was asked for itself stays as it is.
    """
    form = re.compile(rf".*-{cell.spec_digest}(-\d+)?")
    parent = cell.folder.path.parent
    names = sorted(path.name for path in parent.iterdir()) if parent.is_dir() else []
    folders = [RunFolder(parent / name, cell.spec_digest) for name in names if form.fullmatch(name)]
    stock_by_folder = {
        folder: take_stock(folder, cell.question_sets, cell.benchmark) for folder in folders if folder.exists()
    }
    if not stock_by_folder:
        return None
    folder = min(stock_by_folder, key=lambda candidate: len(stock_by_folder[candidate][0]))
    pending, right, answered = stock_by_folder[folder]
    member_cell = replace(cell, folder=folder, pending=pending, right=right, answered=answered, borrowed=True)
    if not pending:
        return member_cell
    try:
        run_items = load_items(folder)
    except (DatasetError, RunFolderError):
        return None
    cell_items = cell.question_set if cell.training is None else merge_questions(cell.question_set, cell.training)
    run_keys = {question.key for question in run_items.questions}
    extra_items = replace(
        cell_items, questions=tuple(question for question in cell_items.questions if question.key not in run_keys)
    )
    return replace(member_cell, question_set=run_items, training=extra_items if extra_items.questions else None)
