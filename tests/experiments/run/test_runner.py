"""From a spec to scored run folders, with the scripted engine in the server's place."""

import asyncio
import json

import pytest
import yaml

from medexam.errors import EndpointUnreachableError, RunFolderError
from medexam.experiments import Runner, Stop, plan_experiment, plan_resume
from medexam.experiments.run.runner import in_prefix_order
from medexam.experiments.run.spending import Limits
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.predictions import Status
from watching import Silent


class Watcher(Silent):
    """Counts, and interrupts the run once so many questions are begun."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.engines = 0
        self.begun = 0
        self.answers = 0
        self._stop_after = stop_after

    def engine_starts(self, model) -> None:
        self.engines += 1

    def asked(self) -> None:
        self.begun += 1
        if self.begun == self._stop_after:
            for task in asyncio.all_tasks():
                if task.get_coro().__name__ == "hold":
                    task.cancel()

    def answered(self, prediction) -> None:
        self.answers += 1


def _run(spec, tmp_path, watcher=None, overrides=None, **options):
    plan = plan_experiment(spec, overrides or {}, runs_dir=tmp_path / "runs", **options)
    watcher = watcher or Watcher()
    runs, interrupted = Runner(plan, watcher).run()
    return runs, interrupted, watcher


def _resume(run, tmp_path):
    watcher = Watcher()
    (resumed,), stop = Runner(plan_resume(str(run.folder.path), runs_dir=tmp_path / "elsewhere"), watcher).run()
    assert stop is None
    return resumed, watcher


def test_a_run_is_asked_scored_and_kept(spec, tmp_path) -> None:
    (run,), interrupted, watcher = _run(spec, tmp_path)
    assert not interrupted
    assert watcher.answers == run.metrics.n == 12
    assert run.metrics.right + run.metrics.wrong == 12
    assert {p.name for p in run.folder.path.iterdir() if not p.name.startswith(".")} == {
        "spec.json",
        "environment.json",
        "models.json",
        "predictions.jsonl",
        "predictions.parquet",
        "metrics.json",
        "report.md",
        "made_from.json",
    }
    assert run.environment["engine"]["engine"] == "scripted"
    lines = (run.folder.path / PREDICTIONS).read_text().splitlines()
    assert {json.loads(line)["spec_digest"] for line in lines} == {run.record.spec_digest}
    assert "gold" not in lines[0]


class Moments(Watcher):
    """Keeps when the folder says that its run was begun, while the run asks."""

    def __init__(self, folder) -> None:
        super().__init__()
        self.folder = folder
        self.said = set()

    def answered(self, prediction) -> None:
        (environment,) = self.folder.glob("*/environment.json")
        self.said.add(json.loads(environment.read_bytes())["started_at"])


def test_a_run_was_begun_when_it_was_begun(spec, tmp_path) -> None:
    (run,), _, watcher = _run(spec, tmp_path, Moments(tmp_path / "runs"))
    assert watcher.said == {run.environment["started_at"]}
    assert run.environment["started_at"] < run.environment["ended_at"]


def test_the_same_spec_again_asks_nothing(spec, tmp_path) -> None:
    (first,), _, _ = _run(spec, tmp_path)
    (again,), _, watcher = _run(spec, tmp_path)
    assert (watcher.answers, watcher.engines) == (0, 0)
    assert again.metrics == first.metrics
    assert again.environment == first.environment


def test_a_finished_run_is_scored_again_only_where_something_changed(spec, tmp_path, monkeypatch) -> None:
    (first,), _, _ = _run(spec, tmp_path)
    with monkeypatch.context() as without:
        without.setattr("medexam.experiments.run.runner.score_cell", None)
        (again,), _, _ = _run(spec, tmp_path)
    assert again == first
    (first.folder.path / "metrics.json").unlink()
    (made,), _, _ = _run(spec, tmp_path)
    assert made.metrics == first.metrics
    assert (first.folder.path / "metrics.json").exists()


def test_a_wider_selection_asks_the_new_questions_only(spec, tmp_path) -> None:
    _run(spec, tmp_path)
    (run,), _, watcher = _run(spec, tmp_path, overrides={"dataset.limit": 30})
    assert (watcher.answers, run.metrics.n) == (18, 30)
    (run,), _, watcher = _run(spec, tmp_path)
    assert (watcher.answers, run.metrics.n) == (0, 12)


def test_fresh_starts_another_run_beside_the_first(spec, tmp_path) -> None:
    (first,), _, _ = _run(spec, tmp_path)
    (second,), _, watcher = _run(spec, tmp_path, fresh=True)
    assert watcher.answers == 12
    assert second.record.run_id == f"{first.record.run_id}-2"
    (third,), _, watcher = _run(spec, tmp_path)
    assert (watcher.answers, third.record.run_id) == (0, second.record.run_id)


def test_other_words_are_another_run(spec, tmp_path) -> None:
    (first,), _, _ = _run(spec, tmp_path)
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: 'Choose. $form'}")
    (second,), _, _ = _run(spec, tmp_path, overrides={"program.prompt": str(words)})
    words.write_text("en: {zero_shot: 'Choose! $form'}")
    (third,), _, _ = _run(spec, tmp_path, overrides={"program.prompt": str(words)})
    assert len({run.record.spec_digest for run in (first, second, third)}) == 3


def test_an_interrupted_run_keeps_its_answers_and_is_resumed(spec, tmp_path) -> None:
    spec["dataset"]["limit"] = 110
    (run,), stop, watcher = _run(spec, tmp_path, Watcher(stop_after=5))
    assert stop is Stop.INTERRUPTED
    assert watcher.begun == watcher.answers == run.metrics.n
    kept = run.metrics.n
    assert 5 <= kept < 110
    assert run.status == "incomplete"
    resumed, watcher = _resume(run, tmp_path)
    assert (watcher.answers, resumed.metrics.n) == (110 - kept, 110)
    assert resumed.environment["asked"] == 110
    assert resumed.record == run.record


def test_resuming_a_complete_run_asks_nothing(spec, tmp_path) -> None:
    (run,), _, _ = _run(spec, tmp_path)
    resumed, watcher = _resume(run, tmp_path)
    assert (watcher.answers, watcher.engines) == (0, 0)
    assert resumed == run


def test_a_resumed_run_keeps_its_own_questions_and_its_place_in_the_experiment(spec, tmp_path) -> None:
    spec["matrix"] = {"program": [{"kind": "zero_shot"}, {"kind": "few_shot"}]}
    spec["description"] = "Two programs."
    (first, second), _, _ = _run(spec, tmp_path)
    predictions = first.folder.path / PREDICTIONS
    predictions.write_text("".join(predictions.read_text().splitlines(keepends=True)[:7]))
    resumed, watcher = _resume(first, tmp_path)
    assert (watcher.answers, resumed.metrics.n) == (5, 12)
    assert resumed.record == first.record
    assert resumed.record.experiment_digest == second.record.experiment_digest


def test_a_prompt_that_was_edited_is_no_resume(spec, tmp_path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("en: {zero_shot: 'Choose. $form'}")
    (run,), _, _ = _run(spec, tmp_path, overrides={"program.prompt": str(words)})
    words.write_text("en: {zero_shot: 'Choose! $form'}")
    with pytest.raises(RunFolderError, match=r"changed \(words\..*restore it, or run its spec"):
        _resume(run, tmp_path)


def test_data_that_were_edited_are_no_resume(spec, tmp_path) -> None:
    (run,), _, _ = _run(spec, tmp_path)
    record = json.loads((run.folder.path / "spec.json").read_text())
    record["dataset_fingerprint"] = "0" * 64
    (run.folder.path / "spec.json").write_text(json.dumps(record))
    with pytest.raises(RunFolderError, match=r"data have changed .*\(SHA-256 0{12} then.*without --resume"):
        _resume(run, tmp_path)


def test_failures_are_pending_and_never_scored(spec, tmp_path) -> None:
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump({"*": {"error": "context"}}))
    (run,), _, _ = _run(spec, tmp_path)
    assert (run.metrics.unanswered, run.status) == (12, "complete")
    (plan_cell,) = plan_experiment(spec, {"model.max_tokens": 9}, runs_dir=tmp_path / "runs").cells
    assert len(plan_cell.pending) == 12


def test_only_a_run_can_be_resumed(spec, tmp_path) -> None:
    (run,), _, _ = _run(spec, tmp_path)
    assert plan_resume(run.record.run_id, runs_dir=tmp_path / "runs").runs_dir == tmp_path / "runs"
    with pytest.raises(RunFolderError, match="no run nothing"):
        plan_resume("nothing", runs_dir=tmp_path / "runs")


def test_a_folder_of_that_name_under_another_digest_is_refused(spec, tmp_path) -> None:
    (run,), _, _ = _run(spec, tmp_path)
    record = json.loads((run.folder.path / "spec.json").read_text())
    record["spec_digest"], record["identity"]["dataset"]["fingerprint"] = "0" * 12, "0" * 64
    (run.folder.path / "spec.json").write_text(json.dumps(record))
    with pytest.raises(RunFolderError, match=r"dataset\.fingerprint"):
        _run(spec, tmp_path)


def test_cells_in_the_same_words_run_one_after_the_other_and_are_shown_in_the_specs_order(spec, tmp_path) -> None:
    spec["matrix"] = {"program.answer_format": ["free", "guided"], "dataset.language": ["en", "es"]}
    plan = plan_experiment(spec, {}, runs_dir=tmp_path / "runs")
    cells = [plan.cells[place].cell for place in in_prefix_order(plan.cells)]
    asked = [(cell.dataset.language, cell.program.answer_format) for cell in cells]
    assert asked == [("en", "free"), ("en", "guided"), ("es", "free"), ("es", "guided")]
    runs, _ = Runner(plan, Watcher()).run()
    assert [run.record.cell for run in runs] == [planned.cell for planned in plan.cells]


def test_the_cells_of_a_matrix_share_the_engine(spec, tmp_path) -> None:
    programs = [
        {"kind": "zero_shot", "answer_format": "guided"},
        {"kind": "few_shot"},
        {"kind": "longest"},
        {"kind": "random"},
    ]
    spec["matrix"] = {"program": programs, "dataset.language": ["en", "es"]}
    runs, _, watcher = _run(spec, tmp_path)
    assert len(runs) == 8
    assert watcher.engines == 1
    assert [run.model for run in runs[4:]] == [None] * 4
    assert all(run.metrics.unanswered == 0 for run in runs)
    english, spanish = (set(run.folder.read_predictions()) for run in runs[:2])
    assert english == spanish


def test_an_endpoint_that_does_not_answer_stops_the_run_before_it_begins(spec, tmp_path) -> None:
    overrides = {"model": {"engine": "vllm", "name": "x", "endpoints": ["http://127.0.0.1:9/v1"]}}
    with pytest.raises(EndpointUnreachableError, match=r"127\.0\.0\.1:9"):
        _run(spec, tmp_path, overrides=overrides)


def test_after_many_failures_in_a_row_the_rest_stays_pending(spec, tmp_path) -> None:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": {"error": "transport"}}))
    (run,), interrupted, watcher = _run(spec, tmp_path, overrides={"dataset.limit": 110})
    assert not interrupted
    assert run.status == "incomplete"
    assert 32 <= watcher.answers < 110
    assert {p.status for p in run.folder.read_predictions().values()} == {Status.FAILED}
    assert run.metrics.n == 0
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 2}"}))
    (run,), _, watcher = _run(spec, tmp_path, overrides={"dataset.limit": 110})
    assert (watcher.answers, run.metrics.n, run.status) == (110, 110, "complete")


def test_as_many_failures_as_are_allowed_stop_the_cells_that_follow(spec, tmp_path) -> None:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": {"error": "server"}}))
    spec["matrix"] = {"program": [{"kind": "zero_shot"}, {"kind": "few_shot"}, {"kind": "chain_of_thought"}]}
    plan = plan_experiment(spec, {}, runs_dir=tmp_path / "runs")
    runs, stop = Runner(plan, Watcher(), limits=Limits(failures=13)).run()
    assert stop is Stop.FAILURES
    assert [run.metrics.failed for run in runs] == [12, 12]
    assert (runs[1].folder.path / "report.md").is_file()
    assert not plan.cells[2].folder.exists()
