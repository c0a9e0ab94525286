"""How many stored replies of a run today's readers read otherwise than those that it was read by; nothing is asked."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from medexam.errors import MedExamError
from medexam.experiments.store.data_changes import load_stored
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.experiments.store.stored_run import AnyRun
from medexam.specs.identity import IDENTITY_SCHEMA
from medexam.specs.programs.own import ModuleSpec

_log = logging.getLogger(__name__)
_UNUSED: Any = object()
"""What looks up passages: a program is built with it, and reading a reply does not call it."""


def with_reading_warnings(run: AnyRun) -> AnyRun:
    """The run, its warnings saying too that today's readers read its replies otherwise, where they do."""
    found = reading_warnings([run.folder])
    return replace(run, record=replace(run.record, warnings=(*run.record.warnings, *found))) if found else run


def reading_warnings(folders: Iterable[RunFolder]) -> list[str]:
    """A sentence for each run whose replies today's readers read otherwise, or may, where that cannot be counted."""
    found = []
    for folder in folders:
        record = folder.read_record()
        if record.outdated is None or (changed := count_changed(folder, record)) == 0:
            continue
        counted = "" if changed is None else f", and {changed} of them are read otherwise today"
        taken_up = record.schema == IDENTITY_SCHEMA
        way = f"`{folder.resume_command}` reads them again" if taken_up else "run its spec to ask it anew"
        found.append(f"the replies of {folder.name} were read by {record.outdated}{counted}; {way}")
    return found


def count_changed(folder: RunFolder, record: RunRecord) -> int | None:
    """How many of the selected questions' stored replies today's readers read otherwise.

    None where that cannot be said: the data set or what the program loads is not at hand, the readers are the user's
    own code, or a prediction keeps too little to be read.
    """
    # Imported here: only a run that other versions have read needs DSPy.
    from medexam.programs import AskingProgram, ProgramContext, build_program, read_again

    spec = record.cell.program
    if isinstance(spec, ModuleSpec):
        return None
    try:
        questions = {one.key: one for one in load_stored(record).questions}
        context = ProgramContext(finder=_UNUSED, search=_UNUSED, supports=_UNUSED)
        program = build_program(spec, record.cell.dataset.language, context)
    except (MedExamError, ValueError) as error:
        _log.debug("medexam: %s cannot be read again: %s", folder.name, error)
        return None
    if not isinstance(program, AskingProgram):
        return None
    with folder.opened_predictions() as stored:
        before = {key: stored[key] for key in record.questions if key in stored and key in questions}
        after = {key: read_again(program, questions[key], one) for key, one in before.items()}
    if None in after.values():
        return None
    return sum(after[key] != one for key, one in before.items())
