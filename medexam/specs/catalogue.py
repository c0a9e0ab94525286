"""What is known of each data set without opening it: form, languages, published size, licence and where it is kept.

A data set is registered here, in `medexam.datasets.readers` and in `medexam.benchmarks.registry`. This knows nothing of
files on this machine; `medexam.datasets.locating` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from medexam.errors import DatasetError
from medexam.questions import Language

Form = Literal["choice", "short_answer", "spans", "explanations", "formats", "examples"]
"""What questions ask for: numbered options, an answer in words, a part of a context, the part of an explanation that
argues for the right option, or one of several formats. `examples` are whatever a module of DSPy takes."""

TERMS = (
    "The questions were written by the Spanish Ministry of Health (Ministerio de Sanidad, Consumo y Bienestar Social). "
    "Reuse must cite it as the source, give the date of the last update and not alter the sense of the content."
)


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One data set as its authors published it."""

    name: str
    title: str
    form: Form
    fields: frozenset[str]
    """The fields of a `DatasetSpec` that not every data set has and this one does."""
    languages: tuple[Language, ...]
    questions: int
    """Published number of questions in each language."""
    licence: str
    citation: str
    terms: str
    """What the Ministry of Health asks of those who reuse its exams."""
    file_names: Mapping[Language, tuple[str, ...]]
    """The file of each language, relative to the data set's folder; a name with `*` may match several parts."""
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
    words: str | None = None
    """The named set of words in which its authors ask it; None: programs ask it in words of their own."""
    keys: str = ""
    """What the keys of its questions begin with."""
    exam: str | None = None
    """The exam whose questions it asks without their options; None of every other data set."""


_EXAM = frozenset({"years", "disciplines", "option_counts", "images", "alter", "only"})
_HEADQA = _EXAM | {"as_published"}
_BY_YEAR: Mapping[str, frozenset[int]] = MappingProxyType(
    {"train": frozenset({2013, 2014}), "dev": frozenset({2015}), "test": frozenset({2016, 2017})}
)
_V1: dict[str, Any] = {
    "form": "choice",
    "fields": _HEADQA,
    "splits": _BY_YEAR,
    "keys": "headqa-v1",
    "languages": ("en", "es"),
    "licence": "MIT",
    "citation": (
        "David Vilares and Carlos Gómez-Rodríguez. HEAD-QA: A Healthcare Dataset for Complex Reasoning. "
        "ACL 2019, pages 960-966."
    ),
    "terms": f"{TERMS} Last update: January 14th, 2019.",
    "file_names": {"en": ("HEAD_EN.json", "HEAD_EN.json.gz"), "es": ("HEAD.json", "HEAD.json.gz")},
}
_V2_LANGUAGES: tuple[Language, ...] = ("en", "es", "it", "gl", "ru")
_CASIMEDICOS_LANGUAGES: tuple[Language, ...] = ("en", "es", "fr", "it")
_CASIMEDICOS_CITATION = (
    "Ekaterina Sviridova et al. CasiMedicos-Arg: A Medical Question Answering Dataset Annotated with Explanatory "
    "Argumentative Structures. EMNLP 2024, pages 18463-18475."
)
_CASIMEDICOS: dict[str, Any] = {
    "languages": _CASIMEDICOS_LANGUAGES,
    "licence": "CC-BY-4.0",
    "terms": TERMS,
    "folder": "casimedicos",
    "keys": "casimedicos",
    "read_together": MappingProxyType({".tsv": "../*/*.tsv"}),
    "origin": "github.com/ixa-ehu/antidote-casimedicos (casimedicos-arg.tar.gz)",
    "file_names": {
        language: (
            "casimedicos-arg.tar.gz",
            f"{language.upper()}/train.tsv",
            f"casimedicos-arg/{language.upper()}/train.tsv",
        )
        for language in _CASIMEDICOS_LANGUAGES
    },
}


def _open(entry: CatalogueEntry) -> CatalogueEntry:
    """Return the open setting of an exam: its stems without their options, answered in words."""
    is_shipped = entry.hub is None and entry.origin is None
    return replace(
        entry,
        name=f"{entry.name}_open",
        title=f"{entry.title}: stems alone, answered in words",
        form="short_answer",
        fields=entry.fields - {"alter"},
        folder=entry.folder or entry.name,
        hub=None,
        origin=None if is_shipped else f"the files of {entry.name} (medexam data fetch {entry.name})",
        exam=entry.name,
    )


_EXAMS = (
    CatalogueEntry(
        name="headqa_sample", title="HEAD-QA v1, four questions of each exam", questions=120, folder="sample", **_V1
    ),
    CatalogueEntry(
        name="headqa_study",
        title="HEAD-QA v1, the 34 questions of each exam that the study asks",
        questions=1020,
        folder="study",
        **_V1,
    ),
    CatalogueEntry(
        name="headqa_v1", title="HEAD-QA v1, exams of 2013-2017", questions=6765, hub="EleutherAI/headqa", **_V1
    ),
    CatalogueEntry(
        name="headqa_v2",
        title="HEAD-QA v2, exams of 2013-2022",
        form="choice",
        fields=_HEADQA,
        splits=_BY_YEAR,
        keys="headqa-v2",
        languages=_V2_LANGUAGES,
        questions=12751,
        licence="MIT",
        citation=(
            "Alexis Correa-Guillén, Carlos Gómez-Rodríguez and David Vilares. "
            "HEAD-QA v2: Expanding a Healthcare Benchmark for Reasoning. arXiv:2511.15355, 2025."
        ),
        terms=TERMS,
        hub="alesi12/head_qa_v2",
        file_names={
            language: (f"{language}.parquet", f"{language}.jsonl", f"{language}/*.parquet", f"{language}/*.jsonl")
            for language in _V2_LANGUAGES
        },
        may_miss_translations=True,
    ),
    CatalogueEntry(
        name="casimedicos",
        title="CasiMedicos-Arg, explained questions of the MIR exams",
        form="choice",
        fields=_EXAM | {"explained"},
        questions=553,
        citation=_CASIMEDICOS_CITATION,
        **_CASIMEDICOS,
    ),
)
_ENTRIES = (
    *_EXAMS,
    *(_open(entry) for entry in _EXAMS if entry.keys.startswith("headqa")),
    CatalogueEntry(
        name="casimedicos_spans",
        title="CasiMedicos, extraction of the explanation of the right answer",
        form="explanations",
        fields=frozenset({"variants"}),
        questions=2212,
        citation=(
            "Iakes Goenaga, Aitziber Atutxa, Koldo Gojenola, Maite Oronoz and Rodrigo Agerri. "
            f"Explanatory Argument Extraction of Correct Answers in Resident Medical Exams. 2023. "
            f"{_CASIMEDICOS_CITATION}"
        ),
        **_CASIMEDICOS,
    ),
    CatalogueEntry(
        name="cliniqlink",
        title="ClinIQLink 2025, sample of the seven formats",
        form="formats",
        fields=frozenset({"formats"}),
        languages=("en",),
        questions=35,
        licence="CC0-1.0",
        citation="ClinIQLink 2025 shared task, sample data set (Brandonio-c/ClinIQLink_Sample-dataset).",
        terms="The sample is strictly for format validation: no training, no fine-tuning, no demonstrations.",
        file_names={"en": ("TF.json", "*.json")},
        keys="cliniqlink",
        words="cliniqlink",
        read_together=MappingProxyType({".json": "*.json"}),
        origin="github.com/Brandonio-c/ClinIQLink_Sample-dataset (sample_QA_pairs)",
        notes=("the published sample of ClinIQLink is for checking formats only: its scores rank no model",),
    ),
)
CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Every data set by the name that a spec calls it."""
EXAMS = tuple(entry.name for entry in _ENTRIES if entry.form == "choice")
"""Those with numbered options, one of which is right; the others are answered in words."""
SAMPLE = CATALOGUE["headqa_sample"]
"""The one that ships in the package."""
STUDIED = CATALOGUE["headqa_study"]
"""The one of the study, which ships with the answers that `medexam demo` shows."""
SAMPLED = "headqa_v1"
"""The name of the one that the sample is of, and of an experiment that asks it whole."""
BUILT = CATALOGUE["headqa_v2"]
"""The one whose files have the form in which exams are built and translated here."""


def find_words(form: Form) -> str:
    """Find the words in which the authors of a data set of this form ask it."""
    return next(entry.words for entry in _ENTRIES if entry.form == form and entry.words is not None)


def find_entry(name: str) -> CatalogueEntry:
    """Find the entry of `name`; raise `DatasetError` listing the names when there is none."""
    if name not in CATALOGUE:
        raise DatasetError(f"no data set is called {name!r}: the names are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def check_language(name: str, language: str) -> CatalogueEntry:
    """Find the entry of `name`; raise `DatasetError` when it is not published in `language` or not known."""
    entry = find_entry(name)
    if language not in entry.languages:
        others = [other.name for other in CATALOGUE.values() if language in other.languages]
        elsewhere = f"; {language} is a language of {', '.join(others)}" if others else ""
        raise DatasetError(f"{name} is published in {', '.join(entry.languages)}, not in {language}{elsewhere}")
    return entry
