"""Ensembles from a spec to scored run folders: members are asked once, shared, waited for and fitted."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from medexam.datasets import load_exam_set
from medexam.errors import SpecError
from medexam.experiments import Runner, plan_experiment, plan_resume, run_report
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.metrics import fit_stacking
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from watching import Silent


class Watcher(Silent):
    def __init__(self) -> None:
        self.cells = []

    def cell_starts(self, planned) -> None:
        self.cells.append((planned.cell.program.kind, len(planned.pending)))


@pytest.fixture
def replying(tmp_path):
    """`replying("2")` -> the `model` part of a spec whose model always gives that reply."""

    def make(answer):
        path = tmp_path / f"replies_{answer}.yaml"
        path.write_text(yaml.safe_dump({"*": f"{{Answer: {answer}}}"}))
        return {"engine": "scripted", "path": str(path)}

    return make


@pytest.fixture
def ensemble(replying):
    """One program with three models, and a control."""
    models = [{"program": "zero_shot", "model": replying(answer)} for answer in ("2", "3", "none")]
    return {"kind": "ensemble", "members": [*models, "longest"]}


def carry_out(tmp_path, program, name="e", overrides=None, dataset=None, matrix=None):
    document = {
        "name": name,
        "dataset": {"name": "headqa_sample", "years": [2016], "limit": 12, **(dataset or {})},
        "program": program,
        **({"matrix": {"program": matrix}} if matrix else {}),
    }
    plan = plan_experiment(document, overrides or {}, runs_dir=tmp_path / "runs")
    watcher = Watcher()
    runs, stop = Runner(plan, watcher).run()
    assert stop is None
    return runs, watcher


def test_members_are_runs_of_their_own_and_asked_once(tmp_path, ensemble, replying) -> None:
    runs, watcher = carry_out(tmp_path, ensemble)
    assert watcher.cells == [("zero_shot", 12)] * 3 + [("longest", 12), ("ensemble", 12)]
    *members, combined = runs
    longest = members[-1].folder.read_predictions()
    for key, prediction in combined.folder.read_predictions().items():
        answer = longest[key].answer
        assert prediction.votes == (2, 3, None, answer)
        assert prediction.answer == (answer if answer in (2, 3) else 2)
    assert combined.complete
    assert combined.model is None
    again, watcher = carry_out(tmp_path, ensemble)
    assert watcher.cells == []
    assert again[-1].metrics == combined.metrics
    # Listed as a cell as well, a member is the same run.
    listed = {"kind": "zero_shot"}
    listing, watcher = carry_out(tmp_path, listed, matrix=[ensemble, listed], overrides={"model": replying("2")})
    assert watcher.cells == []
    assert len(listing) == 5
    assert len({run.folder.path for run in listing}) == 5


def test_a_run_of_another_experiment_is_shared_and_stays_as_it_is(tmp_path, ensemble) -> None:
    runs, _ = carry_out(tmp_path, ensemble, name="first")
    before = {run.folder.name: (run.folder.path / "spec.json").read_bytes() for run in runs}
    other, watcher = carry_out(tmp_path, {**ensemble, "combine": "mean_probability"}, name="second")
    assert watcher.cells == [("ensemble", 12)]
    assert [run.folder.name[:6] for run in other] == ["second"]
    # More questions are asked into the runs that lack them, whose own selection stays.
    wider, watcher = carry_out(tmp_path, ensemble, name="third", dataset={"limit": 18})
    assert [n for _, n in watcher.cells] == [6] * 4 + [18]
    assert wider[-1].metrics.n == 18
    assert all(run.metrics.n == 12 for run in wider[:-1])
    for run in runs:
        assert (run.folder.path / "spec.json").read_bytes() == before[run.folder.name]


def test_a_question_that_a_member_failed_waits_and_is_combined_on_resume(tmp_path, ensemble, replying) -> None:
    broken = ensemble["members"][1]["model"]["path"]
    exams = load_exam_set(DatasetSpec(name="headqa_sample", years=(2016,), limit=12))
    hopeless = exams.questions[3]
    table = {hopeless.stem: {"error": "server"}, "*": "{Answer: 3}"}
    Path(broken).write_text(yaml.safe_dump(table))
    runs, _ = carry_out(tmp_path, ensemble)
    combined = runs[-1]
    assert (combined.metrics.missing, combined.metrics.n) == (1, 11)
    assert runs[1].metrics.failed == 1
    # The script is part of the member's identity, so the fault is cured in the stored run instead.
    folder = runs[1].folder
    cured = next(one for one in folder.read_predictions().values() if one.status is Status.ANSWERED)
    with folder.appending() as log:
        log.append(cured.model_copy(update={"question": hopeless.key}))
    resumed, stop = Runner(plan_resume(str(combined.folder.path), runs_dir=tmp_path), Silent()).run()
    assert stop is None
    assert resumed[-1].folder.path == combined.folder.path
    assert resumed[-1].metrics.n == 12
    assert resumed[-1].folder.read_predictions()[hopeless.key].votes[1] == 3


def test_a_member_that_answers_otherwise_is_combined_anew(tmp_path, ensemble) -> None:
    runs, _ = carry_out(tmp_path, ensemble)
    folder = runs[0].folder
    key, before = next(iter(folder.read_predictions().items()))
    with folder.appending() as log:
        log.append(before.model_copy(update={"answer": 4}))
    again, watcher = carry_out(tmp_path, ensemble)
    assert watcher.cells == [("ensemble", 1)]
    assert again[-1].folder.read_predictions()[key].votes[0] == 4


def test_weights_are_fitted_on_other_exams_alone(tmp_path, ensemble) -> None:
    stacked = {**ensemble, "combine": "stacked", "train": {"years": [2013, 2014]}}
    runs, watcher = carry_out(tmp_path, stacked)
    training = load_exam_set(DatasetSpec(name="headqa_sample", years=(2013, 2014)))
    n = len(training.questions)
    assert watcher.cells == [("zero_shot", 12 + n)] * 3 + [("longest", 12 + n), ("ensemble", 12)]
    *members, combined = runs
    assert all(run.metrics.n == 12 for run in runs)
    stored = [run.folder.read_predictions() for run in members]
    chances, rights = [], []
    for question in training.questions:
        numbers, columns = question.option_numbers, []
        for predictions in stored:
            answer = predictions[question.key].answer
            columns.append([1 / len(numbers) if answer is None else float(number == answer) for number in numbers])
        chances.append(np.array(columns).T)
        rights.append([number == training.golds[question.key].number for number in numbers])
    fitted = fit_stacking(chances, rights)
    told = combined.environment["ensemble"]
    assert [member["weight"] for member in told["members"]] == pytest.approx(fitted.weights)
    assert told["fitted"]["questions"] == n
    assert not set(combined.folder.read_predictions()) & {one.key for one in training.questions}
    report = run_report(combined, combined.folder.read_predictions())
    assert "## Members" in report
    assert f"fitted on {n} questions of other exams" in report
    again, watcher = carry_out(tmp_path, stacked)
    assert watcher.cells == []
    assert again[-1].metrics == combined.metrics


def test_an_exam_that_is_asked_fits_no_weights(tmp_path, ensemble) -> None:
    leaking = {**ensemble, "combine": "stacked", "train": {"years": [2015, 2016]}}
    with pytest.raises(
        SpecError, match=r"dataset and program\.train both hold questions of .* 2016: an exam may serve"
    ):
        carry_out(tmp_path, leaking)
    twice = {**ensemble, "members": ["longest", "longest"]}
    with pytest.raises(SpecError, match="two members of ensemble2-vote are the same run"):
        carry_out(tmp_path, twice)


def test_digests_follow_members_their_order_the_rule_and_the_training_golds(tmp_path, ensemble) -> None:
    def digest_of(**changes):
        document = {"name": "e", "dataset": "headqa_sample", "program": {**ensemble, **changes}}
        return plan_experiment(document, {}, runs_dir=tmp_path).cells[-1].spec_digest

    stacked = {"combine": "stacked", "train": {"years": [2013]}}
    found = [
        digest_of(),
        digest_of(combine="mean_probability"),
        digest_of(members=ensemble["members"][::-1]),
        digest_of(members=ensemble["members"][:2]),
    ]
    with pytest.raises(SpecError, match="both hold questions"):
        digest_of(**stacked)
    assert len(set(found)) == 4
    assert digest_of() == found[0]


def test_metrics_of_members_are_those_of_their_own_runs(tmp_path, ensemble) -> None:
    *members, combined = carry_out(tmp_path, ensemble)[0]
    told = combined.metrics.ensemble
    assert [score.accuracy for score in told.members] == [run.metrics.accuracy for run in members]
    lines = [json.loads(line) for line in (combined.folder.path / PREDICTIONS).read_text().splitlines()]
    assert [score.same for score in told.members] == [
        np.mean([line["votes"][place] == line["answer"] for line in lines]) for place in range(4)
    ]
    assert combined.metrics.votes is None
