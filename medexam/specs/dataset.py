"""Which questions: the `dataset` part of a spec."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from medexam.questions import Discipline, Language
from medexam.specs.base import Spec

ExamName = Literal["headqa_sample", "headqa_v1", "headqa_v2", "casimedicos"]
"""Questions with numbered options, one of which is right."""
TaskName = Literal["casimedicos_spans", "cliniqlink"]
"""Questions that are answered in words."""
DatasetName = ExamName | TaskName
TASKS = frozenset(get_args(TaskName))
Variant = Literal["CQ#E", "CQP#E", "Q#CE", "QP#CE"]
Format = Literal["true_false", "multiple_choice", "list", "short", "short_inverse", "multi_hop", "multi_hop_inverse"]
Split = Literal["all", "train", "dev", "test"]
_EXAMS = get_args(ExamName)
_BELONGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "years": _EXAMS,
        "disciplines": _EXAMS,
        "option_counts": _EXAMS,
        "images": _EXAMS,
        "explained": ("casimedicos",),
        "variants": ("casimedicos_spans",),
        "formats": ("cliniqlink",),
    }
)
"""Field -> the data sets that have what it speaks of; the other fields belong to all."""


class DatasetSpec(Spec):
    """A data set in one language and the part of it that is asked."""

    name: DatasetName = "headqa_sample"
    """`headqa_sample` ships in the package; the others are read from disk or the hub."""
    language: Language = "en"
    path: Path | None = None
    """The file or folder to read; None looks in `$MEDEXAM_DATA`, then in what `medexam data fetch` brought."""
    split: Split = "all"
    """The authors' own; HEAD-QA's by year: train 2013-2014, dev 2015, test 2016-2017."""
    years: tuple[int, ...] | None = None
    """None asks every year."""
    disciplines: tuple[Discipline, ...] | None = None
    """None asks every discipline."""
    option_counts: tuple[int, ...] | None = None
    """None asks questions with any number of options."""
    images: Literal["all", "with", "without"] = "all"
    """Whether questions that refer to a picture are asked; no program here sees the picture."""
    explained: bool = False
    """casimedicos: whether the physician's explanation stands before the question."""
    variants: tuple[Variant, ...] | None = None
    """casimedicos_spans: what question and context hold, told apart by `#`: Case, Question, Possible answers,
    Explanation. None poses each question in all four."""
    formats: tuple[Format, ...] | None = None
    """cliniqlink: None asks all seven."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """At most this many questions, spread evenly over the exams, formats or variants; None asks all that are
    selected."""
    seed: int = 0
    """Chooses the questions that a `limit` keeps."""

    @model_validator(mode="after")
    def _settings_belong(self) -> Self:
        for field, names in _BELONGS.items():
            if self.name not in names and getattr(self, field) != type(self).model_fields[field].default:
                raise ValueError(f"{field} belongs to {', '.join(names)}, not to {self.name}: leave it out")
        return self

    @property
    def whole(self) -> "DatasetSpec":
        """Everything that this data set holds, in the same form, whatever is selected here."""
        return DatasetSpec(name=self.name, language=self.language, path=self.path, explained=self.explained)

    @property
    def label(self) -> str:
        """Name, language and what changes a question, for tables."""
        return " ".join([self.name, self.language, *self.form])

    @property
    def form(self) -> dict[str, Any]:
        """What changes a question beside the files that it is read from; empty where nothing does."""
        return {"explained": True} if self.explained else {}
