"""`medexam data init`, `check` and `show` on questions of one's own."""

import json

import pytest
import yaml

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec, load_document, validate

CSV = "Question,Option A,Option B,Option C,Correct Answer,Topic,QID\n" + "".join(
    f"Question {number}?,x{number},y{number},z{number},{'ABC'[number % 3]},{'ab'[number % 2]},q{number}\n"
    for number in range(6)
)


def _columns(path):
    return yaml.safe_load(path.read_text())["dataset"]["columns"]


def test_a_spec_is_proposed_and_runs(medexam, tmp_path, runs_dir) -> None:
    (tmp_path / "my.csv").write_text(CSV)
    code, out, err = medexam("data", "init", "my.csv")
    assert code == 0, err
    for said in ("kind choice", 'delimiter ","', "6 rows of 3 options", "option 1 2 times", "* 2. y1"):
        assert said in out
    assert _columns(tmp_path / "my.yaml") == {
        "stem": "Question",
        "options": ["Option A", "Option B", "Option C"],
        "answer": "Correct Answer",
        "subject": "Topic",
        "id": "QID",
    }
    code, out, err = medexam("run", "my.yaml", "--set", "program={kind: longest}", "--json")
    assert code == 0, err
    assert json.loads(out)[0]["metrics"]["n"] == 6
    assert medexam("data", "init", "my.csv")[0] == 2, "a spec that exists is kept"
    code, out, _ = medexam("data", "check", "my.yaml")
    assert (code, "6 with 3 options" in out, "sound" in out) == (0, True, True)
    _, out, _ = medexam("data", "show", "my.yaml", "--limit", 1, "--json")
    assert len(json.loads(out)) == 1


@pytest.mark.parametrize(
    ("row", "kind", "columns"),
    [
        ({"question": "Q?", "choices": ["a", "b", "c"], "answer": 0}, "choice", {"options": "choices"}),
        ({"stem": "Q?\nA) a\nB) b", "label": "B"}, "choice", {"stem": "stem", "answer": "label"}),
        ({"question": "Q?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 4}, "choice", {"answer": "cop"}),
        ({"question": "Q?", "answer": "a b"}, "short_answer", {"answer": "answer"}),
        ({"question": "Q?", "answer": "a b", "context": "x a b y"}, "spans", {"context": "context"}),
    ],
)
def test_the_kind_is_recognised(medexam, tmp_path, row, kind, columns) -> None:
    (tmp_path / "my.jsonl").write_text(json.dumps(row) + "\n")
    code, out, err = medexam("data", "init", "my.jsonl", "--out", "spec.yaml")
    assert code == 0, err
    assert f"kind {kind}" in out
    assert _columns(tmp_path / "spec.yaml").items() >= columns.items()
    assert medexam("data", "check", "spec.yaml")[0] == 0
    assert medexam("data", "show", "spec.yaml")[0] == 0


def test_what_is_open_is_written_down_and_not_decided(medexam, tmp_path) -> None:
    rows = [{"question": f"{place}?", "options": ["a", "b", "c"], "answer": place} for place in (1, 2)]
    (tmp_path / "my.json").write_text(json.dumps(rows))
    code, out, _ = medexam("data", "init", "my.json")
    assert (code, "columns.numbering: zero or one: 1 of row 1 is option 2 as numbers from 0" in out) == (3, True)
    assert "    numbering:   # decide: zero or one" in (tmp_path / "my.yaml").read_text()
    code, _, err = medexam("run", "my.yaml")
    assert (code, "numbering is not set: say zero or one" in err) == (2, True)
    assert medexam("run", "my.yaml", "--set", "dataset.columns.numbering=one", "--set", "program.kind=longest")[0] == 0


def test_standard_names_need_no_spec(medexam, tmp_path) -> None:
    rows = [
        {"question": "Q?", "options": ["a", "b"], "answer": "a"},
        {"question": "R?", "options": ["a"], "answer": "a"},
    ]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = medexam("data", "check", "--path", "my.jsonl", "--kind", "choice")
    assert code == 2
    assert "line 2, column options: a question needs at least two options, this one has 1" in " ".join(out.split())
    code, _, err = medexam("data", "check", "--path", "my.jsonl", "--kind", "essay")
    assert (code, "the kinds are choice" in err) == (2, True)
    code, _, err = medexam("data", "show")
    assert (code, "give the name of a data set" in err) == (2, True)


def test_a_path_is_found_beside_its_spec(tmp_path, monkeypatch) -> None:
    (folder := tmp_path / "deep").mkdir()
    (folder / "my.csv").write_text(CSV)
    (folder / "my.yaml").write_text("name: x\ndataset: {kind: choice, path: my.csv}\n")
    monkeypatch.chdir(tmp_path)
    assert load_document("deep/my.yaml")["dataset"]["path"] == str(folder / "my.csv")
    (tmp_path / "my.csv").write_text(CSV)
    assert load_document("deep/my.yaml")["dataset"]["path"] == str(tmp_path / "my.csv")


def test_the_example_reads_as_its_source(request) -> None:
    document = load_document(request.config.rootpath / "examples" / "my_questions.yaml")
    own = load_exam_set(validate(DatasetSpec, document["dataset"]))
    sample = load_exam_set(DatasetSpec())
    known = {one.stem: sample.golds[one.key].number for one in sample.questions}
    assert len(own.questions) == 20
    assert all(known[one.stem] == own.golds[one.key].number for one in own.questions)


def test_a_key_in_another_file_is_written_into_the_spec(medexam, tmp_path) -> None:
    (tmp_path / "mis preguntas (1).csv").write_text(CSV.replace("Correct Answer", "Points"))
    (tmp_path / "key.csv").write_text("QID,Key\n" + "".join(f"q{number},{'ABC'[number % 3]}\n" for number in range(6)))
    code, out, _ = medexam(
        "data", "init", "mis preguntas (1).csv", "--answers", "key.csv", "--on", "QID", "--out", "a.yaml"
    )
    assert (code, "option 1 2 times" in out) == (0, True)
    assert yaml.safe_load((tmp_path / "a.yaml").read_text())["name"] == "mis_preguntas_1"
    code, out, err = medexam("run", "a.yaml", "--set", "program.kind=longest", "--json")
    assert (code, json.loads(out)[0]["metrics"]["n"]) == (0, 6), err


def test_prompts_of_a_language_without_words_are_in_english(medexam, tmp_path) -> None:
    rows = [
        {"question": f"Parmi les suivantes, quelle est la {n} ?", "options": ["a1", "b1", "c1"], "answer": "ABC"[n]}
        for n in range(3)
    ]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert medexam("data", "init", "my.jsonl")[0] == 0
    tree = yaml.safe_load((tmp_path / "my.yaml").read_text())
    assert (tree["dataset"]["language"], tree["program"]["prompt_language"]) == ("fr", "en")
    assert medexam("plan", "my.yaml")[0] == 0
