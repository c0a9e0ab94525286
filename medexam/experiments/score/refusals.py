"""Questions that a server refused in several runs in a row: asking them again would not change that."""

from collections import Counter
from collections.abc import Collection

from medexam.experiments.store.run_folder import RunFolder
from medexam.predictions import Failure, Status

TIMES = 3
"""Runs in a row in which a question must have failed."""
_REFUSING = ("LMInvalidRequestError", "LMProviderError", "LMServerError")
"""Errors by which a server says something of the question. One that is out of reach or busy, wants another key or wants
to be paid says nothing of it, and what the user's own code raises is there to be mended."""


def find_refused(folder: RunFolder, asked: Collection[str]) -> dict[str, Failure]:
    """Key -> the last failure, of those questions of `asked` that failed so in the last `TIMES` runs that asked them.

    Raises `RunFolderError` where a line of the folder is damaged.
    """
    times: Counter[str] = Counter()
    last: dict[str, Failure] = {}
    for said in folder.scan_predictions():
        failure = said.failure
        if said.status is Status.FAILED and failure is not None and failure.kind in _REFUSING:
            times[said.question] += 1
            last[said.question] = failure
        else:
            times[said.question] = 0
    return {key: last[key] for key, count in times.items() if count >= TIMES and key in asked}
