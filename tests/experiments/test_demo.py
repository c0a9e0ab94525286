"""`medexam demo`: the study's answers as runs, and sentences with the figures of the paired tests."""

import csv
import gzip
import json
import sys
import webbrowser
from pathlib import Path

import pytest

from medexam.cli import run_command
from medexam.datasets import SAMPLE_FOLDER, load_exam_set
from medexam.specs import DatasetSpec

ROOT = Path(__file__).parents[2]
STUDY = SAMPLE_FOLDER.parent / "study"
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
    assert "Guided answers instead of free ones: right 15 points more often (p < 0.001)." in printed.out
    assert "Chain-of-thought: right 7 points less often (p = 0.002)." in printed.out
    assert "Demonstrations: no difference shown (+1.9 points, p = 0.541)." in printed.out
    assert "Spanish instead of English: right 4 points less often (p = 0.009)." in printed.out
    page = (tmp_path / "demo/page.html").read_text(encoding="utf-8")
    assert "few_shot-guided has the most right answers, 43.6 %; no difference from 5 of the 12 others is shown" in page
    assert "By their 95 % intervals 12 of 13 runs are above chance; random is not shown to be." in page
    assert "The page with every question: demo/page.html" in printed.err
    assert opened == []
    monkeypatch.setattr(sys, "argv", ["medexam", "report", "demo", "--json"])
    with pytest.raises(SystemExit):
        run_command()
    runs = json.loads(capsys.readouterr().out)
    assert [run["metrics"]["n"] for run in runs] == [1020] * 15
    study = (ROOT / "docs/study.md").read_text(encoding="utf-8")
    assert all(f"{100 * run['metrics']['accuracy']:.1f} [" in study for run in runs)
