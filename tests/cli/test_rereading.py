"""Stored replies are read by today's reader where somebody asks for it; nothing is asked, and nothing is written."""

import json
from pathlib import Path

import pytest
import yaml

import medexam

STEPS = {"name": "steps", "steps": [{"ask": "question, options -> hint: str"}, {"use": "chain_of_thought"}]}
PROGRAMS = {
    "zero_shot": "zero_shot",
    "guided": {"kind": "chain_of_thought", "answer_format": "guided"},
    "votes": {"kind": "chain_of_thought", "samples": 3},
    "signature": {"kind": "signature", "signature": "question, options -> answer: int"},
    "steps": STEPS,
}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """`make(program)` -> the folder of its run on four questions."""
    monkeypatch.chdir(tmp_path)
    field = "[[ ## answer ## ]]\n2\n\n[[ ## hint ## ]]\nSo."
    Path("replies.yaml").write_text(yaml.safe_dump({"*": f"Because.\n{{Answer: 2}}\n\n{field}"}))

    def run(program):
        document = {
            "name": "reread",
            "dataset": {"name": "headqa_sample", "limit": 4},
            "model": {"engine": "scripted", "path": "replies.yaml", "temperature": 0.7},
            "program": program,
        }
        (made,) = medexam.run(document, runs_dir="runs", progress=False, track=False)
        return made.folder

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_replies_are_read_anew_without_model_and_data(make, medexam, name) -> None:
    folder = make(PROGRAMS[name])
    lines = folder / "predictions.jsonl"
    kept = lines.read_bytes()
    said = medexam("report", str(folder), "--reread")[2]
    assert "0 of 4 answers are read otherwise by today's reader" in said
    # As if another reader had read the first one's reply otherwise.
    first, *others = kept.decode().splitlines(keepends=True)
    line = json.loads(first)
    assert line["status"] == "answered"
    other = next(number for number in range(1, 5) if number != line["answer"])
    lines.write_text(json.dumps(line | {"answer": other}) + "\n" + "".join(others))
    edited = lines.read_bytes()
    Path("replies.yaml").unlink()
    said = medexam("report", str(folder), "--reread")[2]
    assert "1 of 4 answers are read otherwise by today's reader" in said
    assert lines.read_bytes() == edited


def test_a_reply_to_another_prompt_is_left_as_it_is_and_counted(make, medexam) -> None:
    folder = make("zero_shot")
    lines = folder / "predictions.jsonl"
    lines.write_text(lines.read_text().replace("Which", "What").replace("1. ", "1: "))
    said = medexam("report", str(folder), "--reread")[2]
    assert "4 cannot be read anew, since other calls would be made today" in said
