"""Which questions: the `dataset` part of a spec."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from medexam.questions import Discipline, Language
from medexam.specs.base import Spec

DatasetName = Literal["headqa_sample", "headqa_v1", "headqa_v2"]
Split = Literal["all", "train", "dev", "test"]


class DatasetSpec(Spec):
    """A data set in one language and the part of it that is asked."""

    name: DatasetName = "headqa_sample"
    """`headqa_sample` ships in the package; the others are read from disk or the hub."""
    language: Language = "en"
    path: Path | None = None
    """The file or folder to read; None looks in `$MEDEXAM_DATA`, then in what `medexam data fetch` brought."""
    split: Split = "all"
    """HEAD-QA's official splits: train 2013-2014, dev 2015, test 2016-2017."""
    years: tuple[int, ...] | None = None
    """None asks every year."""
    disciplines: tuple[Discipline, ...] | None = None
    """None asks every discipline."""
    option_counts: tuple[int, ...] | None = None
    """None asks questions with any number of options."""
    images: Literal["all", "with", "without"] = "all"
    """Whether questions that refer to a picture are asked; no program here sees the picture."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """At most this many questions, spread evenly over the exams; None asks all that are selected."""
    seed: int = 0
    """Chooses the questions that a `limit` keeps."""
