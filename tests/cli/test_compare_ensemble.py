"""`medexam compare --ensemble`: stored runs together, beside each of them, without a model and without a trace."""

import json
from collections import Counter

import pytest
from scipy.stats import binomtest

import medexam as package
from medexam import compare
from medexam.datasets import load_exam_set
from medexam.experiments import RunFolder
from medexam.specs import DatasetSpec


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three controls on the same questions, and an ensemble of two of them, made once for all tests."""
    home = tmp_path_factory.mktemp("controls")
    members = ["longest", {"kind": "blind", "option": 2}]
    spec = {
        "name": "controls",
        "dataset": "headqa_sample",
        "program": "longest",
        "matrix": {"program": [*members, {"kind": "random"}, {"kind": "ensemble", "members": members}]},
    }
    package.run(spec, runs_dir=home / "runs", track=False)
    found = {path.name.split("-")[1]: RunFolder(path) for path in (home / "runs").glob("controls-*")}
    return [found[name] for name in ("longest", "blind_2", "random", "ensemble2_vote")]


def _files(runs):
    return sorted(path for path in runs[0].path.parent.rglob("*") if ".lock" not in path.name)


def test_the_ensemble_of_stored_runs_is_scored_and_tested_against_each(medexam, runs) -> None:
    before = _files(runs)
    code, out, err = medexam("compare", *(run.path for run in runs[:3]), "--ensemble", "vote", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["baseline"], found["runs"][0]["run_dir"]) == ("ensemble3-vote", None)
    exams = load_exam_set(DatasetSpec(name="headqa_sample"))
    answers = [run.read_predictions() for run in runs[:3]]
    right = []
    for question in exams.questions:
        votes = [of[question.key].answer for of in answers]
        # The options' mean probability is their share of the votes, so of equals the first member's counts.
        winner = max(votes, key=lambda answer: (Counter(votes)[answer], -votes.index(answer)))
        right.append(exams.golds[question.key].accepts(winner))
    assert found["runs"][0]["metrics"]["right"] == sum(right)
    for of, run, pair in zip(answers, found["runs"][1:], found["pairs"], strict=True):
        its = [exams.golds[question.key].accepts(of[question.key].answer) for question in exams.questions]
        assert run["metrics"]["right"] == sum(its)
        gained = sum(one and not other for one, other in zip(its, right, strict=True))
        lost = sum(other and not one for one, other in zip(its, right, strict=True))
        known = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
        assert pair["p"] == pytest.approx(known)
    assert _files(runs) == before
    same = compare(*(run.path for run in runs[:3]), ensemble="vote")
    assert same.document()["runs"][0]["metrics"] == found["runs"][0]["metrics"]


def test_runs_that_are_ensembles_are_compared_and_are_no_members(medexam, runs, tmp_path) -> None:
    code, out, _ = medexam(
        "compare", *(run.path for run in runs), "--ensemble", "mean_probability", "--markdown", "found.md"
    )
    assert code == 0
    assert "ensemble3-mean_probability" in out
    assert "ensemble2-vote" in (tmp_path / "found.md").read_text()
    code, _, err = medexam("compare", runs[0].path, runs[3].path, "--ensemble", "vote")
    assert code == 2
    assert "needs two runs or more, and none of them may be an ensemble" in err


def test_what_does_not_go_with_it_is_refused(medexam, runs) -> None:
    for flag in ("--languages", "--track"):
        code, _, err = medexam("compare", runs[0].path, runs[1].path, "--ensemble", "vote", flag)
        assert code == 2
        assert "--ensemble compares runs as they are and stores nothing" in err
    assert medexam("compare", runs[0].path, runs[1].path, "--ensemble", "stacked")[0] == 2


def test_an_ensemble_is_reported_resumed_and_put_on_a_page(medexam, runs, tmp_path) -> None:
    code, out, _ = medexam("report", runs[3].path, "--html", "page.html")
    assert code == 0
    assert "Members" in out
    assert "blind-2" in (tmp_path / "page.html").read_text()
    code, out, err = medexam("run", "--resume", runs[3].path, "--json")
    assert code == 0, err
    assert json.loads(out)[-1]["run_id"] == runs[3].name
