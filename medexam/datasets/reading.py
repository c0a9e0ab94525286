"""Sends each data set to the reader of its format.

It only finds and reads; whether the content is sound is for loading and checking to say.
"""

from pathlib import Path

from medexam.datasets.headqa_v1 import read_headqa_v1
from medexam.datasets.headqa_v2 import read_headqa_v2
from medexam.datasets.locating import locate_files
from medexam.datasets.rows import Reading
from medexam.questions import Language


def read_rows(name: str, language: Language, path: Path | None = None) -> Reading:
    """Everything that `name` holds in `language`; raises `DatasetError` when its files are missing or unreadable."""
    files = locate_files(name, language, path)
    if name == "headqa_v2":
        return read_headqa_v2(files, language)
    return read_headqa_v1(files[0], language)
