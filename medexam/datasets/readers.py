"""The reader of each data set that ships, and the writer of those that are fetched from the hub.

The names are those of `medexam.specs.catalogue`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from medexam.datasets.exam_table import write_hub_records
from medexam.datasets.explanations import ExplanationStatistics
from medexam.datasets.headqa_v1 import read_headqa_v1, write_headqa_v1
from medexam.datasets.headqa_v2 import read_headqa_v2
from medexam.datasets.locating import SHIPPED
from medexam.datasets.rows import Reading, Record, TaskReading
from medexam.plugins import load_object
from medexam.questions import Language
from medexam.specs import DatasetSpec


def _read_v1(files: Sequence[Path], language: Language, _: bool) -> Reading:
    return read_headqa_v1(files[0], language)


def _read_sample(files: Sequence[Path], language: Language, _: bool) -> Reading:
    shipped = files[0].parent.parent == SHIPPED
    return _read_shipped(files[0], language) if shipped else read_headqa_v1(files[0], language)


@lru_cache(maxsize=4)
def _read_shipped(path: Path, language: Language) -> Reading:
    # What ships stays as it is while the process runs.
    return read_headqa_v1(path, language)


def _read_v2(files: Sequence[Path], language: Language, _: bool) -> Reading:
    return read_headqa_v2(files, language)


ExamReader = Callable[[Sequence[Path], Language, bool], Reading]
"""From the files of one language, and whether explanations stand before the questions, to everything they hold."""
TaskReader = Callable[[Path, DatasetSpec], TaskReading]
"""From the first file and the spec to everything that a set of questions answered in words holds."""
READERS = "medexam.readers"
"""The group in which companions register readers by their data sets."""
EXPLANATIONS = "medexam.explanations"
"""The group of what counts the explanations of a data set."""
_EXAM_READERS: Mapping[str, ExamReader] = MappingProxyType(
    {"headqa_sample": _read_sample, "headqa_study": _read_sample, "headqa_v1": _read_v1, "headqa_v2": _read_v2}
)
WRITERS: Mapping[str, Callable[[Path, Sequence[Record], Language, str], None]] = MappingProxyType(
    {"headqa_v1": write_headqa_v1, "headqa_v2": write_hub_records}
)
"""From the hub's records of one language and their origin to a file that its reader takes; they raise `OSError`."""


def find_exam_reader(name: str) -> ExamReader:
    """Find the reader of an exam set that ships with the core or a companion."""
    reader: ExamReader = _EXAM_READERS.get(name) or load_object(name, READERS)
    return reader


def find_task_reader(name: str) -> TaskReader:
    """Find the reader of a set of questions answered in words, which a companion registers."""
    reader: TaskReader = load_object(name, READERS)
    return reader


def count_explanations(spec: DatasetSpec) -> ExplanationStatistics:
    """Count what the explained questions that `spec` selects hold."""
    statistics: ExplanationStatistics = load_object(spec.name, EXPLANATIONS)(spec)
    return statistics
