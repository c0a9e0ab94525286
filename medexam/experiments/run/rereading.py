"""Reading the stored replies of a run again, where the code that reads them or the reading asked for has changed.

No model is asked, and nothing that was written is changed: what comes out otherwise is appended, and the last line of a
question counts.
"""

import logging
from collections.abc import Iterable

from medexam.experiments.plan.cells import AnyCell
from medexam.predictions import Failure, Prediction, Status
from medexam.programs import AskingProgram, read_again
from medexam.questions import Question, Task

_log = logging.getLogger(__name__)


def read_run_again(planned: AnyCell) -> AnyCell:
    """Return the cell, its stored replies read by today's versions of the readers; the folder must be locked.

    A prediction that keeps too little to be read, or whose question is gone, is pending again. Raises
    `DatasetError` where the data set cannot be read, and `RunFolderError` where the folder cannot be written.
    """
    folder, program = planned.folder, planned.program
    record = folder.read_record() if folder.exists() else None
    if record is None or not isinstance(program, AskingProgram):
        return planned
    reading, former_reading = planned.cell.program.read_as, record.cell.program.read_as
    reason = None if reading == former_reading else f"the {former_reading} reader"
    if reason is None:
        return planned
    change_count = loss_count = 0
    with folder.appending() as log, folder.opened_predictions() as stored:
        questions = _questions(planned, stored)
        for key, before in stored.items():
            after = read_again(program, questions[key], before) if key in questions else None
            loss_count += after is None
            after = after or _pending_again(before, reason)
            if after != before:
                change_count += 1
                log.append(after)
    _log.warning(
        "medexam: %s: replies were read by %s and are read again: %d of %d predictions changed%s",
        folder.name,
        reason,
        change_count,
        len(stored),
        f", {loss_count} of them because too little was stored, and these are asked again" if loss_count else "",
    )
    return planned.updated()


def _questions(planned: AnyCell, keys: Iterable[str]) -> dict[str, Question | Task]:
    """Map keys to questions, whatever is selected now, where a stored question is not selected."""
    questions: dict[str, Question | Task] = {question.key: question for question in planned.question_set.questions}
    if not questions.keys() >= set(keys):
        questions |= {
            question.key: question for question in planned.benchmark.load(planned.cell.dataset.whole).questions
        }
    return questions


def _pending_again(before: Prediction, reason: str) -> Prediction:
    failure = Failure(
        kind="ReplyNotKept", message=(f"it was read by {reason}, and too little was stored to read it again")
    )
    return Prediction(
        question=before.question,
        program=before.program,
        spec_digest=before.spec_digest,
        status=Status.FAILED,
        failure=failure,
    )
