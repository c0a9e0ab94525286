"""What `medexam report` splits."""

import json
from pathlib import Path

import pytest

LONGEST = ("--set", "program.kind=longest", "--limit", 60)


def _groups(breakdown: dict) -> list[tuple[str, int]]:
    return [(group["value"], group["n"]) for group in breakdown["groups"]]


@pytest.fixture
def by(medexam):
    """`by("year", ...)`: the documents of `medexam report --json`, split by these columns."""

    def call(*columns: str) -> list[dict]:
        flags = [word for column in columns for word in ("--by", column)]
        code, out, err = medexam("report", *flags, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


def test_each_column_splits_the_same_questions_and_right_answers(run, medexam, refused, by, tmp_path) -> None:
    run("headqa_sample", *LONGEST)
    columns = ("discipline", "year", "negation", "length", "numbers", "picture", "options")
    (document,) = by(*columns)
    assert [breakdown["column"] for breakdown in document["by"]] == list(columns)
    for breakdown in document["by"]:
        groups = breakdown["groups"]
        assert sum(group["n"] for group in groups) == 60
        right = sum(group["score"] * group["n"] for group in groups)
        assert right == pytest.approx(document["metrics"]["right"])
        assert all(group["interval"][0] <= group["score"] <= group["interval"][1] for group in groups)
    by_discipline = {group["value"]: group["score"] for group in document["by"][0]["groups"]}
    assert by_discipline == {name: one["accuracy"] for name, one in document["metrics"]["by_discipline"].items()}
    medexam("report", *(word for column in columns for word in ("--by", column)), "--markdown", "r.md")
    text = (tmp_path / "r.md").read_text()
    assert all(f"By {column}" in text for column in columns)
    line = refused("report", "--by", "colour")
    assert all(name in line for name in ("discipline", "negation", "FILE:COLUMN"))


def test_a_column_of_a_file_is_joined_by_key_and_the_rest_is_a_group_of_its_own(run, refused, by, tmp_path) -> None:
    (document,) = run("headqa_sample", *LONGEST)
    first, second, *_ = json.loads(Path(document["run_dir"], "spec.json").read_text())["questions"]
    (tmp_path / "topics.csv").write_text(f"question,specialty\n{first},heart\n{second},lung\n")
    assert _groups(by("topics.csv:specialty")[0]["by"][0]) == [("heart", 1), ("lung", 1), ("-", 58)]
    assert "its columns are question, specialty" in refused("report", "--by", "topics.csv:topic")


def test_an_exam_and_its_open_setting_are_split_by_the_same_values(run, by, spec) -> None:
    run("headqa_sample", *LONGEST)
    spec("some words")
    run("headqa_open", "--set", "model={engine: scripted, path: replies.yaml}", "--limit", 60)
    documents = {each["dataset"]: each["by"] for each in by("discipline", "options", "year")}
    assert [*map(_groups, documents["headqa_sample"])] == [*map(_groups, documents["headqa_sample_open"])]
