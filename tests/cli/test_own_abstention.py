"""Leaving blank on questions of one's own: an exam score is shown only where the data set declares one."""

import json

import pytest

CSV = """question,A,B,C,D,label
Which vitamin is ascorbic acid?,Retinol,Thiamine,Vitamin C,Vitamin D,C
Which organ makes insulin?,Liver,Pancreas,Spleen,Kidney,B
"""
COLUMNS = {"stem": "question", "options": ["A", "B", "C", "D"], "answer": "label"}
VOTING = {"kind": "zero_shot", "samples": 2}


@pytest.mark.parametrize("scoring", [None, {"penalty": 0.5}])
def test_abstention_has_an_exam_score_only_where_one_is_declared(run, medexam, spec, tmp_path, scoring) -> None:
    (tmp_path / "mine.csv").write_text(CSV)
    declared = {} if scoring is None else {"scoring": scoring}
    dataset = {"kind": "choice", "path": str(tmp_path / "mine.csv"), "columns": COLUMNS, **declared}
    (document,) = run(spec("{Answer: 2}", name="own", dataset=dataset, program=VOTING), "--set", "model.temperature=1")
    scores = document["metrics"]["evidence"]["option_scores"]
    assert (scores["abstention"][0]["right"], scores["abstention"][0]["wrong"]) == (1, 1)
    assert scores["abstention"][0].get("exam_score") == (None if scoring is None else 0.25)
    assert scores["best_threshold"] == (None if scoring is None else 0.0)
    code, out, err = medexam("report", document["run_dir"], "--plots", "pictures", "--json")
    assert code == 0, err
    drawn = {path.stem for path in (tmp_path / "pictures").iterdir()}
    assert "reliability" in drawn
    assert json.loads(out)
