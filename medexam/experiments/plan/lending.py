"""Answers that another run of the same digest and model has: they are taken from it, and not paid for again.

What is lent are lines of `predictions.jsonl` with their calls. A model that is reached must be the one that gave them.
"""

import logging
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace

from medexam.errors import RunFolderError
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.store.answerers import KnownModel, admit, read_models
from medexam.experiments.store.environment import build_environment
from medexam.experiments.store.run_folder import ENVIRONMENT, RunFolder
from medexam.model_identity import ModelIdentity
from medexam.predictions import Status

_log = logging.getLogger(__name__)


def with_lender(cell: PlannedCell) -> PlannedCell:
    """Return the cell with the run beside it that has answered most of its pending questions, which are then lent.

    Unchanged without one, if no model is asked, and for a run that --fresh began.
    """
    # Which further models gave another run's answers is not compared.
    if not cell.asks_model or not cell.pending or cell.cell.asked_models:
        return cell
    if cell.folder.exists() and cell.folder.read_record().fresh:
        return cell
    form, keys = re.compile(rf".*-{cell.spec_digest}(-\d+)?"), {question.key for question in cell.pending}
    lender, lent = None, set[str]()
    for path in sorted(cell.folder.path.parent.glob(f"*-{cell.spec_digest}*")):
        folder = RunFolder(path, cell.spec_digest)
        if form.fullmatch(path.name) and path.name != cell.run_id and folder.exists():
            # A run that cannot be read lends nothing.
            with suppress(RunFolderError):
                answered = keys & _answered_by_one(folder, None)[1]
                lender, lent = (folder, answered) if len(answered) > len(lent) else (lender, lent)
    lent_questions = tuple(question for question in cell.pending if question.key in lent)
    pending = tuple(question for question in cell.pending if question.key not in lent)
    return replace(cell, lender=lender, lent=lent_questions, pending=pending)


def take_lent(cell: PlannedCell, identity: ModelIdentity | None) -> PlannedCell:
    """Write the lent answers into the cell's folder, which must be locked, and return the cell without a lender.

    `identity` is the model that will answer the others, and was admitted; None: nobody is asked. What another model
    answered is pending.
    """
    folder = cell.lender
    if folder is None:
        return cell
    entry, answered = _answered_by_one(folder, identity)
    # The print under which the cell's folder knows the model that lends; None where it knows others.
    own_print = None if cell.answerer is None else cell.answerer.print
    if entry is not None and own_print is None:
        models = read_models(cell.folder)
        equal = (key for key, model in models.items() if not model.identity.differences(entry.identity))
        own_print = next(equal, None) if models else admit(cell.folder, entry.identity, answers=0).print
    copied = {question.key for question in cell.lent} & answered if own_print else set[str]()
    if copied:
        with cell.folder.appending() as log, folder.opened_predictions() as stored:
            for key in (question.key for question in cell.lent if question.key in copied):
                log.append(stored[key].model_copy(update={"answered_by": own_print}))
        if not (cell.folder.path / ENVIRONMENT).exists():
            lender = {name: folder.read_environment().get(name) for name in ("engine", "prices")}
            cell.folder.write_json(ENVIRONMENT, build_environment({None: cell.cell.model}, {None: None}, {}) | lender)
    if missing := len(cell.lent) - len(copied):
        _log.warning(
            "medexam: warning: %s: %s answers of %s are asked anew, because another model gave them",
            *(cell.run_id, f"{missing:,}", folder.name),
        )
    return cell.updated()


def describe_lent(cell: PlannedCell) -> str | None:
    """Say in one line which answers are not asked for; None where all are."""
    if cell.lender is None:
        return None
    return (
        f"{cell.run_id}: {len(cell.lent):,} answers are those of {cell.lender.name} (same digest, same model); --fresh "
        "asks anew"
    )


def _answered_by_one(folder: RunFolder, identity: ModelIdentity | None) -> tuple[KnownModel | None, set[str]]:
    """Return the model that gave most of a run's answers, nothing of it doubted, and the keys of what it answered.

    `identity`: only a model that does not differ from it. None and no key without one.
    """
    models = {
        key: entry
        for key, entry in read_models(folder).items()
        if not entry.doubts and (identity is None or not entry.identity.differences(identity))
    }
    prints: dict[str, str | None] = {}
    for prediction in folder.scan_predictions():
        prints[prediction.question] = None if prediction.status is Status.FAILED else prediction.answered_by
    most = Counter(key for key in prints.values() if key in models).most_common(1)
    if not most:
        return None, set()
    return models[str(most[0][0])], {question for question, key in prints.items() if key == most[0][0]}
