"""`medexam report --by`: scores by a column of the data, of a question's words, or of a file."""

import json

import pytest


@pytest.fixture
def run(medexam):
    """A stored run of a control on sixty questions."""
    medexam("run", "headqa_sample", "--set", "program.kind=longest", "--limit", 60)


@pytest.mark.usefixtures("run")
def test_each_column_splits_the_same_questions_and_right_answers(medexam, tmp_path) -> None:
    columns = ("discipline", "year", "negation", "length", "numbers", "picture", "options")
    flags = [word for column in columns for word in ("--by", column)]
    code, out, err = medexam("report", *flags, "--markdown", "r.md", "--json")
    assert code == 0, err
    (document,) = json.loads(out)
    assert [breakdown["column"] for breakdown in document["by"]] == list(columns)
    for breakdown in document["by"]:
        groups = breakdown["groups"]
        assert sum(group["n"] for group in groups) == 60
        right = sum(group["score"] * group["n"] for group in groups)
        assert right == pytest.approx(document["metrics"]["right"])
        assert all(group["interval"][0] <= group["score"] <= group["interval"][1] for group in groups)
    by_discipline = {group["value"]: group["score"] for group in document["by"][0]["groups"]}
    assert by_discipline == {name: one["accuracy"] for name, one in document["metrics"]["by_discipline"].items()}
    assert len(document["by"][3]["groups"]) == 4
    text = (tmp_path / "r.md").read_text()
    assert all(f"By {column}" in text for column in columns)
    assert "By negation" in medexam("report", "--by", "negation")[1]


@pytest.mark.usefixtures("run")
def test_a_column_of_a_file_is_joined_by_key_and_the_rest_is_a_group_of_its_own(medexam, tmp_path) -> None:
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.name.startswith("headqa_sample"))
    first, second, *_ = json.loads((folder / "spec.json").read_text())["questions"]
    (tmp_path / "topics.csv").write_text(f"question,specialty\n{first},heart\n{second},lung\n")
    groups = json.loads(medexam("report", "--by", "topics.csv:specialty", "--json")[1])[0]["by"][0]["groups"]
    assert [(group["value"], group["n"]) for group in groups] == [("heart", 1), ("lung", 1), ("-", 58)]
    assert "its columns are question, specialty" in medexam("report", "--by", "topics.csv:topic")[2]


@pytest.mark.usefixtures("run")
def test_an_unknown_column_names_those_that_there_are(medexam) -> None:
    code, _, err = medexam("report", "--by", "colour")
    assert code == 2
    assert all(name in err for name in ("discipline", "negation", "FILE:COLUMN"))


def test_any_column_of_ones_own_questions_splits_them(medexam, tmp_path) -> None:
    rows = [f"What is {n}?,one {n},two {n},{1 + n % 2},{'heart' if n < 3 else 'lung'},{n}" for n in range(8)]
    (tmp_path / "own.csv").write_text("\n".join(["stem,a,b,answer,organ,weight", *rows]))
    spec = "name: own\ndataset: {kind: choice, path: own.csv, columns: {options: [a, b], numbering: one}}\n"
    (tmp_path / "own.yaml").write_text(spec + "program: {kind: longest}\n")
    code, _, err = medexam("run", "own.yaml")
    assert code == 0, err
    code, out, err = medexam("report", "--by", "organ", "--json")
    assert code == 0, err
    groups = json.loads(out)[0]["by"][0]["groups"]
    assert [(group["value"], group["n"]) for group in groups] == [("heart", 3), ("lung", 5)]


@pytest.mark.usefixtures("run")
def test_questions_without_options_have_the_columns_of_their_exam(medexam, tmp_path) -> None:
    """An exam and its open setting are broken down by one command, by the same values."""
    (tmp_path / "replies.json").write_text('{"*": "some words"}')
    model = ("--set", "model={engine: scripted, path: replies.json}")
    code, _, err = medexam("run", "headqa_open", *model, "--limit", 60)
    assert code == 0, err
    code, out, err = medexam("report", "--by", "discipline", "--by", "options", "--by", "year", "--json")
    assert code == 0, err
    documents = {document["dataset"]: document["by"] for document in json.loads(out)}
    sizes = {
        name: [[(group["value"], group["n"]) for group in breakdown["groups"]] for breakdown in breakdowns]
        for name, breakdowns in documents.items()
    }
    assert sizes["headqa_sample"] == sizes["headqa_sample_open"]
