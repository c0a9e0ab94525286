"""`medexam audit` as a user meets it, on a real run with scripted replies."""

import csv
import io
import json

import pytest

from medexam.cli.views.runs import read_current
from medexam.companions.audit.folder import COLUMNS
from medexam.datasets import load_exam_set
from medexam.experiments import RunFolder
from medexam.experiments.report.page.entries import build_entry, build_question_index, read_answers
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from stored_runs import write_run


@pytest.fixture
def runs(tmp_path):
    """Two runs over twelve questions of the sample."""
    exams = load_exam_set(DatasetSpec(limit=12))
    for name, step in (("alpha", 2), ("beta", 3)):

        def answer(question, gold, step=step):
            chosen = gold if question.number % step else gold % 4 + 1
            return {"status": Status.ANSWERED, "answer": chosen, "reply": f"- Since.\n{{Answer: {chosen}}}"}

        program = {"kind": "chain_of_thought"}
        write_run(tmp_path / "runs" / name, exams, program, answer, dataset={"limit": 12})
    return tmp_path / "runs"


def fill(path, marks) -> None:
    rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(row | {"correctness": marks(row), "completeness": 3} for row in rows)


def test_sheets_go_out_and_come_back(medexam, runs, tmp_path) -> None:
    code, out, err = medexam("audit", "export", "alpha", "beta", "--out", "audit", "--per-group", "2")
    assert (code, err) == (0, "")
    assert out.startswith("24 answers of 2 runs to 12 questions; every run is judged on all of these questions.\n")
    assert "medexam audit import audit" in out
    assert sorted(path.name for path in (tmp_path / "audit").iterdir()) == [
        "instructions.txt",
        "key.json",
        "rater_1.csv",
        "rater_2.csv",
    ]
    fill(tmp_path / "audit" / "rater_1.csv", lambda row: 1 + len(row["question"]) % 5)
    fill(tmp_path / "audit" / "rater_2.csv", lambda row: 1 + len(row["question"]) % 4)

    code, out, err = medexam("audit", "import", "audit", "--markdown", "audit.md")

    assert (code, err) == (0, "wrote audit.md\n")
    assert "rater_1" in out
    assert "rater_2" in out
    assert "accuracy" in out
    assert (tmp_path / "audit.md").read_text().startswith("# Audit\n")
    code, _, err = medexam("audit", "import", "audit", "--markdown", "no/audit.md")
    assert (code, err.endswith("; choose another file with --markdown\n")) == (2, True)
    code, out, err = medexam("audit", "import", "audit", "--json", "--sheet", "audit/rater_1.csv")
    document = json.loads(out)
    assert (code, err, len(document["answers"]), document["raters"]) == (0, "", 24, [])
    assert [each["measure"] for each in document["measures"]] == ["accuracy"]


def test_marks_of_answers_that_changed_since_are_left_out_and_named(medexam, runs, tmp_path) -> None:
    medexam("audit", "export", "alpha", "beta", "--out", "audit", "--per-group", "2", "--raters", "1")
    fill(tmp_path / "audit" / "rater_1.csv", lambda row: 1 + len(row["question"]) % 5)
    marked = json.loads((tmp_path / "audit" / "key.json").read_text())["items"]
    changed = [item for item in marked if item["run"] == "alpha"][:2]
    path = runs / "alpha" / "predictions.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["question"] in {item["key"] for item in changed}:
            line["reply"] = "Something else."
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    code, out, err = medexam("audit", "import", "audit", "--json", "--markdown", "audit.md")

    document = json.loads(out)
    assert code == 0
    assert "medexam: 2 marks left out, because the answer has changed since it was rated: " in err
    assert all(f"{item['code']} (alpha, {item['key']})" in err for item in changed)
    assert (len(document["answers"]), len(document["changed"])) == (22, 2)
    assert document["sheets"][0]["correctness_marked"] == 22
    assert "2 marks left out, because the answer has changed" in (tmp_path / "audit.md").read_text()
    runs.rename(tmp_path / "moved")
    code, out, err = medexam("audit", "import", "audit", "--json", "--runs-dir", "moved")
    assert (code, len(json.loads(out)["answers"])) == (0, 22)
    code, out, err = medexam("audit", "import", "audit", "--json")
    assert (code, len(json.loads(out)["answers"])) == (0, 24)
    assert "it is unknown whether the answers of run alpha are still those that were marked" in err


def test_bad_input_is_one_line_with_a_way_out(medexam, runs, tmp_path) -> None:
    medexam("audit", "export", "runs", "--out", "audit", "--raters", "1")
    fill(tmp_path / "audit" / "rater_1.csv", lambda row: 9)
    for arguments, said in (
        (("export", "runs", "--out", "audit"), "choose a new folder with --out"),
        (("export", "nowhere", "--out", "other"), "no run at"),
        (("import", "audit"), "give a whole number from 1 to 5"),
        (("import", "runs"), "holds no key.json"),
    ):
        code, out, err = medexam("audit", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("medexam: ")
        assert said in err


def test_marks_of_a_page_are_imported_without_a_key(medexam, runs, tmp_path) -> None:
    answers = read_answers(read_current([RunFolder(runs / name) for name in ("alpha", "beta")]))
    index = build_question_index(list(answers[0].questions), answers, {})

    def write(name, step) -> None:
        with (tmp_path / name).open("w", encoding="utf-8-sig", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow([*COLUMNS, "run_folder"])
            for run_id, folder, run in zip(index["run_ids"], index["run_folders"], answers, strict=True):
                for place, key in enumerate(list(run.questions)[:6]):
                    digest = build_entry(key, [run], 400)["answers"][0]["digest"]
                    writer.writerow([f"{run_id}/{key}/{digest}", "", "", "", 1 + place % step, "", "", folder])

    write("marks.csv", 5)
    write("second.csv", 4)
    code, out, err = medexam("audit", "import", "marks.csv", "--sheet", "second.csv", "--json")
    document = json.loads(out)
    assert (code, err, len(document["answers"]), len(document["raters"])) == (0, "", 12, 1)
    assert {answer["run"] for answer in document["answers"]} == {"alpha", "beta"}
    assert [each["measure"] for each in document["measures"]] == ["accuracy"]
    path = runs / "alpha" / "predictions.jsonl"
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | {"reply": "Something else."}), *rest]) + "\n")
    runs.rename(tmp_path / "moved")
    code, out, err = medexam("audit", "import", "marks.csv")
    assert (code, out) == (2, "")
    assert "--runs-dir" in err
    code, out, err = medexam("audit", "import", "marks.csv", "--json", "--runs-dir", "moved")
    document = json.loads(out)
    assert (code, len(document["answers"]), len(document["changed"])) == (0, 11, 1)
    assert "1 mark left out, because the answer has changed" in err
