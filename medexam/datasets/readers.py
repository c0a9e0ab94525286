"""The reader of each data set, which its entry in the catalogue names, and the writer of those fetched from the hub."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from medexam.datasets.exam_table import write_hub_records
from medexam.datasets.headqa_v1 import read_headqa_v1, write_headqa_v1
from medexam.datasets.headqa_v2 import read_headqa_v2
from medexam.datasets.locating import SHIPPED
from medexam.datasets.rows import Reading, Record, TaskReading
from medexam.plugins import load_object
from medexam.questions import Language
from medexam.specs import DatasetSpec
from medexam.specs.catalogue import find_entry
from medexam.specs.names import BENCHMARKS


def read_v1(files: Sequence[Path], language: Language, _: bool) -> Reading:
    """Read a file of HEAD-QA v1; one that ships is read once."""
    shipped = files[0].parent.parent == SHIPPED
    return (_read_shipped if shipped else read_headqa_v1)(files[0], language)


@lru_cache(maxsize=4)
def _read_shipped(path: Path, language: Language) -> Reading:
    # What ships stays as it is while the process runs.
    return read_headqa_v1(path, language)


def read_v2(files: Sequence[Path], language: Language, _: bool) -> Reading:
    """Read the files of HEAD-QA v2."""
    return read_headqa_v2(files, language)


ExamReader = Callable[[Sequence[Path], Language, bool], Reading]
"""From the files of one language, and whether explanations stand before the questions, to everything they hold."""
TaskReader = Callable[[Path, DatasetSpec], TaskReading]
"""From the first file and the spec to everything that a set of questions answered in words holds."""
WRITERS: Mapping[str, Callable[[Path, Sequence[Record], Language, str], None]] = MappingProxyType(
    {"headqa_v1": write_headqa_v1, "headqa_v2": write_hub_records}
)
"""From the hub's records of one language and their origin to a file that its reader takes; they raise `OSError`."""


def find_exam_reader(name: str) -> ExamReader:
    """Find the reader of a data set of numbered options."""
    reader: ExamReader = load_object(find_entry(name).reader, BENCHMARKS)
    return reader


def find_task_reader(name: str) -> TaskReader:
    """Find the reader of a data set of questions answered in words."""
    reader: TaskReader = load_object(find_entry(name).reader, BENCHMARKS)
    return reader
