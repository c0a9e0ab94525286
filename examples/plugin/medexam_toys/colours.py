"""A data set: its entry in the catalogue, and the reader of its file, which lies in this package."""

import csv
from collections.abc import Sequence
from pathlib import Path

from medexam import Question
from medexam.datasets import Reading, Row
from medexam.questions import Language
from medexam.specs import DatasetInfo

COLOURS = DatasetInfo(
    name="colours",
    title="Colours of the body",
    form="choice",
    languages=("en",),
    questions=3,
    licence="CC0-1.0",
    citation="The authors of medexam. Colours of the body. 2026.",
    file_names={"en": ("colours.csv",)},
    folder=".",
    package=Path(__file__).parent,
    reader="medexam_toys.colours:read_colours",
)


def read_colours(files: Sequence[Path], language: Language, explained: bool) -> Reading:  # noqa: ARG001 - readers take all three
    """Read every line of the file: the question, its options with a bar between, and the number of the right one."""
    with files[0].open(encoding="utf-8", newline="") as stream:
        rows = [
            Row(Question.of(line["question"], line["options"].split("|"), key=f"colours/{number}"), int(line["right"]))
            for number, line in enumerate(csv.DictReader(stream), start=1)
        ]
    return Reading(source=files[0].name, version="1", rows=tuple(rows))
