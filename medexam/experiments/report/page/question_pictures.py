"""The pictures of a page's questions: small, once a question, and no more than a page can hold.

They are read from the data set and are those that the model was shown. Where the data set is gone or holds others by
now, the page has none.
"""

from collections.abc import Sequence

from medexam.datasets.pictures.showing import show_pictures
from medexam.errors import DatasetError
from medexam.experiments.store.stored_run import AnyRun

SIDE = 640
"""Pixels of the longest side."""
LARGEST = 1_000_000
"""Characters of a picture as a data URL; a larger one is left out."""
ALL_PICTURES = 30_000_000
"""Characters that all pictures together may have; those of later questions are left out."""


def read_pictures(runs: Sequence[AnyRun]) -> dict[str, str]:
    """Map the key of each question that some run was asked with its picture to the picture, as a data URL."""
    picture_by_key: dict[str, str] = {}
    for run in runs:
        if run.record.cell.program.pictures is not None and not picture_by_key.keys() >= set(run.record.questions):
            picture_by_key |= _pictures_of(run)
    page_pictures, characters = {}, 0
    for key, picture in picture_by_key.items():
        if len(picture) <= LARGEST and characters + len(picture) <= ALL_PICTURES:
            page_pictures[key] = picture
            characters += len(picture)
    return page_pictures


def _pictures_of(run: AnyRun) -> dict[str, str]:
    spec = run.record.cell.dataset.whole
    try:
        items, identity = show_pictures(run.benchmark.load(spec), spec, SIDE, run.record.questions)
    except DatasetError:
        return {}
    if identity["fingerprint"] != run.record.identity.get("pictures", {}).get("fingerprint"):
        return {}
    return {question.key: question.picture for question in items.questions if question.picture is not None}
