"""`medexam audit` as a user meets it: sheets go out blind, and marks come back to the answers that they are of."""

import csv
import io
import json
import re
import shutil
import stat
from pathlib import Path

import pandas as pd
import pytest

from medexam.datasets import load_exam_set
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from page_blocks import Page
from stored_runs import write_run

EXAMS = load_exam_set(DatasetSpec(limit=12))


@pytest.fixture
def write(tmp_path):
    """`write("modelx", answer)`: a run over twelve questions of the sample, in the folder `runs`."""

    def make(name, answer, kind="chain_of_thought"):
        return write_run(tmp_path / "runs" / name, EXAMS, {"kind": kind}, answer, dataset={"limit": 12})

    return make


@pytest.fixture
def runs(write, tmp_path):
    """Two runs of reasoned answers with a likelihood for each option; two questions of modelx have no answer."""
    for name, step in (("modelx", 2), ("modely", 3)):

        def answer(question, gold, name=name, step=step):
            place = EXAMS.questions.index(question)
            if name == "modelx" and place == 5:
                return {"status": Status.FAILED, "failure": {"kind": "LMTransportError", "message": "gone"}}
            chosen = gold if place % step else gold % 4 + 1
            scores = {number: -1.0 * (number != chosen) * (1 + place % 4) for number in question.option_numbers}
            said = {"status": Status.ANSWERED, "answer": chosen, "option_scores": scores}
            return said | {"reply": f"=HYPERLINK({place})\nSince.\n{{Answer: {chosen}}}"}

        write(name, answer)
    return tmp_path / "runs"


@pytest.fixture
def export(medexam, runs):
    """`export("--raters", 1)`: all answers of both runs, exported into the folder `audit`."""

    def call(*words, out="audit"):
        code, printed, err = medexam("audit", "export", "modelx", "modely", "--out", out, *words)
        assert (code, err) == (0, "")
        return printed

    return call


@pytest.fixture
def take_in(medexam):
    """`take_in("audit")`: what `medexam audit import --json` says, and its warnings."""

    def call(*words):
        code, out, err = medexam("audit", "import", *words, "--json")
        assert code == 0, err
        return json.loads(out), err

    return call


def read(path):
    return list(csv.DictReader(io.StringIO(Path(path).read_bytes().decode("utf-8-sig"), newline="")))


def read_key(folder="audit"):
    return json.loads(Path(folder, "key.json").read_text())


def fill(path, marks, *, to=None, delimiter=",") -> Path:
    """Fill a sheet as a spreadsheet would: `marks` gives the cells of a row."""
    rows = read(path)
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, rows[0].keys(), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(row | marks(row) for row in rows)
    Path(to or path).write_bytes(stream.getvalue().encode("utf-8-sig"))
    return Path(to or path)


def test_sheets_are_blind_each_in_its_own_order(export) -> None:
    said = export()
    assert said.startswith("23 answers of 2 runs to 12 questions")
    first, second = (read(f"audit/rater_{number}.csv") for number in (1, 2))
    codes = [row["code"] for row in first]
    assert codes != [row["code"] for row in second]
    assert sorted(codes) == sorted(row["code"] for row in second)
    for name in ("rater_1.csv", "rater_2.csv", "instructions.txt"):
        assert not re.search("modelx|headqa-v1/|accuracy|probability", Path("audit", name).read_text("utf-8-sig"))
    assert all(row["answer"].startswith("'=HYPERLINK") and not row["correctness"] for row in first)
    assert stat.S_IMODE(Path("audit").stat().st_mode) == 0o700, "who judges may not see what the codes stand for"


def test_the_key_says_what_each_code_stands_for(export, runs) -> None:
    export("--raters", 1)
    shown = {row["code"]: row for row in read("audit/rater_1.csv")}
    questions = {question.key: question for question in EXAMS.questions}
    entries = read_key()["items"]
    failed = EXAMS.questions[5].key
    assert {(entry["run"], entry["key"]) for entry in entries} == {
        (run, key) for run in ("modelx", "modely") for key in questions if (run, key) != ("modelx", failed)
    }
    for entry in entries:
        question, row = questions[entry["key"]], shown[entry["code"]]
        gold = EXAMS.golds[question.key].number
        place = EXAMS.questions.index(question)
        assert (row["question"], row["answer"][1:12]) == (question.printed, f"=HYPERLINK({place})"[:11])
        assert row["reference"] == f"{gold}. {next(o.text for o in question.options if o.number == gold)}"


def test_the_same_sample_gives_the_same_files_and_another_other_codes(export) -> None:
    for out, words in (("a", ()), ("b", ()), ("c", ("--seed", 1)), ("d", ("--per-group", 1))):
        export(*words, out=out)
    for name in ("rater_1.csv", "rater_2.csv", "key.json", "instructions.txt"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()
    assert len({read_key(folder)["sample"] for folder in "abcd"}) == 3


def test_findings_are_those_of_pandas(export, take_in) -> None:
    export()
    places = {entry["code"]: at for at, entry in enumerate(read_key()["items"])}
    first = read_key()["items"][0]["code"]
    fill("audit/rater_1.csv", lambda row: {"correctness": 1 + places[row["code"]] % 5, "completeness": 3})

    def sloppily(row):
        at = places[row["code"]]
        comment = {"comment": "-unclear"} if row["code"] == first else {}
        return {"correctness": 1 + at * 3 % 5} | comment if at % 7 != 5 else {}

    fill("audit/rater_2.csv", sloppily, delimiter=";")
    Path("audit/.~lock.rater_1.csv").write_text("a spreadsheet is open")
    document, _ = take_in("audit")
    frame = pd.json_normalize(document["answers"])
    raters = frame[["correctness.rater_1", "correctness.rater_2"]]
    frame["mark"] = raters.mean(axis=1)
    (pair,) = document["raters"]  # only one rater has marked completeness
    both = raters.dropna()
    assert (pair["n"], pair["same"]) == (len(both), pytest.approx((both.iloc[:, 0] == both.iloc[:, 1]).mean()))
    assert pair["spearman"] == pytest.approx(both.corr(method="spearman").iloc[0, 1])
    assert [each["measure"] for each in document["measures"]] == ["accuracy", "probability"]
    for each in document["measures"]:
        for method in ("spearman", "kendall"):
            column = f"scores.{each['measure']}"
            assert each["overall"][method] == pytest.approx(frame["mark"].corr(frame[column], method=method))
            for run, rows in frame.groupby("run"):
                assert each["by_run"][run][method] == pytest.approx(rows["mark"].corr(rows[column], method=method))
    assert {run: marks["means"]["correctness"] for run, marks in document["by_run"].items()} == pytest.approx(
        frame.groupby("run")["mark"].mean().to_dict()
    )
    sheet = document["sheets"][1]
    assert (sheet["rows"], sheet["correctness_marked"], sheet["completeness_marked"]) == (23, len(both), 0)
    assert next(one for one in document["answers"] if one["code"] == first)["comments"] == {"rater_2": "-unclear"}
    questions = {question.key: question for question in EXAMS.questions}
    for answer in document["answers"]:
        question = questions[answer["key"]]
        place, step = EXAMS.questions.index(question), {"modelx": 2, "modely": 3}[answer["run"]]
        assert answer["group"] == question.exam.discipline
        assert answer["scores"]["accuracy"] == float(bool(place % step))
        assert 1 / len(question.options) < answer["scores"]["probability"] < 1


def test_marks_of_answers_that_changed_since_are_left_out_and_named(export, take_in, medexam, runs, tmp_path) -> None:
    export("--raters", 1)
    fill("audit/rater_1.csv", lambda row: {"correctness": 1 + len(row["question"]) % 5})
    changed = [item for item in read_key()["items"] if item["run"] == "modelx"][:2]
    path = runs / "modelx" / "predictions.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["question"] in {item["key"] for item in changed}:
            line["calls"] = [{"text": "Something else."}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    document, err = take_in("audit")
    assert "medexam: 2 marks left out, because the answer has changed since it was rated, or has no reply: " in err
    assert all(f"{item['code']} (modelx, {item['key']})" in err for item in changed)
    assert (len(document["answers"]), len(document["changed"])) == (21, 2)
    runs.rename(tmp_path / "moved")
    assert len(take_in("audit", "--runs-dir", "moved")[0]["answers"]) == 21
    code, out, err = medexam("audit", "import", "audit")
    assert (code, out, "--runs-dir" in err) == (2, "", True)


def test_marks_of_a_page_are_imported_without_a_key(medexam, take_in, runs, tmp_path) -> None:
    code, _, err = medexam("report", "modelx", "modely", "--html", "page.html")
    assert code == 0, err
    columns = ("code", "question", "reference", "answer", "correctness", "completeness", "comment", "run_folder")
    data = Page(Path("page.html").read_text(encoding="utf-8")).data
    names, entries = [run["id"] for run in data["index"]["runs"]], data["questions"]
    digests = {
        (run, entry["key"]): answer["digest"]
        for entry in entries
        for run, answer in zip(names, entry["answers"], strict=True)
        if "digest" in answer
    }

    def save(name, step, digest_of=digests) -> None:
        with Path(name).open("w", encoding="utf-8-sig", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            for at, ((run, key), digest) in enumerate(digest_of.items()):
                writer.writerow([f"{run}/{key}/{digest}", "", "", "", 1 + at % step, "", "", runs / run])

    save("marks.csv", 5)
    save("second.csv", 4)
    document, err = take_in("marks.csv", "--sheet", "second.csv")
    assert (err, len(document["answers"]), len(document["raters"])) == ("", 23, 1)
    assert {answer["run"] for answer in document["answers"]} == {"modelx", "modely"}
    (first, digest), *_ = digests.items()
    save("marks.csv", 5, digests | {first: digest[::-1]})
    document, err = take_in("marks.csv")
    assert (len(document["answers"]), len(document["changed"])) == (22, 1)
    assert "1 mark left out, because the answer has changed" in err
    runs.rename(tmp_path / "moved")
    code, out, err = medexam("audit", "import", "marks.csv")
    assert (code, out, "--runs-dir" in err) == (2, "", True)
    assert len(take_in("marks.csv", "--runs-dir", "moved")[0]["answers"]) == 22


def test_bad_input_is_one_line_with_a_way_out(export, medexam, write, runs, tmp_path) -> None:
    export("--raters", 1)
    export("--raters", 1, "--seed", 1, out="other")
    sample = read_key()["sample"]
    write("longest", lambda question, gold: {"status": Status.ANSWERED, "answer": gold}, "longest")
    nine = fill("audit/rater_1.csv", lambda row: {"correctness": 9}, to=tmp_path / "nine.csv")
    (tmp_path / "code.csv").write_text(f"code,correctness,completeness\n{sample}-999,1,1\n")
    (tmp_path / "file").touch()
    shutil.copytree(runs / "modelx", tmp_path / "copy" / "modelx")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "key.json").write_text(json.dumps({**read_key(), "items": [{"code": 1}]}))
    for arguments, said in (
        (("export", "modelx", "--out", "audit"), "may hold sheets that were filled in"),
        (("export", "modelx", "--out", "file"), "move it away, or name another"),
        (("export", "nowhere", "--out", "new"), "no run at"),
        (("export", "longest", "--out", "new"), "longest holds no reply to judge"),
        (("export", "modelx", "copy/modelx", "--out", "new"), "name each run once"),
        (("import", "audit"), "is marked yet"),
        (("import", "audit", "--sheet", nine), "give one of 1, 2, 3, 4, 5, or leave it empty"),
        (("import", "audit", "--sheet", "other/rater_1.csv"), "read a sheet with the folder that it was made in"),
        (("import", "audit", "--sheet", "code.csv"), f"line 2 ({sample}-999): no answer has that code"),
        (("import", "damaged"), "is not an audit's key (items.0"),
        (("import", "runs"), "holds no key.json"),
    ):
        code, out, err = medexam("audit", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("medexam: ")
        assert said in err
