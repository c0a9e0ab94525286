"""Closing questions that a server refuses whenever they are asked: they count as unanswered, and are asked no more."""

import logging

from medexam.experiments.plan.cells import AnyCell
from medexam.experiments.store.refusals import TIMES, find_refused
from medexam.predictions import Prediction, Reason, Status

_log = logging.getLogger(__name__)


def close_refused(planned: AnyCell) -> AnyCell:
    """Return the cell without its pending questions that were refused too often; the folder must be locked.

    Each gets a line that it is unanswered as `refused`; what the server said stays in the lines before. Raises
    `RunFolderError` where the folder cannot be read or written.
    """
    folder = planned.folder
    if not folder.exists():
        return planned
    refused = find_refused(folder, {question.key for question in planned.pending})
    if not refused:
        return planned
    with folder.appending() as log:
        for key in refused:
            log.append(
                Prediction(
                    question=key,
                    program=planned.cell.program.label,
                    spec_digest=planned.spec_digest,
                    status=Status.UNANSWERED,
                    reason=Reason.REFUSED,
                )
            )
    _log.warning(
        "medexam: %s: %d questions failed in %d runs in a row and count as refused from now on, such as: %s",
        folder.name,
        len(refused),
        TIMES,
        next(iter(refused.values())).message,
    )
    return planned.updated()
