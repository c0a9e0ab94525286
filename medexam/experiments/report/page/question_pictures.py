"""The pictures of a page's questions: small, once a question, and no more than a page can hold.

They are those that the model was shown, as the run's folder keeps them.
"""

import base64
from collections.abc import Sequence

from medexam.datasets.pictures.scaling import scale_picture
from medexam.experiments.store.data_changes import load_items
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
    small: dict[str, str] = {}
    pictures = {}
    for question in load_items(run.folder).questions:
        if (picture := question.picture) is not None:
            if picture not in small:
                small[picture] = scale_picture(base64.b64decode(picture.partition(",")[2]), SIDE, question.key)
            pictures[question.key] = small[picture]
    return pictures
