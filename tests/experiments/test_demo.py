"""`medexam demo`: the study's answers as runs, and sentences with the figures of the paired tests."""

import csv
import gzip
import json
from pathlib import Path

from command_line import medexam  # noqa: F401 - a fixture
from medexam.datasets import load_exam_set, locate_files
from medexam.specs import DatasetSpec
from page_blocks import Page

ROOT = Path(__file__).parents[2]
STUDY = locate_files("headqa_study", "en")[0].parent
"""Questions and answers that ship with the package."""


def test_what_ships_is_the_study_and_less_than_a_megabyte() -> None:
    assert sum(file.stat().st_size for file in STUDY.iterdir()) < 1_000_000
    rows = list(csv.DictReader((ROOT / "bench/results/study.csv").read_text(encoding="utf-8").splitlines()))
    stored = map(json.loads, gzip.decompress((STUDY / "predictions.jsonl.gz").read_bytes()).splitlines())
    chosen = [(each["program"], each["question"], str(each.get("answer", ""))) for each in stored]
    assert chosen == [(name, row["question"], row[name]) for name in [*rows[0]][2:] for row in rows]
    for language in ("en", "es"):
        exams = load_exam_set(DatasetSpec(name="headqa_study", language=language))
        assert {question.key for question in exams.questions} == {row["question"] for row in rows}
        assert all(exams.golds[row["question"]].accepts(int(row["gold"])) for row in rows)


def test_the_command_shows_the_scores_of_the_page_about_the_study_and_sentences_of_the_tests(
    medexam,  # noqa: F811
    tmp_path,
) -> None:
    code, out, errors = medexam("demo", "--no-open")
    said, page = " ".join(out.split()), (tmp_path / "demo/page.html").read_text(encoding="utf-8")
    assert (code, "The page with every question: demo/page.html" in errors) == (0, True)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert said[said.index("Guided answers") : said.index(" The best way")] in readme
    assert "few_shot-guided en is first in accuracy; no difference from 5 of the 12 others is shown" in page
    assert "beside ensemble3-vote en: 43.6 % against 43.0 %, +0.6 [-1.2, 2.5] percentage points" in page
    assert "By their 95 % intervals 14 of 15 runs are above chance; random en is not shown to be." in page
    shown = Page(page)
    sentences = [text for text in shown.texts["p"] if text in said]
    # The page opens on what the command says, behind the version and what was asked.
    assert len(sentences) >= 6
    assert shown.texts["p"].index(sentences[0]) == 2
    asked = "You are an expert in specialized scientific and health disciplines."
    assert any(asked in turn for turn in map(str, shown.data["turns"]))  # prompts of the free replies
    runs = json.loads(medexam("report", "demo", "--json")[1])
    assert [run["metrics"]["n"] for run in runs] == [1020] * 15
    study = (ROOT / "docs/study.md").read_text(encoding="utf-8")
    assert all(f"{100 * run['metrics']['measures']['accuracy']['value']:.1f} [" in study for run in runs)
