"""Cells that are asked in blocks until their comparisons are decided; the scripted engine replaces the server."""

import json

import pytest
import yaml

from medexam.benchmarks import find_benchmark
from medexam.errors import RunFolderError, SpecError
from medexam.experiments import RunFolder, Runner, Stop, compare_runs, plan_experiment, plan_resume
from medexam.experiments.run.spending import Limits
from medexam.specs import DatasetSpec
from watching import Answers


@pytest.fixture(scope="module")
def sample():
    spec = DatasetSpec()
    return find_benchmark(spec).load(spec)


@pytest.fixture
def document(sample, tmp_path):
    """Three scripted models: right one time in four, always right, and right where the first is but for few."""

    def model(name, right):
        replies = {
            question.stem: f"{{Answer: {_answer(sample.golds[question.key].number, right(place))}}}"
            for place, question in enumerate(sample.questions)
        }
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(replies))
        return {"engine": "scripted", "path": str(path)}

    return {
        "name": "few",
        "dataset": {"name": "headqa_sample"},
        "stop_when": {"difference": 10},
        "matrix": {
            "model": [
                model("base", lambda place: place % 4 == 0),
                model("good", lambda _: True),
                model("same", lambda place: place % 4 == 0 and place != 8),
            ]
        },
    }


def _answer(gold: int, right: bool) -> int:
    return gold if right else gold % 4 + 1


def _run(document, tmp_path, limits=None, **overrides):
    watcher = Answers()
    plan = plan_experiment(document, overrides, runs_dir=tmp_path / "runs")
    runs, stop = Runner(plan, watcher, **({"limits": limits} if limits else {})).run()
    return runs, stop, watcher.answers


def test_comparisons_end_early_and_every_look_is_kept(document, tmp_path) -> None:
    (base, good, same), stop, answers = _run(document, tmp_path)
    assert stop is None
    ended = [run.record.stopped for run in (base, good, same)]
    assert [one.ended for one in ended] == ["all comparisons ended", "better", "no difference"]
    assert ended[1].asked < ended[2].asked == ended[0].asked < 120
    assert len(answers) == sum(one.asked for one in ended)
    for run, one in zip((base, good, same), ended, strict=True):
        assert run.complete
        assert run.metrics.n == len(run.record.questions) == one.asked
        assert (one.questions, one.baseline) == (120, base.record.run_id)
        # The blocks are the same questions in every cell.
        assert set(good.record.questions) <= set(run.record.questions)
    assert [look.asked for look in ended[1].looks] == list(range(10, ended[1].asked + 1, 10))
    last = ended[1].looks[-1]
    before, after = (run.folder.read_predictions() for run in (base, good))
    assert last.gained == sum(before[key].answer != after[key].answer for key in good.record.questions)
    assert (last.lost, last.better >= 2 / ended[1].level, last.interval[0] > 0) == (0, True, True)
    assert ended[1].level == 0.025
    assert f"stopped after {ended[1].asked} of 120 questions" in good.warnings[-1]
    assert good.warnings[-1][1:] in (good.folder.path / "report.md").read_text()
    found = compare_runs([base.folder, good.folder])
    assert any("stopped after" in note for note in found.notes)


def test_the_same_spec_again_asks_nothing_and_decides_the_same(document, tmp_path) -> None:
    first, _, _ = _run(document, tmp_path)
    plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
    assert [len(cell.pending) for cell in plan.cells] == [0, 0, 0]
    again, stop, answers = _run(document, tmp_path)
    assert (answers, stop) == ([], None)
    assert [run.record for run in again] == [run.record for run in first]
    (resumed,), _ = Runner(plan_resume(str(first[1].folder.path), runs_dir=tmp_path / "runs"), Answers()).run()
    assert resumed.record.stopped == first[1].record.stopped


def test_a_budget_ends_it_between_blocks_and_the_same_command_goes_on(document, tmp_path) -> None:
    runs, stop, answers = _run(document, tmp_path, limits=Limits(tokens=3000))
    assert stop is Stop.TOKENS
    assert answers
    assert not any(run.complete for run in runs)
    assert runs[0].record.stopped.ended is None
    with pytest.raises(RunFolderError, match="cannot continue alone"):
        plan_resume(str(runs[0].folder.path), runs_dir=tmp_path / "runs")
    continued, stop, more = _run(document, tmp_path)
    assert stop is None
    assert len(answers) + len(more) == sum(run.metrics.n for run in continued)
    assert [run.record.stopped.ended for run in continued] == ["all comparisons ended", "better", "no difference"]


def test_without_the_rule_the_rest_is_asked_under_the_same_digest(document, tmp_path) -> None:
    stopped, _, before = _run(document, tmp_path)
    del document["stop_when"]
    whole, _, answers = _run(document, tmp_path)
    assert len(before) + len(answers) == 360
    assert [run.record.spec_digest for run in whole] == [run.record.spec_digest for run in stopped]
    assert [run.record.stopped for run in whole] == [None, None, None]
    assert "stopped" not in json.loads((whole[0].folder.path / "spec.json").read_text())
    assert RunFolder(whole[0].folder.path).read_record() == whole[0].folder.read_record()


def test_a_server_that_is_gone_ends_it_after_one_block(document, tmp_path) -> None:
    gone = tmp_path / "gone.yaml"
    gone.write_text(yaml.safe_dump({"*": {"error": "context"}, "never": {"error": "server"}}))
    document["matrix"]["model"][1]["path"] = str(gone)
    broken = tmp_path / "broken.yaml"
    broken.write_text(yaml.safe_dump({"*": {"error": "server"}}))
    document["matrix"]["model"][0]["path"] = str(broken)
    runs, stop, answers = _run(document, tmp_path)
    assert stop is None
    assert len(answers) == 30
    assert [run.complete for run in runs] == [False, False, False]


def test_too_few_questions_are_said_before_anything_is_asked(document, tmp_path) -> None:
    plan = plan_experiment(document, {"stop_when.difference": 3}, runs_dir=tmp_path / "runs")
    assert any("120 questions detect a difference of 3 points with less than 80 % power" in line for line in plan.news)
    assert plan_experiment(document, {"stop_when": None}, runs_dir=tmp_path / "runs").stopping is None


def test_the_order_is_that_of_the_seed(document, tmp_path) -> None:
    orders = [
        plan_experiment(document, {"stop_when.seed": seed}, runs_dir=tmp_path / "runs").stopping.order
        for seed in (0, 0, 1)
    ]
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[0])) == 120


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"matrix": {}}, "this spec has one"),
        ({"matrix": {"dataset.years": [[2013], [2014]]}}, "select different ones"),
        ({"stop_when": {"difference": 5, "baseline": "few_shot"}}, "no cell is called 'few_shot'"),
        ({"stop_when": {"difference": 5, "baseline": "zero_shot"}}, "3 cells are called 'zero_shot'"),
        ({"stop_when": {"difference": 0}}, "stop_when.difference: input should be greater than 0"),
        ({"stop_when": {"power": 0.8}}, "stop_when.difference: is missing"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(document, tmp_path, change, said) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        plan_experiment({**document, **change}, {}, runs_dir=tmp_path / "runs")
    assert "\n" not in str(caught.value)


def test_a_named_baseline_is_compared_with(document, tmp_path) -> None:
    document["matrix"] = {"program": ["longest", "random", {"kind": "blind", "option": 1}]}
    document["stop_when"] = {"difference": 30, "baseline": "random"}
    plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
    assert plan.stopping.baseline == 1
    runs, _, _ = _run(document, tmp_path)
    assert {run.record.stopped.baseline for run in runs} == {runs[1].record.run_id}


def test_repeats_are_of_whole_runs(document, tmp_path) -> None:
    with pytest.raises(SpecError, match="stop_when=null"):
        plan_experiment(document, {}, runs_dir=tmp_path / "runs", repeat=2)
