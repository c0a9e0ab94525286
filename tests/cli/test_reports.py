"""What `medexam report` splits."""

import json
import re
from pathlib import Path

import pytest

LONGEST = ("--set", "program.kind=longest", "--limit", 60)


def _groups(facet: dict) -> list[tuple[str, int]]:
    return [(name, group["n"]) for name, group in facet.items()]


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
    columns = ("discipline", "year", "option_count", "exam", "number", "language")
    (document,) = by(*columns)
    facets = document["metrics"]["by"]
    assert [*facets][: len(columns)] == list(columns)
    for column in columns:
        groups = facets[column].values()
        accuracies = [group["measures"]["accuracy"] for group in groups]
        assert sum(group["n"] for group in groups) == 60
        assert sum(group["right"] for group in groups) == document["metrics"]["right"]
        assert [each["value"] for each in accuracies] == pytest.approx([each["right"] / each["n"] for each in groups])
        assert all(each["interval"][0] <= each["value"] <= each["interval"][1] for each in accuracies)
    stored = json.loads(Path(document["run_dir"], "metrics.json").read_text())["by"]
    assert {name: facets[name] for name in stored} == stored
    medexam("report", *(word for column in columns for word in ("--by", column)), "--markdown", "r.md")
    text = (tmp_path / "r.md").read_text()
    assert all(f"By {column.replace('option_count', 'number of options')}" in text for column in columns)
    line = refused("report", "--by", "colour")
    assert all(name in line for name in ("discipline", "number", "FILE:COLUMN"))


def test_a_column_of_a_file_is_joined_by_key_and_the_rest_is_a_group_of_its_own(run, refused, by, tmp_path) -> None:
    (document,) = run("headqa_sample", *LONGEST)
    first, second, *_ = json.loads(Path(document["run_dir"], "spec.json").read_text())["questions"]
    (tmp_path / "topics.csv").write_text(f"question,specialty\n{first},heart\n{second},lung\n")
    assert _groups(by("topics.csv:specialty")[0]["metrics"]["by"]["topics.csv:specialty"]) == [
        ("heart", 1),
        ("lung", 1),
        ("-", 58),
    ]
    assert "its columns are question, specialty" in refused("report", "--by", "topics.csv:topic")


def test_an_exam_and_its_open_setting_are_split_by_the_same_values(run, by, spec) -> None:
    run("headqa_sample", *LONGEST)
    spec("some words")
    run("headqa_open", "--set", "model={engine: scripted, path: replies.yaml}", "--limit", 60)
    columns = ("discipline", "number", "year")
    exam, words = (each["metrics"]["by"] for each in by(*columns))
    assert [_groups(exam[column]) for column in columns] == [_groups(words[column]) for column in columns]


def test_words_of_ones_own_are_split_by_any_column_of_their_file(medexam, by, tmp_path) -> None:
    rows = "What stores iron?,Ferritin,heart,1\nWhich bone?,Femur,lung,2\nWhich nerve?,Vagus,heart,1\n"
    (tmp_path / "words.csv").write_text(f"question,answer,topic,difficulty\n{rows}")
    (tmp_path / "replies.yaml").write_text('"*": [Ferritin, Ferritin]')
    assert medexam("init", "words.csv", "--kind", "short_answer")[0] == 0
    model = "model={engine: scripted, path: replies.yaml}"
    assert medexam("run", "words.yaml", "--set", model)[0] == 0
    (document,) = by("topic", "difficulty")
    facets = document["metrics"]["by"]
    assert [_groups(facets[column]) for column in ("topic", "difficulty")] == [
        [("heart", 2), ("lung", 1)],
        [("1", 2), ("2", 1)],
    ]
    assert [facets["topic"][topic]["measures"]["f1"]["value"] for topic in ("heart", "lung")] == [0.5, 0.0]


def test_each_run_is_one_line_in_a_terminal_of_eighty_columns(medexam, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = medexam("run", "headqa_sample", "--program", "longest,blind,random", "--limit", 60)
    assert (code, "WARNING" in err) == (0, False)
    verdict, table = out.split("\n\n")[:2]
    assert "McNemar's p" in " ".join(verdict.split())
    rows = table.splitlines()[3:6]
    accuracies = [float(row.split()[2]) for row in rows]
    assert accuracies == sorted(accuracies, reverse=True)
    assert all(re.search(r" \d+\.\d \[\d+\.\d, \d+\.\d\] ", row) for row in rows)
    assert max(map(len, out.splitlines())) <= 80
    assert "headqa_sample" in table
