"""What `medexam run` says first of the runs that it made, and which keys of a spec its short flags keep."""

import json

import pytest

RIGHT, WRONG = "{Answer: 1}", "{Answer: 2}"


@pytest.mark.parametrize(
    ("kinds", "formats"),
    [("zero_shot,chain_of_thought", ["guided", "guided"]), ("few_shot,random", ["guided", None]), ("longest", [None])],
)
def test_kinds_that_a_flag_names_keep_the_other_keys_of_the_spec(medexam, spec, kinds, formats) -> None:
    path = spec(RIGHT, program={"kind": "zero_shot", "answer_format": "guided"})
    code, out, err = medexam("plan", path, "--program", kinds, "--json")
    assert code == 0, err
    labels = [cell["program"] for cell in json.loads(out)]
    assert ["guided" if label.endswith("-guided") else None for label in labels] == formats


def test_a_format_in_the_name_of_a_kind_replaces_that_of_the_spec(medexam, spec) -> None:
    path = spec(RIGHT, program={"kind": "zero_shot", "answer_format": "guided"})
    out = medexam("plan", path, "--program", "zero_shot-free,chain_of_thought-guided", "--json")[1]
    assert [cell["program"] for cell in json.loads(out)] == ["zero_shot", "chain_of_thought-guided"]


def test_run_says_the_verdict_first_and_has_a_line_a_run_at_80_columns(medexam, spec, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    programs = ["random", "longest", "blind"]
    path = spec(RIGHT, dataset={"name": "headqa_sample"}, program="random", matrix={"program": programs})
    code, out, err = medexam("run", path)
    assert code == 0, err
    first = " ".join(out.partition("\n\n")[0].split())
    assert " in accuracy; no difference from " in first
    for words in (" percentage points, ", "McNemar's p = ", " after Holm."):
        assert words in first
    lines = out.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("Program "))
    rows = lines[begin + 2 : begin + 5]
    assert sorted(row.split()[0] for row in rows) == ["blind-1", "longest", "random"]
    assert all(len(line) <= 80 for line in lines[begin : begin + 5])
    assert lines.index(rows[0]) < 12
