"""How reliable the scores of options are, on questions of one's own."""

import json

CSV = """question,A,B,C,D,label
Which vitamin is ascorbic acid?,Retinol,Thiamine,Vitamin C,Vitamin D,C
Which organ makes insulin?,Liver,Pancreas,Spleen,Kidney,B
"""
COLUMNS = {"stem": "question", "options": ["A", "B", "C", "D"], "answer": "label"}
VOTING = {"kind": "zero_shot", "samples": 2}


def test_option_scores_of_ones_own_questions_are_measured_and_drawn(run, medexam, spec, tmp_path) -> None:
    (tmp_path / "mine.csv").write_text(CSV)
    dataset = {"kind": "choice", "path": str(tmp_path / "mine.csv"), "columns": COLUMNS}
    (document,) = run(spec("{Answer: 2}", name="own", dataset=dataset, program=VOTING), "--set", "model.temperature=1")
    scores = document["metrics"]["evidence"]["option_scores"]
    assert [part["accuracy"] for part in scores["reliability"] if part["n"]] == [0.5]
    code, out, err = medexam("report", document["run_dir"], "--plots", "pictures", "--json")
    assert code == 0, err
    drawn = {path.stem for path in (tmp_path / "pictures").iterdir()}
    assert "reliability" in drawn
    assert json.loads(out)
