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


def find_refused(folder: RunFolder, questions: Collection[str]) -> dict[str, Failure]:
    """Find the `questions` that failed so in the last `TIMES` runs that asked them: key -> the last failure.

    Raises `RunFolderError` where a line of the folder is damaged.
    """
    times: Counter[str] = Counter()
    last: dict[str, Failure] = {}
    for prediction in folder.scan_predictions():
        failure = prediction.failure
        if prediction.status is Status.FAILED and failure is not None and failure.kind in _REFUSING:
            times[prediction.question] += 1
            last[prediction.question] = failure
        else:
            times[prediction.question] = 0
    return {key: last[key] for key, count in times.items() if count >= TIMES and key in questions}
