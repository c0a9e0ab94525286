"""Runs beside people, over the full data: whole exams only, points counted anew from the authors' file."""

import json
import os
from pathlib import Path

import pytest

import medexam

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
