"""`medexam audit judge`: which answers are judged, by which prompt, and how far people agree."""

import csv
import json
from pathlib import Path

import pytest

KINDS = ("knowledge", "reading", "reasoning", "calculation", "invention", "unexplained", "key", "other")


@pytest.fixture
def judge(medexam, tmp_path):
    """`judge(...)`: the output of `medexam audit judge` over twelve answers by a judge who always says `reading`."""
    Path("first.json").write_text(json.dumps({"*": "It is 1, because. {Answer: 1}"}))
    Path("judge.json").write_text(json.dumps({"*": "reading"}))
    scripted = ("--set", "model=scripted", "--set")
    code, _, err = medexam("run", "headqa_sample", "--limit", 12, *scripted, "model.path=first.json", "--runs-dir", "r")
    assert code == 0, err

    def call(*options, expected=0):
        code, out, err = medexam(
            "audit", "judge", "r", "--model", "scripted", "--set", "model.path=judge.json", "--out", "judged", *options
        )
        assert code == expected, err
        return out, err

    return call


def _fill(name: str, kinds: list[str]) -> None:
    with Path("judged/sheet.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with Path(f"judged/{name}.csv").open("w", encoding="utf-8", newline="") as stream:
        sheet = csv.DictWriter(stream, list(rows[0]))
        sheet.writeheader()
        sheet.writerows({**row, "category": kind} for row, kind in zip(rows, kinds, strict=False))


def test_wrong_answers_are_judged_and_compared_with_people(judge) -> None:
    document = json.loads(judge("--json")[0])
    answers = [json.loads(line) for line in Path("judged/wrong_answers.jsonl").read_text().splitlines()]
    assert document["metrics"]["measures"]["reading"]["n"] == len(answers) > 6
    assert all(f"- {kind}: " in document["instructions"] for kind in KINDS)
    assert document["costs"]["prompt_tokens"]["total"] > 0
    assert document["agreement"] == []
    assert all(answer["reply"] == "It is 1, because. {Answer: 1}" for answer in answers)
    assert not any(answer["run"] in Path("judged/sheet.csv").read_text() for answer in answers)
    _fill("ann", ["reading", "reading", "key"])
    _fill("ben", ["reading", "", "Key"])
    again = json.loads(judge("--json")[0])
    assert [(pair["raters"], pair["n"], pair["same"]) for pair in again["agreement"]] == [
        (["scripted", "ann"], 3, pytest.approx(2 / 3)),
        (["scripted", "ben"], 2, 0.5),
        (["ann", "ben"], 2, 1.0),
    ]
    assert again["run"] == document["run"]
    assert "unexplained: an answer without any reason" in again["instructions"]


def test_doubtful_input_is_refused(judge) -> None:
    judge()
    _fill("ann", ["readng"])
    assert "category is 'readng': give one of knowledge, reading" in judge(expected=2)[1]
    Path("judged/ann.csv").unlink()
    assert "holds other wrong answers" in judge("--per-group", 1, expected=2)[1]
    Path("own.md").write_text("Say what is wrong.")
    assert "list no kinds of errors" in judge("--instructions", "own.md", expected=2)[1]
    assert "there is no error to judge" in judge("--below", 0, expected=2)[1]
