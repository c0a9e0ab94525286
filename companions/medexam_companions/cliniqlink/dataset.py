"""ClinIQLink 2025 in the catalogue of data sets."""

from pathlib import Path

from medexam.specs import DatasetInfo

CLINIQLINK = DatasetInfo(
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
    read_together={".json": "*.json"},
    reader="medexam_companions.cliniqlink.reading:read_cliniqlink",
    benchmark="medexam_companions.cliniqlink.benchmark:ClinIQLink",
    package=Path(__file__).parent,
    origin="github.com/Brandonio-c/ClinIQLink_Sample-dataset (sample_QA_pairs)",
    notes=("the published sample of ClinIQLink is for checking formats only: its scores rank no model",),
)
