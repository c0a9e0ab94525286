"""`medexam demo`: the study's answers as runs, and sentences with the figures of the paired tests."""

import csv
import gzip
import json
import sys
import webbrowser
from pathlib import Path

import pytest

from medexam.cli import run_command
from medexam.datasets import load_exam_set, locate_files
from medexam.specs import DatasetSpec
from page_blocks import Page

ROOT = Path(__file__).parents[2]
STUDY = locate_files("headqa_study", "en")[0].parent
"""Questions and answers that ship with the package."""


def test_what_ships_is_the_study_and_less_than_a_megabyte() -> None:
    published = (ROOT / "bench/results/study.csv").read_bytes()
    assert gzip.decompress((STUDY / "answers.csv.gz").read_bytes()) == published
    assert sum(file.stat().st_size for file in STUDY.iterdir()) < 1_000_000
    rows = list(csv.DictReader(published.decode().splitlines()))
    for language in ("en", "es"):
        exams = load_exam_set(DatasetSpec(name="headqa_study", language=language))
        assert {question.key for question in exams.questions} == {row["question"] for row in rows}
        assert all(exams.golds[row["question"]].accepts(int(row["gold"])) for row in rows)


def test_the_command_shows_the_scores_of_the_page_about_the_study_and_sentences_of_the_tests(
    tmp_path, monkeypatch, capsys
) -> None:
    opened: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(sys, "argv", ["medexam", "demo", "--no-open"])
    with pytest.raises(SystemExit) as ended:
        run_command()
    printed = capsys.readouterr()
    assert not ended.value.code
    said = " ".join(printed.out.split())
    assert "Guided answers instead of free ones: the form of the replies decides: +15.0 [12.5, 17.5] points" in said
    assert "where both replies could be read (638 questions) -0.2 [-2.0, 1.7] (p = 1.000)." in said
    assert "Chain-of-thought: right 7 points less often (p = 0.002)." in printed.out
    assert "Demonstrations: no difference shown (+1.9 [-0.6, 4.4] points, p = 0.541)." in printed.out
    assert "Spanish instead of English: right 4 points less often (p = 0.009)." in printed.out
    page = (tmp_path / "demo/page.html").read_text(encoding="utf-8")
    assert "few_shot-guided en is first in accuracy; no difference from 5 of the 12 others is shown" in page
    assert "beside ensemble3-vote en: 43.6 % against 43.0 %, +0.6 [-1.2, 2.5] percentage points" in page
    assert "By their 95 % intervals 14 of 15 runs are above chance; random en is not shown to be." in page
    shown = Page(page)
    sentences = [text for text in shown.texts["p"] if text in said]
    assert len(sentences) >= 6, "the page opens on what the command says"
    assert shown.texts["p"].index(sentences[0]) == 2, "behind the version and what was asked"
    assert len(shown.data["index"]["runs"]) == 15
    assert "No prompts and replies are stored: what was chosen is shown." in shown.texts["p"]
    assert "<code>medexam run study</code> asks again and stores them, in some 2.5 hours" in page
    assert "The page with every question: demo/page.html" in printed.err
    assert opened == []
    monkeypatch.setattr(sys, "argv", ["medexam", "report", "demo", "--json"])
    with pytest.raises(SystemExit):
        run_command()
    runs = json.loads(capsys.readouterr().out)
    assert [run["metrics"]["n"] for run in runs] == [1020] * 15
    study = (ROOT / "docs/study.md").read_text(encoding="utf-8")
    assert all(f"{100 * run['metrics']['measures']['accuracy']['value']:.1f} [" in study for run in runs)
