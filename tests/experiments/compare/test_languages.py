"""Runs in several languages: what is right in all, in some and in none."""

import json

import pytest

from medexam.measures import mcnemar_p

ZERO_SHOT = {"kind": "zero_shot"}


def test_questions_are_counted_by_where_they_are_right(medexam, make_run) -> None:
    runs = [
        make_run(ZERO_SHOT, "rrrrr" + "rrrr" + "w" + "wwwww" + "uuwww", language="es"),
        make_run(ZERO_SHOT, "rrrrr" + "wwww" + "r" + "wwwww" + "uwoou"),
    ]
    code, out, err = medexam("compare", *runs, "--json")
    assert code == 0, err
    document = json.loads(out)
    accuracy = document["pairs"][0]["measures"]["accuracy"]
    flips = accuracy["flips"]
    assert (flips["both_right"], flips["both_wrong"], document["questions"]) == (5, 10, 20)
    assert (flips["right_to_wrong"], flips["wrong_to_right"]) == (4, 1)
    assert accuracy["p"] == pytest.approx(mcnemar_p(4, 1))
    assert document["together"] == {"n": 20, "any_right": 10, "all_right": 5, "none_right": 10}
    assert any("also compares the languages" in note for note in document["notes"])
