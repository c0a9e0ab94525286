"""The reader of each data set that ships, and the writer of those that are fetched from the hub.

The names are those of `medexam.specs.catalogue`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import cast

from medexam.datasets.casimedicos.documents import CaseLanguage
from medexam.datasets.casimedicos.exam import read_casimedicos_exam
from medexam.datasets.casimedicos.extraction import read_casimedicos_tasks
from medexam.datasets.casimedicos.statistics import compute_explanation_statistics
from medexam.datasets.cliniqlink import read_cliniqlink
from medexam.datasets.exam_table import write_hub_records
from medexam.datasets.explanations import ExplanationStatistics
from medexam.datasets.headqa_v1 import read_headqa_v1, write_headqa_v1
from medexam.datasets.headqa_v2 import read_headqa_v2
from medexam.datasets.locating import SHIPPED
from medexam.datasets.rows import Reading, Record, TaskReading
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


def _read_explained(files: Sequence[Path], language: Language, explained: bool) -> Reading:
    return read_casimedicos_exam(files[0], cast(CaseLanguage, language), explained=explained)


EXAM_READERS: Mapping[str, Callable[[Sequence[Path], Language, bool], Reading]] = MappingProxyType(
    {
        "headqa_sample": _read_sample,
        "headqa_study": _read_sample,
        "headqa_v1": _read_v1,
        "headqa_v2": _read_v2,
        "casimedicos": _read_explained,
    }
)
"""From the files of one language, and whether explanations stand before the questions, to everything they hold."""
TASK_READERS: Mapping[str, Callable[[Path, DatasetSpec], TaskReading]] = MappingProxyType(
    {"casimedicos_spans": read_casimedicos_tasks, "cliniqlink": read_cliniqlink}
)
"""From the first file and the spec to everything that a set of questions answered in words holds."""
EXPLANATION_STATISTICS: Mapping[str, Callable[[DatasetSpec], ExplanationStatistics]] = MappingProxyType(
    {"casimedicos_spans": compute_explanation_statistics}
)
"""From the spec of explained questions to what they hold, in numbers."""
WRITERS: Mapping[str, Callable[[Path, Sequence[Record], Language, str], None]] = MappingProxyType(
    {"headqa_v1": write_headqa_v1, "headqa_v2": write_hub_records}
)
"""From the hub's records of one language and their origin to a file that its reader takes; they raise `OSError`."""
