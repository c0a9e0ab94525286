"""Questions of one's own from the spec to the report, with scripted replies."""

import json

import pytest

CSV = """question,A,B,C,D,label,topic
Which vitamin is ascorbic acid?,Retinol,Thiamine,Vitamin C,Vitamin D,C,nutrition
Which organ makes insulin?,Pancreas,Liver,Spleen,Kidney,A,anatomy
Which cell carries oxygen?,Platelet,Neutrophil,Lymphocyte,Erythrocyte,D,anatomy
Which is a virus?,Candida,Influenza,Giardia,Listeria,B,microbes
"""
SEVERAL = CSV.replace("Vitamin D,C,", 'Vitamin D,"B,C",')
COLUMNS = {"stem": "question", "options": ["A", "B", "C", "D"], "answer": "label", "subject": "topic"}


@pytest.fixture
def own(spec, tmp_path):
    """`own(csv, dataset={...})` writes a spec, its questions and replies that all say 2."""

    def write(content=CSV, name="mine.csv", dataset=None, replies="{Answer: 2}", **changes):
        (tmp_path / name).write_text(content)
        read = {"kind": "choice", "path": str(tmp_path / name), "columns": COLUMNS, **(dataset or {})}
        return spec(replies, name="own", dataset=read, **changes)

    return write


def test_a_run_is_scored_by_subject_reported_and_compared(run, medexam, own, tmp_path) -> None:
    (document,) = run(own())
    metrics = document["metrics"]
    assert (metrics["n"], metrics["right"], metrics["measures"]["accuracy"]["chance"]) == (4, 1, 0.25)
    by_subject = {name: group["right"] for name, group in metrics["by"]["discipline"].items()}
    assert by_subject == {"anatomy": 0, "microbes": 1, "nutrition": 0}
    assert list(metrics["measures"]) == ["accuracy", "unanswered_ratio"]
    assert run(own())[0]["run_id"] == document["run_id"]
    (longest,) = run(own(), "--set", "program.kind=longest")
    _, out, _ = medexam("compare", "runs", "--markdown", "compare.md", "--json")
    assert json.loads(out)["questions"] == 4
    assert ", by subject" in (tmp_path / "compare.md").read_text()
    _, out, _ = medexam("report", longest["run_dir"])
    assert "By subject" in out
    assert "anatomy" in out
    assert "iscipline" not in (tmp_path / "compare.md").read_text() + out


def test_any_of_several_right_answers_scores_everywhere(run, medexam, own, tmp_path) -> None:
    (document,) = run(own(SEVERAL))
    metrics = document["metrics"]
    assert (metrics["right"], metrics["measures"]["accuracy"]["chance"]) == (2, 5 / 16)
    run(own(SEVERAL, program={"kind": "blind", "option": 3}))
    compared = json.loads(medexam("compare", "runs", "--json")[1])
    assert (compared["questions"], compared["interval"]["clusters"]) == (4, "questions")
    assert compared["pairs"][0]["measures"]["accuracy"]["flips"]["both_right"] == 1, (
        "options 2 and 3 are both right of the first question"
    )
    (tmp_path / "mine.csv").unlink()
    code, out, _ = medexam("report", document["run_dir"], "--json", "--html", "report.html")
    assert (code, json.loads(out)[0]["metrics"]["right"]) == (0, 2), "also without the file"


def test_bad_rows_stop_a_run_or_are_counted_in_its_report(run, medexam, refused, own) -> None:
    bad = f"{CSV}Which?,a,b,c,d,E,none\n"
    line = refused("run", own(bad))
    assert "1 of 5 rows is bad: row 5 (line 6), column label: is 'E', which names none of its 4 options" in line
    assert run(own(bad, dataset={"skip_bad": 0.2}))[0]["metrics"]["n"] == 4
    assert "1 of 5 rows is left out: row 5 (line 6)" in " ".join(medexam("report", "runs")[1].split())


def test_questions_without_exams_are_resampled_from_five_on(run, own) -> None:
    scoring = {"scoring": {"penalty": "1/3"}}
    mould = "Which is a mould?,Candida,Penicillium,Giardia,Listeria,B,microbes\n"
    few, enough = (run(own(text, dataset=scoring))[0]["metrics"]["measures"] for text in (CSV, f"{CSV}{mould}"))
    assert (few["exam_score"]["interval"], few["exam_score"]["resampled"]) == (None, "none: too few questions")
    low, high = enough["exam_score"]["interval"]
    assert low < enough["exam_score"]["value"] < high
    assert enough["exam_score"]["resampled"] == "clusters"


SHORT = [
    {"question": "Which vitamin is ascorbic acid?", "answers": ["vitamin C", "C"], "subject": "nutrition"},
    {"question": "Which drug?", "answers": ["metformin"], "context": "She takes metformin.", "subject": "drugs"},
]
SPANS = [{"question": "Which drug?", "answers": ["metformin"], "context": "She takes metformin. He rests."}]


@pytest.fixture
def words(own):
    """`words(kind, rows, replies, program)` writes a spec of questions that are answered in words."""

    def write(kind, rows, replies, program):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        dataset = {"kind": kind, "columns": {}}
        return own(lines, f"{kind}.jsonl", dataset=dataset, replies=replies, program={"kind": program})

    return write


def test_short_answers_and_spans_are_scored_and_compared(run, medexam, words) -> None:
    (document,) = run(words("short_answer", SHORT, {"ascorbic": "The vitamin C.", "*": "insulin"}, "short_answer"))
    metrics = document["metrics"]
    assert metrics["measures"]["exact_match"]["value"] == 0.5
    assert {group: found["measures"]["f1"]["value"] for group, found in metrics["by"]["group"].items()} == {
        "nutrition": 1,
        "drugs": 0,
    }
    path = words("short_answer", SHORT, {"She takes metformin": "metformin", "*": "D"}, "short_answer")
    (other,) = run(path)
    code, out, err = medexam("compare", "runs", "--json")
    assert (code, len(json.loads(out)["pairs"])) == (0, 1), err
    assert other["metrics"]["measures"]["exact_match"]["value"] == 0.5
    (quoted,) = run(words("spans", SPANS, {"*": "metformin"}, "quote"))
    measures = quoted["metrics"]["measures"]
    assert (measures["exact_match"]["value"], measures["quoted"]["value"]) == (1.0, 1.0)
