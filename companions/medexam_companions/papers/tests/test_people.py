"""Runs beside people, over the full data: whole exams only, points counted anew from the authors' file."""

import json
import os
import sys
from pathlib import Path

import pytest

import medexam
from small_exams import exam_files, make_run

__all__ = ["exam_files", "make_run"]

ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
FULL_DATA = os.environ.get("MEDEXAM_DATA")


@pytest.mark.data
@pytest.mark.skipif(not FULL_DATA, reason="MEDEXAM_DATA names no folder with the full data sets")
def test_a_whole_exam_stands_beside_people_with_points_counted_anew(tmp_path) -> None:
    dataset = {"name": "headqa_v1", "language": "es", "years": [2016], "disciplines": ["medicine"]}
    spec = {"name": "controls", "dataset": dataset, "program": "longest"}
    (run,) = medexam.run(spec, runs_dir=tmp_path / "runs", track=False, progress=False)
    exams = json.loads(Path(FULL_DATA, "headqa_v1", "HEAD.json").read_text(encoding="utf-8"))["exams"]
    points = 0
    for question in exams["Cuaderno_2016_1_M"]["data"]:
        longest = max(question["answers"], key=lambda answer: len(answer["atext"]))["aid"]
        points += 3 if longest == int(question["ra"]) else -1
    (document,) = json.loads(json.dumps(medexam.report(run).document()))
    (row,) = document["against_people"]
    assert (row["discipline"], row["year"], row["n"], row["points"]) == ("medicine", 2016, 232, points)
    # Vilares and Gómez-Rodríguez 2019 give the ten best; the Ministry's pass mark is 35 % of them.
    assert row["ten_best"] == 592.2
    assert row["pass_mark"] == pytest.approx(0.35 * 592.2)
    assert row["margin"] == pytest.approx(points - 0.35 * 592.2)
    assert row["passed"] is (points >= 0.35 * 592.2)


def test_only_exams_that_were_asked_and_scored_whole_stand_beside_people(make_run) -> None:
    def exams(**dataset) -> list[tuple[int, float]]:
        (document,) = medexam.report(make_run(ZERO_SHOT, dataset.pop("letters", "rrw"), **dataset)).document()
        return [(row["year"], row["points"]) for row in document.get("against_people", [])]

    assert exams() == [(2013, 7.0), (2015, 11.0)]
    assert exams(letters="rrrrrrrrrrrrrrrrrrrf") == [(2013, 15.0)]
    assert exams(letters="rrrrrrrrrrrmrrrrrrrr") == [(2015, 15.0)]
    assert exams(years=[2015]) == [(2015, 7.0)]
    assert exams(limit=19) != exams(limit=20)
    assert exams(disciplines=["biology"]) == []


def test_a_run_passes_with_the_points_of_the_pass_mark(make_run, monkeypatch, tmp_path) -> None:
    answers = [{"aid": number, "atext": "x" * number} for number in range(1, 5)]
    data = [{"qid": str(n), "qtext": f"Which, {n}?", "ra": "1", "image": None, "answers": answers} for n in range(70)]
    exam = {"name": "Cuaderno_2013_1_M", "year": "2013", "category": "medicine", "data": data}
    files = tmp_path / "long"
    files.mkdir()
    document = {"version": "1.0", "language": "en", "exams": {exam["name"]: exam}}
    (files / "HEAD_EN.json").write_text(json.dumps(document))
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # drawing takes longer than all else
    runs = [make_run(ZERO_SHOT, "r" * 67 + "w" * 3, path=files), make_run(GUIDED, "r", path=files)]
    report = medexam.report(*runs, html=tmp_path / "page.html")
    found = [row for run in report.document() for row in run["against_people"]]
    # The ten best had 568.1 points; 35 % of them pass.
    margins = [198 - 0.35 * 568.1, 210 - 0.35 * 568.1]
    assert [(row["margin"], row["passed"]) for row in found] == [
        (pytest.approx(margins[0], abs=1e-4), False),
        (pytest.approx(margins[1], abs=1e-4), True),
    ]
    assert (
        "1 of 2 whole exams are passed; the widest margin is that of zero_shot-guided in medicine 2013, 11.2"
        in (tmp_path / "page.html").read_text()
    )
