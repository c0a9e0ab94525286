"""Questions of one's own from the spec to the report, with scripted replies."""

import json
from pathlib import Path

import pytest
import yaml

from medexam.experiments import RunFolder
from medexam.experiments.report.page.entries import outcome, read_answers
from medexam.experiments.store.stored_run import load_run

CSV = """question,A,B,C,D,label,topic
Which vitamin is ascorbic acid?,Retinol,Thiamine,Vitamin C,Vitamin D,C,nutrition
Which organ makes insulin?,Pancreas,Liver,Spleen,Kidney,A,anatomy
Which cell carries oxygen?,Platelet,Neutrophil,Lymphocyte,Erythrocyte,D,anatomy
Which is a virus?,Candida,Influenza,Giardia,Listeria,B,microbes
"""
COLUMNS = {"stem": "question", "options": ["A", "B", "C", "D"], "answer": "label", "subject": "topic"}


@pytest.fixture
def spec(tmp_path, runs_dir):
    """`spec(csv, dataset={...})`: writes a spec, its questions and its replies beside it."""

    def write(content=CSV, name="mine.csv", dataset=None, **changes):
        (tmp_path / name).write_text(content)
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 2}"}))
        document = {
            "name": "own",
            "dataset": {"kind": "choice", "path": str(tmp_path / name), "columns": COLUMNS, **(dataset or {})},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            **changes,
        }
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))
        return tmp_path / "spec.yaml"

    return write


def _run(medexam, *arguments, code=0):
    done, out, err = medexam("run", *arguments, "--json")
    assert done == code, err
    return json.loads(out)


def test_a_run_is_scored_by_subject_resumed_reported_and_compared(medexam, spec, tmp_path) -> None:
    (document,) = _run(medexam, spec())
    metrics = document["metrics"]
    assert (metrics["n"], metrics["right"], metrics["chance_accuracy"]) == (4, 1, 0.25)
    assert {name: group["right"] for name, group in metrics["by_discipline"].items()} == {
        "anatomy": 0,
        "microbes": 1,
        "nutrition": 0,
    }
    assert metrics["exam_score_interval"] is None
    assert metrics["exam_score_resampled"] == "none: too few questions"
    (again,) = _run(medexam, spec())
    assert again["run_id"] == document["run_id"]
    (longest,) = _run(medexam, spec(), "--set", "program.kind=longest")
    code, out, _ = medexam("compare", "runs", "--json")
    assert code == 0
    assert json.loads(out)["questions"] == 4
    code, out, _ = medexam("report", longest["run_dir"])
    assert code == 0
    assert "anatomy" in out
    assert "By subject" in out
    code, out, _ = medexam("compare", "runs", "--markdown", tmp_path / "compare.md")
    assert code == 0
    said = (tmp_path / "compare.md").read_text()
    assert ", by subject" in said
    assert "iscipline" not in said + out


def test_every_right_answer_is_shown_without_the_file(medexam, spec, tmp_path) -> None:
    (document,) = _run(medexam, spec(CSV.replace("Vitamin D,C,", 'Vitamin D,"B,C",')))
    (tmp_path / "mine.csv").unlink()
    (answers,) = read_answers([load_run(RunFolder(Path(document["run_dir"])))])
    assert answers.without_texts is not None
    found = sorted((asked.gold, *asked.others) for asked in answers.questions.values())
    assert found == [(1,), (2,), (2, 3), (4,)]
    outcomes = [outcome(asked, answers.predictions[key]) for key, asked in answers.questions.items()]
    assert sorted(outcomes) == ["r", "r", "w", "w"]
    code, *_ = medexam("report", "runs", "--html", "report.html")
    assert code == 0


def test_the_run_does_not_depend_on_the_path_the_name_or_the_format(medexam, spec) -> None:
    (first,) = _run(medexam, spec())
    rows = [dict(zip(CSV.splitlines()[0].split(","), line.split(","), strict=True)) for line in CSV.splitlines()[1:]]
    content = "".join(json.dumps(row) + "\n" for row in reversed(rows))
    (second,) = _run(medexam, spec(content, "elsewhere.jsonl"))
    assert first["run_id"] == second["run_id"]
    (third,) = _run(medexam, spec(CSV.replace("Which is a virus", "Which one is a virus")))
    assert third["run_id"] != first["run_id"]


def test_a_changed_gold_is_scored_anew_without_asking(medexam, spec) -> None:
    (first,) = _run(medexam, spec())
    (second,) = _run(medexam, spec(CSV.replace("Vitamin D,C,", "Vitamin D,B,")))
    assert (first["run_id"], second["metrics"]["right"]) == (second["run_id"], 2)


def test_bad_rows_stop_a_run_or_are_counted_in_its_report(medexam, spec) -> None:
    bad = f"{CSV}Which?,a,b,c,d,E,none\n"
    code, _, err = medexam("run", spec(bad))
    assert code == 2
    assert "1 of 5 rows is bad: row 5 (line 6), column label: is 'E', which names none of its 4 options" in err
    _run(medexam, spec(bad, dataset={"skip_bad": 0.2}))
    _, out, _ = medexam("report", "runs")
    assert "1 of 5 rows is left out: row 5 (line 6)" in " ".join(out.split())


def test_any_of_several_right_answers_scores_everywhere(medexam, spec) -> None:
    several = CSV.replace("Vitamin D,C,", 'Vitamin D,"B,C",')
    (document,) = _run(medexam, spec(several))
    metrics = document["metrics"]
    assert (metrics["right"], metrics["chance_accuracy"]) == (2, 5 / 16)
    _run(medexam, spec(several, program={"kind": "blind", "option": 3}))
    _, out, _ = medexam("compare", "runs", "--json")
    compared = json.loads(out)
    assert (compared["questions"], compared["interval"]["clusters"]) == (4, "questions")
    assert compared["pairs"][0]["both_right"] == 1, "options 2 and 3 are both right of the first question"
    assert medexam("report", "runs", "--html", "report.html")[0] == 0


def test_questions_without_exams_are_resampled_from_five_on(medexam, spec) -> None:
    (document,) = _run(medexam, spec(f"{CSV}Which is a mould?,Candida,Penicillium,Giardia,Listeria,B,microbes\n"))
    low, high = document["metrics"]["exam_score_interval"]
    assert low < document["metrics"]["exam_score"] < high
    assert "exam_score_resampled" not in document["metrics"]


def test_short_forms_of_a_spec(medexam, spec) -> None:
    own = spec()
    shipped = own.with_name("short.yaml")
    tree = {"name": "short", "dataset": "headqa_sample", "program": {"kind": "longest"}}
    shipped.write_text(yaml.safe_dump(tree))
    (document,) = _run(medexam, shipped, "--set", "dataset.years=2016", "--set", "dataset.option_counts=4")
    assert document["metrics"]["n"] == 24


SHORT = [
    {"question": "Which vitamin is ascorbic acid?", "answers": ["vitamin C", "C"], "subject": "nutrition"},
    {"question": "Which drug?", "answers": ["metformin"], "context": "She takes metformin.", "subject": "drugs"},
]
SPANS = [{"question": "Which drug?", "answers": ["metformin"], "context": "She takes metformin. He rests."}]


def _lines(rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _words(spec, form, rows, replies, **program):
    path = spec(_lines(rows), f"{form}.jsonl", dataset={"kind": form, "columns": {}}, program=program)
    path.with_name("replies.yaml").write_text(yaml.safe_dump(replies))
    return path


def test_short_answers_run_and_are_compared(medexam, spec) -> None:
    replies = {"ascorbic": "The vitamin C.", "*": "insulin"}
    path = _words(spec, "short_answer", SHORT, replies, kind="short_answer")
    (document,) = _run(medexam, path)
    metrics = document["metrics"]
    assert metrics["measures"]["exact_match"]["value"] == 0.5
    assert {group: found["f1"]["value"] for group, found in metrics["by_group"].items()} == {"nutrition": 1, "drugs": 0}
    path.with_name("replies.yaml").write_text(yaml.safe_dump({"She takes metformin": "metformin", "*": "D"}))
    _run(medexam, path)
    code, _, err = medexam("compare", "runs", "--json")
    assert code == 0, err
    assert medexam("report", "runs")[0] == medexam("plan", path)[0] == 0


def test_spans_are_quoted(medexam, spec) -> None:
    path = _words(spec, "spans", SPANS, {"*": "metformin"}, kind="quote")
    (document,) = _run(medexam, path)
    assert document["metrics"]["measures"]["exact_match"]["value"] == 1.0
    assert document["metrics"]["measures"]["quoted"]["value"] == 1.0


def test_a_program_that_cannot_answer_names_those_that_can(medexam, spec) -> None:
    code, _, err = medexam("run", _words(spec, "short_answer", SHORT, {}, kind="zero_shot"))
    assert (code, "set program.kind to short_answer" in err) == (2, True)
    code, _, err = medexam("run", spec(program={"kind": "short_answer"}))
    assert (code, "program short_answer does not answer choice" in err) == (2, True)


@pytest.mark.model
def test_the_example_is_asked_of_the_small_model(medexam, request, runs_dir) -> None:
    spec = request.config.rootpath / "examples" / "my_questions.yaml"
    asked, longest = _run(medexam, spec, "--limit", 6)
    assert (asked["metrics"]["n"], asked["metrics"]["unanswered"]) == (6, 0), "guided answers leave none unanswered"
    assert longest["metrics"]["n"] == 6
