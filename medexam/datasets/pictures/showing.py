"""Questions with the pictures that they refer to, and what tells these pictures from others.

The fingerprint covers the pictures' own bytes, of the whole source as that of the words does, and not what is made of
them: the same pictures have the same fingerprint whichever version of a library scales them.
"""

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from medexam.datasets.pictures.originals import FOLDER, read_originals
from medexam.datasets.pictures.scaling import RULE, scale_picture
from medexam.errors import DatasetError
from medexam.questions import ExamSet, Question
from medexam.specs import DatasetSpec
from medexam.text import count_of

_SHOWN = 3
"""Missing pictures that a message names."""


def show_pictures(
    exams: ExamSet, spec: DatasetSpec, longest_side: int, keys: Collection[str] | None = None
) -> tuple[ExamSet, dict[str, Any]]:
    """Give each selected question its picture; also return what a run's identity says of the pictures.

    `keys` are those of the questions that get their pictures; None: all that are selected. Raises `DatasetError` if no
    question of the source refers to a picture, if one that is needed is missing or not whole, or if a name leads out of
    the folder of the data.
    """
    needed_keys = {question.key for question in exams.questions} if keys is None else set(keys)
    digests: list[list[str | None]] = []
    picture_by_key: dict[str, str] = {}
    scaled: dict[str, str] = {}
    missing: list[Question] = []
    for question, content in read_originals(spec):
        digest = None if content is None else hashlib.sha256(content).hexdigest()
        digests.append([question.key, digest])
        if question.key not in needed_keys:
            continue
        if content is None or digest is None:
            missing.append(question)
            continue
        if digest not in scaled:
            scaled[digest] = scale_picture(content, longest_side, f"{question.image} of {question.key}")
        picture_by_key[question.key] = scaled[digest]
    if not digests:
        raise DatasetError(f"{exams.source}: no question refers to a picture: set program.images to hidden")
    if missing:
        raise _missing(missing, exams)
    questions = tuple(
        question.model_copy(update={"picture": picture_by_key[question.key]})
        if question.key in picture_by_key
        else question
        for question in exams.questions
    )
    listing = json.dumps(sorted(digests, key=str)).encode()
    identity = {"fingerprint": hashlib.sha256(listing).hexdigest(), "longest_side": longest_side, "rule": RULE}
    return replace(exams, questions=questions), identity


def _missing(questions: list[Question], exams: ExamSet) -> DatasetError:
    names = ", ".join(f"{question.image} of {question.key}" for question in questions[:_SHOWN])
    remainder = f" and {len(questions) - _SHOWN} more" if len(questions) > _SHOWN else ""
    return DatasetError(
        f"{exams.source}: missing {count_of(len(questions), 'picture')}: {names}{remainder}: put them beside the data, "
        f"under their names or in a folder {FOLDER}, or fetch them with `medexam data fetch NAME --images`; "
        "or set program.images to hidden, or dataset.images to without"
    )
