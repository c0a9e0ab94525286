"""What is known of each data set without opening it: form, languages, published size, licence and where it is kept.

Those of this package stand in `catalogue.yaml`; an installed package adds one by an entry point of the group
`medexam.benchmarks` that names its `DatasetInfo`. `medexam.datasets.locating` knows the files on this machine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from pydantic import TypeAdapter

from medexam.errors import DatasetError
from medexam.plugins import added_names, load_added
from medexam.questions import Language, Scoring
from medexam.specs.base import BENCHMARKS, parse_yaml

Form = Literal["choice", "short_answer", "spans", "explanations", "formats", "examples"]
"""What questions ask for: numbered options, an answer in words, a part of a context, the part of an explanation that
argues for the right option, or one of several formats. `examples` are whatever a module of DSPy takes."""


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """One data set as its authors published it."""

    name: str
    title: str
    form: Form
    languages: tuple[Language, ...]
    questions: int
    """Published number of questions in each language."""
    licence: str
    citation: str
    file_names: Mapping[Language, tuple[str, ...]]
    """The file of each language, relative to the data set's folder; a name with `*` may match several parts."""
    reader: str = ""
    """`package.module:function` that reads its files: an `ExamReader` of `medexam.datasets.loading` for numbered
    options, else a `TaskReader`."""
    benchmark: str = ""
    """`package.module:Name` of the benchmark that scores it; empty: that of its form."""
    scoring: Scoring | None = None
    """How numbered options are scored where a wrong answer costs; None: they are right or wrong."""
    statistics: str = ""
    """`package.module:function` from a spec to what `medexam data stats` shows instead: a model with `tables()`."""
    package: Path | None = None
    """The folder of the package that adds it; `words/NAME.yaml` and `experiments/NAME.yaml` in it are used by name."""
    fields: frozenset[str] = frozenset()
    """The fields of a `DatasetSpec` that not every data set has and this one does."""
    terms: str = ""
    """What its authors ask of those who reuse it."""
    hub: str | None = None
    """The hub id that `medexam data fetch` reads; None if it cannot be fetched so."""
    may_miss_translations: bool = False
    """Whether its authors leave a question out of a language that it could not be translated to."""
    folder: str | None = None
    """Its folder in `$MEDEXAM_DATA`, or in the package if it ships; None: its name."""
    origin: str | None = None
    """Where its authors keep it, for a data set that is neither on the hub nor in the package."""
    notes: tuple[str, ...] = ()
    """What a reader of results on it should know."""
    splits: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Official split -> its years, where the files do not say the split; later exams belong to none."""
    read_together: Mapping[str, str] = field(default_factory=dict)
    """Ending of a located file -> the pattern, from its folder, of all files that are read with it."""
    keys: str = ""
    """What the keys of its questions begin with."""
    exam: str | None = None
    """The exam whose questions it asks without their options; None of every other data set."""

    @property
    def ships(self) -> bool:
        """Whether its files lie in a package."""
        return self.hub is None and self.origin is None


def _read_shipped() -> Iterator[DatasetInfo]:
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    for name, entry in parse_yaml(text, "catalogue.yaml")["data_sets"].items():
        if patterns := entry["file_names"].get("any"):
            languages = dict.fromkeys((*entry["languages"], *get_args(Language)))
            entry["file_names"] = {code: [pattern.format(code) for pattern in patterns] for code in languages}
        yield TypeAdapter(DatasetInfo).validate_python({"name": name, **entry})


_SHIPPED = {entry.name: entry for entry in _read_shipped()}


def _read_added() -> dict[str, DatasetInfo]:
    parts = load_added(BENCHMARKS)
    return {name: replace(part, name=name) for name, part in parts.items() if isinstance(part, DatasetInfo)}


class _Catalogue(Mapping[str, DatasetInfo]):
    """The data sets of this package, then those of installed ones, which are loaded when one is first looked up."""

    def __getitem__(self, name: str) -> DatasetInfo:
        if name not in {**_SHIPPED, **added_names(BENCHMARKS)}:
            raise KeyError(name)
        return _SHIPPED.get(name) or _read_added()[name]

    def __iter__(self) -> Iterator[str]:
        yield from {**_SHIPPED, **_read_added()}

    def __len__(self) -> int:
        return sum(1 for _ in self)


CATALOGUE: Mapping[str, DatasetInfo] = _Catalogue()
"""Every data set by the name that a spec calls it."""
SAMPLE = _SHIPPED["headqa_sample"]
"""The one that ships in the package."""
BUILT = _SHIPPED["headqa_v2"]
"""The one whose files have the form in which exams are built and translated here."""


def find_added(folder: str) -> dict[str, Path]:
    """Map name to file of what packages add in their `folder`: `words`, or `experiments`.

    A package with a data set has them beside it; another names its folder by an entry point of `medexam.experiments`.
    """
    folders = [info.package / folder for info in CATALOGUE.values() if info.package is not None]
    folders += load_added(f"medexam.{folder}").values()
    return {path.stem: path for place in folders for path in sorted(place.glob("*.yaml"))}


def find_entry(name: str) -> DatasetInfo:
    """Find the entry of `name`; raise `DatasetError` listing the names when there is none."""
    if name not in CATALOGUE:
        raise DatasetError(f"no data set is called {name!r}: the names are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def check_language(name: str, language: str) -> DatasetInfo:
    """Find the entry of `name`; raise `DatasetError` when it is not published in `language` or not known."""
    entry = find_entry(name)
    if language not in entry.languages:
        others = [other.name for other in CATALOGUE.values() if language in other.languages]
        elsewhere = f"; {language} is a language of {', '.join(others)}" if others else ""
        raise DatasetError(f"{name} is published in {', '.join(entry.languages)}, not in {language}{elsewhere}")
    return entry
