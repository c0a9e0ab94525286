"""Tokens and splits of HEAD-QA v1 as its paper counts them."""

import pytest

from medexam.datasets import load_exam_set
from medexam.datasets.tokens import count_tokens
from medexam.experiments.report.dataset_statistics import compute_statistics
from medexam.specs import DatasetSpec

SPLITS = {
    "biology": (452, 226, 454),
    "nursing": (384, 230, 455),
    "pharmacology": (457, 225, 457),
    "medicine": (455, 231, 463),
    "psychology": (453, 226, 455),
    "chemistry": (456, 228, 458),
}
TOKENS = {
    "biology": (43, 11.11, 40, 5.08),
    "nursing": (187, 29.03, 94, 9.54),
    "pharmacology": (104, 18.18, 43, 6.70),
    "medicine": (308, 55.29, 85, 9.31),
    "psychology": (103, 21.91, 43, 7.98),
    "chemistry": (63, 15.82, 52, 7.62),
}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("Los linfocitos:", 3),
        ("¿Qué trastorno podría presentar? (DSM-5):", 10),
        ("dosis de 70mg/dl, p.ej.", 7),
        ("auto-inmune y 3,5 %", 6),
        ("la hepatitis A.  Otra", 5),
        ("HDL/LDL: 1/2.", 6),
        ("etc.", 1),
    ],
)
def test_tokens_by_hand(text, tokens) -> None:
    assert count_tokens(text) == tokens


def test_tables_2_and_3_of_the_paper(full_data) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_v1", language="es", as_published=True))
    found = compute_statistics(exams.questions, exams.golds, name=exams.name, language=exams.language)
    assert {name: tuple(counts.values()) for name, counts in found.by_split.items()} == SPLITS
    ours = {name: tuple(lengths.model_dump().values()) for name, lengths in found.tokens.items()}
    differences = [
        abs(round(mine, 2) - theirs) for name in TOKENS for mine, theirs in zip(ours[name], TOKENS[name], strict=True)
    ]
    assert sum(difference < 0.001 for difference in differences) == 21
    assert max(differences) < 0.011
