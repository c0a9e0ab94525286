"""`medexam cliniqlink score` and `board` on submissions by hand."""

import json
from pathlib import Path

import pytest
from task_data import write_cliniqlink, write_submission

pytestmark = pytest.mark.model
pytest.importorskip("sentence_transformers")


@pytest.fixture
def data(tmp_path) -> Path:
    return write_cliniqlink(tmp_path / "questions")


def test_a_submission_is_scored_by_both_profiles_and_its_flaws_are_counted(medexam, data, tmp_path) -> None:
    team = write_submission(tmp_path / "team", true_false=["True", "The answer is False"], short=["What is BPH?"])
    code, out, err = medexam("cliniqlink", "score", team, "--data", data)
    assert code == 0, err
    assert "Lost by form" in out
    code, out, _ = medexam("cliniqlink", "score", team, "--data", data, "--json")
    (document,) = json.loads(out)
    measures, counts = document["metrics"]["measures"], document["metrics"]["tallies"]["Answers"]
    assert measures["published"]["value"] == pytest.approx((0.5 + 5) / 7)
    assert measures["published_forgiving"]["value"] == pytest.approx(6 / 7)
    assert (counts["true_false"]["malformed: no verdict"], counts["short"]["malformed: echo"]) == (1, 1)


def test_a_board_ranks_and_relates(medexam, data, tmp_path) -> None:
    write_submission(tmp_path / "teams/good-70B")
    write_submission(tmp_path / "teams/fair_7b", true_false=["True", "True"], list=["Liver"])
    write_submission(tmp_path / "teams/poor-135M", true_false=["", ""], list=["Heart"], multi_hop_inverse=["Step 1."])
    code, out, err = medexam("cliniqlink", "board", "teams", "--data", data, "--json")
    assert code == 0, err
    board = json.loads(out)
    assert [(entry["rank"], entry["submission"], entry["size"]) for entry in board] == [
        (1, "good-70B", 70),
        (2, "fair_7b", 7),
        (3, "poor-135M", 0.135),
    ]


def test_questions_that_a_submission_lacks_are_said_and_counted_by_choice(medexam, data, tmp_path) -> None:
    part = write_submission(tmp_path / "teams/part", list=None)
    code, out, err = medexam("cliniqlink", "score", part, "--data", data, "--json")
    assert code == 0
    assert "1 of the data set's 8 questions are not in it" in err
    assert json.loads(out)[0]["metrics"]["measures"]["paper"]["value"] is None
    code, out, _ = medexam("cliniqlink", "score", part, "--data", data, "--json", "--missing", "zero")
    assert json.loads(out)[0]["metrics"]["measures"]["paper"]["value"] == pytest.approx(6 / 7)


def test_responses_may_be_wrapped_as_pipelines_return_them(medexam, data, tmp_path) -> None:
    wrapped = [[[{"generated_text": "<think>b</think> True"}]], {"text": " False "}]
    team = write_submission(tmp_path / "team", true_false=wrapped, multiple_choice=[[]])
    _, out, _ = medexam("cliniqlink", "score", team, "--data", data, "--json")
    groups = json.loads(out)[0]["metrics"]["by"]["group"]
    assert [groups[kind]["measures"]["published"]["value"] for kind in ("true_false", "multiple_choice")] == [1.0, 0.0]
