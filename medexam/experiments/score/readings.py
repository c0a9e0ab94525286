"""What today's readers make of the stored replies of a run that others have read; nothing is asked."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from medexam.errors import MedExamError
from medexam.experiments.store.data_changes import load_stored
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics.results import ReadScores
from medexam.metrics.scoring import read_scores
from medexam.model_calls import Reading
from medexam.predictions import Prediction
from medexam.questions import AnswerKey
from medexam.specs.identity import IDENTITY_SCHEMA

_log = logging.getLogger(__name__)
_UNUSED: Any = object()
"""What looks up passages: a program is built with it, and reading a reply does not call it."""


@dataclass(frozen=True)
class ReadToday:
    """What today's readers make of a run's replies that others have read."""

    predictions: Mapping[str, Prediction]
    """Key of a selected question -> its prediction as it would be read today."""
    changed: int
    """How many of them have another answer than the stored one has, or another reason for none."""
    readings: dict[Reading, ReadScores] | None
    """What counts under each reading; None where both are the same, and for questions without a key of options."""


def with_readings_of_today(run: AnyRun) -> AnyRun:
    """Return the run with what today's readers make of its replies, where it was read by others.

    Its metrics have both readings, and its warnings say how many of its replies are read otherwise.
    """
    record = run.record
    if record.outdated is None:
        return run
    today = read_today(run.folder, record)
    if today is not None and today.readings is not None:
        run = replace(run, metrics=run.metrics.model_copy(update={"readings": today.readings}))
    warnings = _describe(run.folder, record, today)
    return replace(run, record=replace(record, warnings=(*record.warnings, *warnings))) if warnings else run


def reading_warnings(folders: Iterable[RunFolder]) -> list[str]:
    """Warn of each run whose replies today's readers read otherwise, or may, where that cannot be counted."""
    warnings = []
    for folder in folders:
        record = folder.read_record()
        if record.outdated is not None:
            warnings += _describe(folder, record, read_today(folder, record))
    return warnings


def read_today(folder: RunFolder, record: RunRecord) -> ReadToday | None:
    """Read the stored replies to the selected questions as they would be read today.

    None where that cannot be done: the data set or what the program loads is not at hand, the readers are the user's
    own code, or a prediction keeps too little to be read.
    """
    # Imported here: only a run that other versions have read needs DSPy.
    from medexam.programs import AskingProgram, ProgramContext, build_program, read_again

    spec = record.cell.program
    if spec.module_adapter is not None:
        return None
    try:
        items = load_stored(record)
        context = ProgramContext(finder=_UNUSED, search=_UNUSED, supports=_UNUSED)
        program = build_program(spec, record.cell.dataset.language, context)
    except (MedExamError, ValueError) as error:
        _log.debug("medexam: %s cannot be read again: %s", folder.name, error)
        return None
    if not isinstance(program, AskingProgram):
        return None
    questions = {question.key: question for question in items.questions}
    predictions, change_count = {}, 0
    with folder.opened_predictions() as stored:
        for key in record.questions:
            if key not in stored or key not in questions:
                continue
            before = stored[key]
            after = read_again(program, questions[key], before)
            if after is None:
                return None
            predictions[key] = after
            change_count += after.model_copy(update={"lenient": before.lenient}) != before
    readings = read_scores([*predictions], items.golds, predictions) if isinstance(items.golds, AnswerKey) else None
    return ReadToday(predictions, change_count, readings)


def _describe(folder: RunFolder, record: RunRecord, today: ReadToday | None) -> list[str]:
    if today is not None and not today.changed:
        return []
    change_note = "" if today is None else f", and {today.changed} of them are read differently today"
    remedy = (
        f"`{folder.resume_command}` reads them again"
        if record.schema == IDENTITY_SCHEMA
        else "run its spec to ask it again"
    )
    return [f"the replies of {folder.name} were read by {record.outdated}{change_note}; {remedy}"]
