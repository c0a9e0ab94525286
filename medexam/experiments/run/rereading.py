"""Taking the stored replies of a run as another reading reads them; no model is asked.

Both readings of a reply are stored. What comes out otherwise is appended, and the last line of a question counts.
"""

import logging

from medexam.experiments.plan.cells import AnyCell
from medexam.predictions.prediction import as_read

_log = logging.getLogger(__name__)


def read_run_again(planned: AnyCell) -> AnyCell:
    """Return the cell with its stored replies as its program reads them now; the folder must be locked.

    Raises `RunFolderError` where the folder cannot be written.
    """
    folder, reading = planned.folder, planned.cell.program.read_as
    former_reading = folder.read_record().cell.program.read_as if folder.exists() else reading
    if reading == former_reading:
        return planned
    with folder.appending() as log, folder.opened_predictions() as stored:
        changed = [after for before in stored.values() if (after := as_read(before, reading)) != before]
        for prediction in changed:
            log.append(prediction)
        count = len(stored)
    _log.warning(
        "medexam: %s: replies were read by the %s reader, and are now read by the %s one: %d of %d predictions changed",
        *(folder.name, former_reading, reading, len(changed), count),
    )
    return planned.updated()
