"""Ensembles from a spec to scored run folders: members are asked once, shared, waited for and fitted."""

import json

import numpy as np
import pytest

import medexam
from medexam.errors import SpecError
from medexam.metrics import fit_stacking


@pytest.fixture
def ensemble(replies):
    """One program with three models, and a control."""
    models = [{"program": "zero_shot", "model": replies(f"{{Answer: {said}}}", f"says_{said}")} for said in (2, 3, "?")]
    return {"kind": "ensemble", "members": [*models, "longest"]}


@pytest.fixture
def combine(ask):
    """The runs of an ensemble, its members first."""

    def run(program, name="e", limit=12, **settings):
        dataset = {"name": "headqa_sample", "years": [2016], "limit": limit}
        return list(ask({"name": name, "dataset": dataset, "program": program}, **settings))

    return run


def cell_of(run):
    return json.loads((run.folder / "spec.json").read_text())["cell"]


def test_members_are_runs_of_their_own_and_asked_once(combine, ensemble, asked) -> None:
    *members, combined = combine(ensemble)
    assert [(run.program, run.n) for run in members] == [*[("zero_shot", 12)] * 3, ("longest", 12)]
    assert len(asked.take()) == 36
    longest = members[-1].predictions
    for key, prediction in combined.predictions.items():
        assert prediction.votes == (2, 3, None, longest[key].answer)
        assert prediction.answer == (longest[key].answer if longest[key].answer in (2, 3) else 2)
    assert (combined.complete, combined.model) == (True, None)
    told = combined.metrics.ensemble.members
    assert [score.accuracy for score in told] == [run.metrics.accuracy for run in members]
    same = [np.mean([one.votes[n] == one.answer for one in combined.predictions.values()]) for n in range(4)]
    assert [score.same for score in told] == same

    before = {run.id: (run.folder / "spec.json").read_bytes() for run in members}
    again = combine(ensemble)
    mean = combine({**ensemble, "combine": "mean_probability"}, name="second")
    assert asked.prompts == []
    assert (again[-1].metrics, {run.id[:6] for run in mean}) == (combined.metrics, {"second"})
    wider = combine(ensemble, name="third", limit=18)[-1]
    assert (len(asked.take()), wider.n) == (18, 18)
    assert {run.id: (run.folder / "spec.json").read_bytes() for run in members} == before


def test_a_question_that_a_member_failed_waits_and_is_combined_later(combine, ensemble, asked, failing) -> None:
    hopeless = medexam.load_questions("headqa_sample", years=2016, limit=12)[3]
    failing(hopeless.stem)
    *_, combined = combine(ensemble)
    assert (combined.metrics.missing, combined.n) == (1, 11)
    failing()
    asked.take()
    *_, combined = combine(ensemble)
    assert (len(asked.prompts), combined.n) == (3, 12)
    assert combined.predictions[hopeless.key].votes[1] == 3


def test_a_member_that_answers_otherwise_is_combined_anew(combine, ensemble) -> None:
    first, *_, combined = combine(ensemble)
    log = first.folder / "predictions.jsonl"
    line = json.loads(log.read_text().splitlines()[0])
    with log.open("a") as stream:
        stream.write(json.dumps(line | {"answer": 4}) + "\n")
    *_, combined = combine(ensemble)
    assert combined.predictions[line["question"]].votes[0] == 4


def test_weights_are_fitted_on_other_exams_alone(combine, ensemble, asked) -> None:
    stacked = {**ensemble, "combine": "stacked", "train": {"years": [2013, 2014]}}
    *members, combined = combine(stacked)
    training = medexam.load_questions("headqa_sample", years=[2013, 2014])
    assert len(asked.take()) == 3 * (12 + len(training))
    assert all(run.n == 12 for run in (*members, combined))
    stored = []
    for run in members:
        lines = map(json.loads, (run.folder / "predictions.jsonl").read_text().splitlines())
        stored.append({line["question"]: line.get("answer") for line in lines})
    chances, rights = [], []
    for question in training:
        numbers = question.option_numbers
        answers = [answers[question.key] for answers in stored]
        rows = [[1 / len(numbers) if said is None else float(n == said) for n in numbers] for said in answers]
        chances.append(np.array(rows).T)
        rights.append([number == training.answers[question.key] for number in numbers])
    told = json.loads((combined.folder / "environment.json").read_text())["ensemble"]
    assert [one["weight"] for one in told["members"]] == pytest.approx(fit_stacking(chances, rights).weights)
    assert told["fitted"]["questions"] == len(training)
    assert not set(combined.predictions) & {one.key for one in training}
    assert f"fitted on {len(training)} questions of other exams" in (combined.folder / "report.md").read_text()
    assert combine(stacked)[-1].metrics == combined.metrics
    assert asked.prompts == []


def test_an_exam_that_is_asked_fits_no_weights_and_no_member_counts_twice(combine, ensemble) -> None:
    leaking = {**ensemble, "combine": "stacked", "train": {"years": [2015, 2016]}}
    with pytest.raises(SpecError, match=r"dataset and program\.train both hold questions of .* 2016"):
        combine(leaking)
    with pytest.raises(SpecError, match="two members of ensemble2-vote are the same run"):
        combine({**ensemble, "members": ["longest", "longest"]})


def test_identity_follows_members_their_order_and_the_rule(ensemble) -> None:
    def digest_of(**changes):
        document = {"name": "e", "dataset": "headqa_sample", "program": {**ensemble, **changes}}
        return medexam.plan(document).cells[-1]["spec_digest"]

    members = ensemble["members"]
    changed = [{"combine": "mean_probability"}, {"members": members[::-1]}, {"members": members[:2]}]
    assert len({digest_of(), *(digest_of(**change) for change in changed)}) == 4
    assert digest_of() == digest_of()
