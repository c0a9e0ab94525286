"""A gate passes what is shown to lose less than its margin, and nothing else."""

import json

import pytest

ZERO_SHOT, THOUGHT, LONGEST = {"kind": "zero_shot"}, {"kind": "chain_of_thought"}, {"kind": "longest"}


def test_a_run_passes_exactly_while_its_interval_stays_above_the_margin(medexam, make_run) -> None:
    # Each exam flips one question of five either way, the last loses all.
    runs = [make_run(ZERO_SHOT, "rwrrr"), make_run(THOUGHT, "wrrrr"), make_run(LONGEST, "w")]

    def judged(points: float) -> tuple[list[bool], str]:
        code, out, err = medexam("compare", *runs, "--fail-if", f"worse:{points}", "--json")
        pairs = json.loads(out)["pairs"]
        passed = [pair["measures"]["accuracy"]["difference"]["interval"][0] > -points / 100 for pair in pairs]
        assert code == (0 if all(passed) else 1)
        assert (err.count("medexam: FAILED: "), err.count("medexam: passed: ")) == (
            passed.count(False),
            passed.count(True),
        )
        return passed, err

    low = json.loads(medexam("compare", *runs, "--json")[1])["pairs"][0]["measures"]["accuracy"]["difference"][
        "interval"
    ][0]
    assert low == pytest.approx(-0.25)
    passed, err = judged(25.1)
    assert passed == [True, False]
    assert "passed: chain_of_thought is not worse than zero_shot by 25.1 percentage points" in err
    assert "FAILED: longest is worse than zero_shot by more than 25.1 percentage points" in err
    passed, err = judged(25)
    assert passed == [False, False]
    assert "FAILED: chain_of_thought may be worse than zero_shot by 25.0 percentage points or more" in err
    assert judged(99)[0] == [True, True]


def test_the_same_answers_pass_any_margin(medexam, make_run) -> None:
    runs = make_run(ZERO_SHOT, "rrw"), make_run(THOUGHT, "rrw")
    assert medexam("compare", *runs, "--fail-if", "worse:0.1")[0] == 0


@pytest.mark.parametrize("text", ["worse", "worse:", "worse:0", "worse:-1", "better:1", "worse:nan", "worse:inf"])
def test_any_other_gate_is_refused_with_the_way_out(medexam, text) -> None:
    code, _, err = medexam("compare", "a", "b", "--fail-if", text)
    assert (code, "give worse:POINTS, such as worse:1.0" in err) == (2, True)
