"""CasiMedicos-Arg in the catalogue of data sets: as an exam, and as extraction."""

from pathlib import Path
from typing import Any

from medexam.questions import Scoring
from medexam.specs import BUILT, DatasetInfo

_ROOM = "medexam_companions.casimedicos"
_CITATION = (
    "Ekaterina Sviridova et al. CasiMedicos-Arg: A Medical Question Answering Dataset Annotated with Explanatory "
    "Argumentative Structures. EMNLP 2024, pages 18463-18475."
)
_FILES: dict[str, Any] = {
    "languages": ("en", "es", "fr", "it"),
    "licence": "CC-BY-4.0",
    "terms": BUILT.terms,
    "folder": "casimedicos",
    "keys": "casimedicos",
    "package": Path(__file__).parent,
    "read_together": {".tsv": "../*/*.tsv"},
    "origin": "github.com/ixa-ehu/antidote-casimedicos (casimedicos-arg.tar.gz)",
    "file_names": {
        language: ("casimedicos-arg.tar.gz", f"{folder}/train.tsv", f"casimedicos-arg/{folder}/train.tsv")
        for language, folder in (("en", "EN"), ("es", "ES"), ("fr", "FR"), ("it", "IT"))
    },
}
CASIMEDICOS = DatasetInfo(
    name="casimedicos",
    title="CasiMedicos-Arg, explained questions of the MIR exams",
    form="choice",
    reader=f"{_ROOM}.exam:read_casimedicos_exam",
    fields=frozenset({"years", "disciplines", "option_counts", "images", "alter", "explained"}),
    scoring=Scoring(),
    questions=553,
    citation=_CITATION,
    **_FILES,
)
CASIMEDICOS_SPANS = DatasetInfo(
    name="casimedicos_spans",
    title="CasiMedicos, extraction of the explanation of the right answer",
    form="explanations",
    benchmark=f"{_ROOM}.benchmark:Explanations",
    reader=f"{_ROOM}.extraction:read_casimedicos_tasks",
    statistics=f"{_ROOM}.statistics:compute_explanation_statistics",
    fields=frozenset({"variants"}),
    questions=2212,
    citation=(
        "Iakes Goenaga, Aitziber Atutxa, Koldo Gojenola, Maite Oronoz and Rodrigo Agerri. "
        f"Explanatory Argument Extraction of Correct Answers in Resident Medical Exams. 2023. {_CITATION}"
    ),
    **_FILES,
)
