"""Sends each data set to the reader of its format.

It only finds and reads; whether the content is sound is for loading and checking to say.
"""

from pathlib import Path
from typing import cast

from medexam.datasets.casimedicos.documents import CaseLanguage
from medexam.datasets.casimedicos.exam import read_casimedicos_exam
from medexam.datasets.headqa_v1 import read_headqa_v1
from medexam.datasets.headqa_v2 import read_headqa_v2
from medexam.datasets.locating import locate_files
from medexam.datasets.rows import Reading
from medexam.errors import DatasetError
from medexam.questions import Language
from medexam.specs.dataset import TASKS


def read_rows(name: str, language: Language, path: Path | None = None, *, explained: bool = False) -> Reading:
    """Everything that the exam set `name` holds in `language`; raises `DatasetError` where its files are unreadable.

    `explained` puts the physician's explanation before each question of casimedicos.
    """
    if name in TASKS:
        raise DatasetError(
            f"{name} is no exam: its questions are answered in words; `medexam run` asks them, and nothing else here "
            f"reads them"
        )
    files = locate_files(name, language, path)
    if name == "headqa_v2":
        return read_headqa_v2(files, language)
    if name == "casimedicos":
        return read_casimedicos_exam(files[0], cast(CaseLanguage, language), explained=explained)
    return read_headqa_v1(files[0], language)
