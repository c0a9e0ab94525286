"""First specs: `medexam init`, `data check` and `show` on questions of one's own, and the schema of specs."""

import json
from pathlib import Path

import pytest
import yaml

import medexam as package
from docs_site.spec_schema import build_schema
from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec, build_cells, load_document, validate
from table_cases import read_table

LIBRARY = Path(package.__file__).parent / "experiments" / "library"
CSV = "Question,Option A,Option B,Option C,Correct Answer,Topic,QID\n" + "".join(
    f"Question {number}?,x{number},y{number},z{number},{'ABC'[number % 3]},{'ab'[number % 2]},q{number}\n"
    for number in range(6)
)


def _columns(path):
    return yaml.safe_load(path.read_text())["dataset"]["columns"]


def test_a_spec_is_proposed_and_runs(medexam, run, tmp_path) -> None:
    (tmp_path / "my.csv").write_text(CSV)
    _, out, _ = medexam("init", "my.csv")
    for said in ("kind choice", 'delimiter ","', "6 rows of 3 options", "option 1 2 times", "* 2. y1"):
        assert said in out
    assert _columns(tmp_path / "my.yaml") == {
        "stem": "Question",
        "options": ["Option A", "Option B", "Option C"],
        "answer": "Correct Answer",
        "subject": "Topic",
        "id": "QID",
    }
    assert run("my.yaml", "--set", "program={kind: longest}")[0]["metrics"]["n"] == 6
    assert len({medexam("plan", name)[1] for name in ("my.csv", "my.yaml")}) == 1, "both ask the same"
    code, out, _ = medexam("data", "check", "my.yaml")
    assert (code, "6 with 3 options" in out, "sound" in out) == (0, True, True)
    assert len(json.loads(medexam("data", "show", "my.yaml", "--limit", 1, "--json")[1])) == 1


@pytest.mark.parametrize(*read_table("recognised_kinds"))
def test_the_kind_is_recognised(medexam, tmp_path, row, kind, columns) -> None:
    (tmp_path / "my.jsonl").write_text(json.dumps(row) + "\n")
    code, out, err = medexam("init", "my.jsonl", "--out", "spec.yaml")
    assert (code, f"kind {kind}" in out) == (0, True), err
    assert _columns(tmp_path / "spec.yaml").items() >= columns.items()
    assert medexam("data", "check", "spec.yaml")[0] == medexam("data", "show", "spec.yaml")[0] == 0


def test_what_is_open_is_written_down_and_not_decided(medexam, run, refused, tmp_path) -> None:
    rows = [{"question": f"{place}?", "options": ["a", "b", "c"], "answer": place} for place in (1, 2)]
    (tmp_path / "my.json").write_text(json.dumps(rows))
    code, out, _ = medexam("init", "my.json")
    assert (code, "columns.numbering: zero or one: 1 of row 1 is option 2 as numbers from 0" in out) == (3, True)
    assert "    numbering:   # decide: zero or one" in (tmp_path / "my.yaml").read_text()
    assert "numbering is open: choose" in refused("run", "my.yaml")
    run("my.yaml", "--set", "dataset.columns.numbering=one", "--set", "program.kind=longest")


def test_standard_names_need_no_spec(medexam, tmp_path) -> None:
    rows = [
        {"question": "Q?", "options": ["a", "b"], "answer": "a"},
        {"question": "R?", "options": ["a"], "answer": "a"},
    ]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "my.yaml").write_text("dataset: {kind: choice, path: my.jsonl}")
    code, out, _ = medexam("data", "check", "my.yaml")
    assert code == 2
    assert "line 2, column options: a question needs at least two options, this one has 1" in " ".join(out.split())


def test_the_example_reads_as_its_source(request) -> None:
    own = load_exam_set(
        validate(DatasetSpec, load_document(request.config.rootpath / "examples/my_questions.yaml")["dataset"])
    )
    shipped = load_exam_set(DatasetSpec(name="headqa_sample"))
    known = {one.stem: shipped.golds[one.key].number for one in shipped.questions}
    assert len(own.questions) == 20
    assert all(known[one.stem] == own.golds[one.key].number for one in own.questions)


def test_a_key_in_another_file_is_written_into_the_spec(medexam, run, tmp_path) -> None:
    (tmp_path / "mis preguntas (1).csv").write_text(CSV.replace("Correct Answer", "Points"))
    (tmp_path / "key.csv").write_text("QID,Key\n" + "".join(f"q{number},{'ABC'[number % 3]}\n" for number in range(6)))
    answers = ("--answers", "key.csv", "--on", "QID", "--out", "a.yaml")
    assert "option 1 2 times" in medexam("init", "mis preguntas (1).csv", *answers)[1]
    assert yaml.safe_load((tmp_path / "a.yaml").read_text())["name"] == "mis_preguntas_1"
    assert run("a.yaml", "--set", "program.kind=longest")[0]["metrics"]["n"] == 6


@pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:8000/v1"])
def test_init_writes_a_spec_that_can_be_planned(medexam, refused, tmp_path, endpoint) -> None:
    code, _, err = medexam("init", *(["mine.yaml", "--endpoint", endpoint] if endpoint else []))
    path = tmp_path / ("mine.yaml" if endpoint else "experiment.yaml")
    assert (code, f"wrote {path.name}" in err) == (0, True)
    _, cells = build_cells(load_document(path), {})
    assert [cell.model.engine for cell in cells] == ["vllm" if endpoint else "embedded"] * 4
    if endpoint is None:
        cells = json.loads(medexam("plan", path, "--json")[1])
        assert [cell["questions"] for cell in cells] == [60] * 4
    assert "exists" in refused("init", path)


def test_the_schema_that_shipped_specs_name_is_todays_and_they_fit_it(medexam) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(medexam("schema")[1])
    assert schema == build_schema(), "write it: python docs_site/spec_schema.py"
    for path in sorted(LIBRARY.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        shipped = LIBRARY / text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
        assert json.loads(shipped.read_text(encoding="utf-8")) == schema, shipped
        jsonschema.validate(yaml.safe_load(text), schema)
