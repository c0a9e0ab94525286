"""The figures of docs/study.md, computed anew from every answer of the study, with scipy and numpy alone."""

import csv
import re
from pathlib import Path

import pytest
from scipy.stats import binomtest

ROOT = Path(__file__).parents[1]
BASELINE = "zero_shot_guided en"
NAMES = {
    "few_shot-guided": "few_shot_guided en",
    "ensemble of three, vote": "ensemble3_vote en",
    "ensemble of three, mean probability": "ensemble3_mean_probability en",
    "likelihood-label, two orders": "likelihood_label_reversed en",
    "**zero_shot-guided** (baseline)": BASELINE,
    "likelihood-label": "likelihood_label en",
    "zero_shot-guided, 8 samples at 0.7": "zero_shot_guided_samples8 en",
    "retrieve_then_answer-guided (BM25, 2 passages)": "retrieve_then_answer_guided_bm25 en",
    "chain_of_thought-guided (128 tokens)": "chain_of_thought_guided en",
    "likelihood-option_text": "likelihood_option_text en",
    "longest option (no model)": "longest en",
    "zero_shot (free reply)": "zero_shot en",
    "random option (no model)": "random en",
    "*Spanish:* few_shot-guided": "few_shot_guided es",
    "*Spanish:* zero_shot-guided": "zero_shot_guided es",
}
"""A row of the page -> its column of answers."""


@pytest.fixture(scope="module")
def answers() -> list[dict[str, str]]:
    with (ROOT / "bench/results/study.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def table() -> dict[str, list[str]]:
    page = (ROOT / "docs/study.md").read_text(encoding="utf-8").partition("## Scores")[2].partition("Brackets hold")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in rows[1:]}


def right(answers: list[dict[str, str]], column: str) -> list[bool]:
    return [row[column] == row["gold"] for row in answers]


def mcnemar(answers: list[dict[str, str]], one: str, other: str) -> float:
    pairs = list(zip(right(answers, one), right(answers, other), strict=True))
    won, lost = (sum(pair == flip for pair in pairs) for flip in ((False, True), (True, False)))
    return float(binomtest(won, won + lost).pvalue)


def test_every_row_is_what_the_answers_give(answers, table) -> None:
    assert len(answers) == 1020
    assert list(table) == list(NAMES)
    base = sum(right(answers, BASELINE))
    for name, (accuracy, exam_score, unanswered, difference, _) in table.items():
        column = NAMES[name]
        hits, empty = sum(right(answers, column)), sum(row[column] == "" for row in answers)
        interval = binomtest(hits, 1020).proportion_ci(method="wilson")
        said = [float(figure) for figure in re.findall(r"[\d.]+", accuracy)]
        assert said == pytest.approx([100 * hits / 1020, 100 * interval.low, 100 * interval.high], abs=0.051)
        assert float(exam_score) == pytest.approx(100 * (hits - (1020 - hits - empty) / 3) / 1020, abs=0.051)
        assert float(unanswered) == pytest.approx(100 * empty / 1020, abs=0.051)
        if difference:
            assert float(difference.split()[0]) == pytest.approx(100 * (hits - base) / 1020, abs=0.051)


def test_the_tests_are_mcnemars_adjusted_by_holm(answers, table) -> None:
    compared = {name: cells[4] for name, cells in table.items() if cells[4]}
    raw = sorted((mcnemar(answers, BASELINE, NAMES[name]), name) for name in compared)
    adjusted = 0.0
    for place, (p, name) in enumerate(raw):
        adjusted = max(adjusted, min(1.0, p * (len(raw) - place)))
        if compared[name].startswith("<"):
            assert adjusted < float(compared[name][1:])
        else:
            assert float(compared[name]) == pytest.approx(adjusted, abs=0.0051)
    assert len(raw) == 12


def test_spanish_is_set_against_english(answers) -> None:
    page = (ROOT / "docs/study.md").read_text(encoding="utf-8")
    for program, said in (("zero_shot_guided", "p = 0.009"), ("few_shot_guided", "p = 0.002")):
        p = mcnemar(answers, f"{program} en", f"{program} es")
        assert f"p = {p:.3f}" == said
        assert said in page
