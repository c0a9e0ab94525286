"""A first spec, and the schema by which editors complete and check specs."""

import json
from pathlib import Path

import pytest
import yaml

import medexam as package
from medexam.specs import build_cells, library_names, load_document, spec_schema
from medexam.specs.schema import SCHEMA

LIBRARY = Path(package.__file__).parent / "experiments" / "library"


def test_the_schema_that_ships_is_todays(medexam) -> None:
    code, out, _ = medexam("schema")
    assert code == 0
    assert json.loads(out) == json.loads(SCHEMA.read_text(encoding="utf-8")), f"write it: medexam schema > {SCHEMA}"


@pytest.fixture(scope="module")
def schema():
    return spec_schema()


def test_fields_have_their_docs_and_short_forms(schema) -> None:
    parts = schema["$defs"]
    assert "ships in the package" in parts["DatasetSpec"]["properties"]["name"]["description"]
    assert {"type": "integer"} in parts["DatasetSpec"]["properties"]["years"]["anyOf"]
    assert "guided" in parts["FewShotSpec"]["properties"]["answer_format"]["description"]
    assert all({"type": "string"} in schema["properties"][name]["anyOf"] for name in ("program", "dataset", "model"))


@pytest.mark.parametrize("name", library_names())
def test_shipped_specs_fit_the_schema_that_they_name(name, schema) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    text = (LIBRARY / f"{name}.yaml").read_text(encoding="utf-8")
    first = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert (LIBRARY / first).resolve() == SCHEMA.resolve()
    jsonschema.validate(yaml.safe_load(text), schema)


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({"name": "x", "program": "longest", "dataset": "headqa_sample"}, True),
        ({"name": "x", "dataset": {"years": 2016, "disciplines": ["medicine"]}}, True),
        ({"name": "x", "program": {"kind": "./mine.py:Debate", "args": {"rounds": 2}}}, True),
        ({"name": "x", "program": {"kind": "zero_shot", "max_token": 5}}, False),
        ({"name": "x", "dataset": {"year": 2016}}, False),
        ({"name": "x", "modell": {}}, False),
    ],
)
def test_the_schema_tells_right_from_wrong(document, fits, schema) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    assert jsonschema.Draft7Validator(schema).is_valid(document) is fits


@pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:8000/v1"])
def test_init_writes_a_spec_that_can_be_planned(medexam, tmp_path, endpoint) -> None:
    code, _, err = medexam("init", *(["mine.yaml", "--endpoint", endpoint] if endpoint else []))
    path = tmp_path / ("mine.yaml" if endpoint else "experiment.yaml")
    assert (code, f"wrote {path.name}" in err) == (0, True)
    _, cells = build_cells(load_document(path), {})
    assert {cell.model.engine for cell in cells} == {"vllm" if endpoint else "embedded"}
    assert len(cells) == 4
    text = path.read_text()
    assert text.startswith(f"# yaml-language-server: $schema={SCHEMA}\n")
    if endpoint is None:
        code, out, _ = medexam("plan", path, "--json")
        assert (code, [cell["questions"] for cell in json.loads(out)]) == (0, [60] * 4)
    code, _, err = medexam("init", path)
    assert (code, "exists" in err) == (2, True)


def test_init_reads_a_table_of_ones_own(medexam, tmp_path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("question,A,B,label\nWhich vitamin prevents scurvy?,A,C,B\nWhich prevents rickets?,D,C,A\n")
    code, _, err = medexam("init", "mine.yaml", "--data", table)
    assert code == 0, err
    code, out, err = medexam("plan", "mine.yaml", "--json")
    assert code == 0, err
    assert [cell["questions"] for cell in json.loads(out)] == [2] * 4
    table.write_text("question,A,B,label\nWhich vitamin prevents scurvy?,A,C,1\n")
    code, _, err = medexam("init", "open.yaml", "--data", table)
    assert (code, "before a run, set" in err) == (3, True)
    assert "# decide: " in (tmp_path / "open.yaml").read_text()


def test_shells_can_complete(medexam) -> None:
    _, out, _ = medexam("--help")
    assert "--install-completion" in out
