"""Optimizations that are interrupted, go on, and are refused."""

import asyncio
import copy
import json

import pytest

from medexam.datasets import SAMPLE_FOLDER
from medexam.errors import RunFolderError, SpecError
from medexam.experiments import plan_experiment, plan_optimization
from medexam.experiments.optimize.call_log import CallLog, LoggedCall
from medexam.experiments.optimize.folder import CALLS, RECORD, find_optimization
from medexam.experiments.optimize.optimization import OptimizationEnding, load_optimization
from medexam.experiments.optimize.optimizer import optimize, why_nothing_more
from medexam.experiments.optimize.plan import plan_resumed
from medexam.experiments.plan.leakage import near_duplicates
from medexam.programs import save_program
from medexam.programs.loading import PROGRAM
from medexam.serve import ScriptedEngine
from medexam.specs import differing_keys
from watching import Trials


class Interrupting(Trials):
    """Interrupts once so many questions are answered."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def answered(self, prediction) -> None:
        super().answered(prediction)
        if self.answers == self._after:
            for task in asyncio.all_tasks():
                if task.get_coro().__name__ == "hold":
                    task.cancel()


@pytest.mark.parametrize("after", [15, 40])
def test_ctrl_c_keeps_what_was_done_and_it_goes_on(document, run_optimizer, tmp_path, after) -> None:
    plan = plan_optimization(document, {}, runs_dir=tmp_path / "runs")
    stopped = optimize(plan, Interrupting(after))
    assert stopped.ending is OptimizationEnding.INTERRUPTED
    assert not stopped.finished
    before = [json.loads(line)["key"] for line in (stopped.folder.path / CALLS).read_text().splitlines()]
    assert before
    done, _ = run_optimizer()
    assert done.ending is OptimizationEnding.COMPLETE
    after_all = [json.loads(line)["key"] for line in (done.folder.path / CALLS).read_text().splitlines()]
    assert after_all[: len(before)] == before
    assert len(set(after_all)) == len(after_all)
    whole, _ = run_optimizer(fresh=True)
    assert whole.folder != done.folder
    assert whole.trials == done.trials


def test_ctrl_c_while_its_model_is_prepared_is_no_other_error(document, run_optimizer, tmp_path, monkeypatch) -> None:
    async def interrupted(*_, **__):
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)

    with monkeypatch.context() as patched:
        patched.setattr("medexam.experiments.optimize.optimizer.build_engine", interrupted)
        with pytest.raises(KeyboardInterrupt):
            optimize(plan_optimization(document, {}, runs_dir=tmp_path / "runs"), Trials())
    done, _ = run_optimizer()
    assert done.ending is OptimizationEnding.COMPLETE


def test_a_kill_before_the_best_program_is_written_leaves_nothing_complete(
    document, run_optimizer, tmp_path, monkeypatch
) -> None:
    def killed(*_) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("medexam.experiments.optimize.optimizer.write_outcome", killed)
        with pytest.raises(KeyboardInterrupt):
            optimize(plan_optimization(document, {}, runs_dir=tmp_path / "runs"), Trials())
    done, _ = run_optimizer()
    assert done.ending is OptimizationEnding.COMPLETE
    assert (done.folder.path / PROGRAM).exists()


def test_a_full_disk_is_one_line(document, tmp_path, monkeypatch) -> None:
    def save(program, path, *more) -> None:
        path.symlink_to("/dev/full")
        save_program(program, path, *more)

    monkeypatch.setattr("medexam.experiments.optimize.evaluator.save_program", save)
    with pytest.raises(RunFolderError, match="No space left on device; the same command continues"):
        optimize(plan_optimization(document, {}, runs_dir=tmp_path / "runs"), Trials())


def test_a_killed_one_repeats_nothing(finished, run_optimizer) -> None:
    done = finished("random_search")
    path = done.folder.path / CALLS
    lines = path.read_bytes().splitlines(keepends=True)
    record = json.loads((done.folder.path / RECORD).read_text())
    for kept in (0, 1, len(lines) // 2, len(lines) - 1):
        path.write_bytes(b"".join(lines[:kept]) + lines[kept][:20])
        (done.folder.path / RECORD).write_text(json.dumps({**record, "ending": "interrupted"}))
        again, _ = run_optimizer()
        assert again.trials == done.trials
        assert again.spent == done.spent
        assert {json.loads(line)["key"] for line in path.read_bytes().splitlines()} == {
            json.loads(line)["key"] for line in lines
        }


def test_it_is_resumed_by_its_folder_under_a_larger_budget(document, tmp_path) -> None:
    overrides = {"optimizer.max_tokens": 3_000}
    stopped = optimize(plan_optimization(document, overrides, runs_dir=tmp_path / "runs"), Trials())
    assert stopped.ending is OptimizationEnding.BUDGET
    folder = find_optimization(str(stopped.folder.path), tmp_path)
    done = optimize(plan_resumed(folder, {"optimizer.max_tokens": None}), Trials())
    assert done.ending is OptimizationEnding.COMPLETE
    with pytest.raises(RunFolderError, match="only its budget may change"):
        plan_resumed(folder, {"optimizer.demos": 5})


def test_a_corrected_gold_that_teaches_or_chooses_is_another_optimization(document, tmp_path) -> None:
    exams = json.loads((SAMPLE_FOLDER / "HEAD_EN.json").read_text())
    document["dataset"] |= {"name": "headqa_v1", "path": str(tmp_path / "HEAD_EN.json")}

    def identity(name: str | None = None) -> dict:
        changed = copy.deepcopy(exams)
        if name is not None:
            record = changed["exams"][name]["data"][0]
            record["ra"] = str(int(record["ra"]) % 4 + 1)
        (tmp_path / "HEAD_EN.json").write_text(json.dumps(changed))
        return plan_optimization(document, {}, runs_dir=tmp_path / "runs").identity

    first = identity()
    names = {"Cuaderno_2013_1_B": ["train"], "Cuaderno_2015_1_B": ["validation"], "Cuaderno_2016_1_B": []}
    assert {name: differing_keys(first, identity(name)) for name in names} == names


def _serve(monkeypatch, *engines):
    """Let these answer in the place of the spec's models: what a server serves is not seen before it is asked."""
    waiting = list(engines)

    async def build_engine(*_, **__):
        return waiting.pop(0)

    monkeypatch.setattr("medexam.experiments.optimize.optimizer.build_engine", build_engine)


def test_it_does_not_go_on_with_another_model(document, run_optimizer, tmp_path, monkeypatch) -> None:
    plan = plan_optimization(document, {}, runs_dir=tmp_path / "runs")
    _serve(monkeypatch, ScriptedEngine({"*": "{Answer: 1}"}, revision="first"))
    stopped = optimize(plan, Interrupting(40))
    (model,) = stopped.models
    lines = [json.loads(line) for line in (stopped.folder.path / CALLS).read_text().splitlines()]
    assert {line["answered_by"] for line in lines} == {model.print}
    assert {trial.answered_by for trial in stopped.trials} <= {model.print}
    other = ScriptedEngine({"*": "{Answer: 2}"}, revision="second")
    _serve(monkeypatch, other)
    with pytest.raises(RunFolderError, match=r"weights second, not first.*or start over with --fresh$"):
        optimize(plan, Trials())
    assert not other.dialogues
    _serve(monkeypatch, ScriptedEngine({"*": "{Answer: 1}"}, revision="first"))
    done, _ = run_optimizer()
    assert done.ending is OptimizationEnding.COMPLETE
    said = (done.folder.programs / done.trials[0].digest / "predictions.jsonl").read_text().splitlines()
    assert {json.loads(line)["answered_by"] for line in said} == {model.print}


def test_a_logged_reply_answers_for_its_own_model_alone(tmp_path) -> None:
    log = CallLog(tmp_path / CALLS)
    call = LoggedCall(group="trial", key="key", answered_by="first", tokens=3, reply={"text": "one"})
    log.add(call, repeatable=True)
    for one in (log, CallLog(tmp_path / CALLS)):
        assert one.recall("second", "key", repeatable=True) is None
        assert one.recall("first", "key", repeatable=True) == {"text": "one"}
        assert one.answered == 1


def test_replies_that_name_another_model_end_it(document, tmp_path, monkeypatch) -> None:
    class Swapped(ScriptedEngine):
        def answer(self, dialogue):
            self._model = "another" if len(self.dialogues) >= 30 else "scripted"
            return super().answer(dialogue)

    _serve(monkeypatch, Swapped({"*": "{Answer: 1}"}))
    done = optimize(plan_optimization(document, {}, runs_dir=tmp_path / "runs"), Trials())
    assert done.ending is OptimizationEnding.FAILED
    assert "replies come from another, not from scripted" in (done.why or "")
    assert len(done.trials) <= 1


def test_an_optimization_is_known_by_what_its_models_are(document, tmp_path, monkeypatch) -> None:
    def weights(place, last=b"a"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"model_type": "llama"}')
        (folder / "model.safetensors").write_bytes(b"0" * 2_000_000 + last)
        return str(folder)

    def digest(**changes):
        overrides = {"optimizer.kind": "copro", "optimizer.prompt_model": {"path": writer}, **changes}
        return plan_optimization(document, overrides, runs_dir=tmp_path / "runs").folder.name.split("-")[-1]

    writer = weights("writer")
    model = {"engine": "embedded", "path": weights("one")}
    known = digest(model=model)
    assert digest(model={**model, "path": weights("moved/elsewhere")}) == known
    assert digest(model={**model, "path": weights("other", b"b")}) != known
    assert digest(model=model, **{"optimizer.prompt_model": {"path": weights("writers/copy")}}) == known
    assert digest(model=model, **{"optimizer.prompt_model": {"path": weights("rewriter", b"c")}}) != known
    assert digest(model=model, **{"optimizer.validation": {"years": [2015]}}) == known
    assert digest(model=model, **{"optimizer.max_calls": 10_000}) == known


def test_a_script_elsewhere_goes_on_and_a_changed_one_is_another(document, run_optimizer, tmp_path) -> None:
    done, _ = run_optimizer()
    path = tmp_path / "replies.yaml"
    moved = path.rename(tmp_path / "moved.yaml")
    again, watcher = run_optimizer({"model.path": str(moved)})
    assert (again, watcher.begun) == (done, 0)
    moved.rename(path).write_text('"*": "{Answer: 2}"')
    with pytest.raises(RunFolderError, match=r"cannot continue: .*\(model\.script\).* optimize its spec"):
        plan_resumed(done.folder, {})
    other, _ = run_optimizer()
    assert other.folder != done.folder


def test_calls_that_allowed_fewer_programs_are_raised(run_optimizer, document, tmp_path) -> None:
    few, _ = run_optimizer({"optimizer.max_calls": 70})
    assert (few.ending, few.candidates, len(few.trials)) == (OptimizationEnding.COMPLETE, 2, 2)
    plan = plan_optimization(document, {"optimizer.max_calls": 71}, runs_dir=tmp_path / "runs")
    same = optimize(plan, Trials())
    assert same == few
    assert f"optimizer.max_calls={plan.calls.most(3)} or no limit allows another" in why_nothing_more(plan, same)
    more, _ = run_optimizer({"optimizer.max_calls": plan.calls.most(3)})
    assert (more.folder, more.candidates) == (few.folder, 3)
    all_of_them, _ = run_optimizer({})
    assert all_of_them.candidates == 4
    whole, _ = run_optimizer(fresh=True)
    assert all_of_them.trials == whole.trials
    raised = plan_optimization(document, {"optimizer.max_tokens": 10**9}, runs_dir=tmp_path / "runs")
    assert "so another budget changes nothing" in why_nothing_more(raised, optimize(raised, Trials()))


def test_one_of_an_earlier_version_is_shown_and_loaded_and_not_continued(finished, document, tmp_path) -> None:
    done = finished("random_search")
    record = json.loads((done.folder.path / RECORD).read_text())
    (done.folder.path / RECORD).write_text(
        json.dumps({key: value for key, value in record.items() if key not in ("schema", "candidates")})
    )
    (done.folder.path / "models.json").unlink()
    assert load_optimization(done.folder).trials == done.trials
    assert plan_experiment(document, {"program.load": str(done.folder.path)}, runs_dir=tmp_path / "runs").cells
    with pytest.raises(RunFolderError, match="an earlier version of medexam made it"):
        plan_resumed(done.folder, {})


def test_two_processes_on_one_folder_are_refused(finished, run_optimizer) -> None:
    done = finished("random_search")
    record = json.loads((done.folder.path / RECORD).read_text())
    (done.folder.path / RECORD).write_text(json.dumps({**record, "ending": "interrupted"}))
    with done.folder.locked(), pytest.raises(RunFolderError, match="another process"):
        run_optimizer()


def test_a_damaged_call_is_named(tmp_path) -> None:
    path = tmp_path / CALLS
    path.write_text('{"for": "a", "key": "b", "answered_by": "c", "tokens": 1, "reply": null}\nnot json\n')
    with pytest.raises(RunFolderError, match="line 2"):
        CallLog(path)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"dataset.split": "all"}, "both hold questions of"),
        ({"optimizer.train.split": "dev"}, "optimizer.train and optimizer.validation both hold"),
        ({"optimizer.validation": {"years": [2016]}}, "optimizer.validation and dataset both hold"),
        ({"optimizer.max_calls": 40}, "too small for one round"),
        ({"program.kind": "likelihood"}, "no instructions to optimize"),
        ({"program.kind": "random"}, "shows no demonstrations"),
        ({"optimizer.kind": "randm_search"}, "random_search"),
        ({"optimizer.demo": 3}, "demos"),
    ],
)
def test_what_cannot_be_optimized_is_said_before_anything_is_asked(document, tmp_path, overrides, said) -> None:
    with pytest.raises(SpecError, match=said):
        plan_optimization(document, overrides, runs_dir=tmp_path)


def test_a_spec_without_an_optimizer_or_of_many_programs_is_refused(document, tmp_path) -> None:
    with pytest.raises(SpecError, match=r"--set optimizer\.kind=random_search"):
        plan_optimization({k: v for k, v in document.items() if k != "optimizer"}, {}, runs_dir=tmp_path)
    matrix = {**document, "matrix": {"dataset.language": ["en", "es"]}}
    with pytest.raises(SpecError, match="makes 2 programs"):
        plan_optimization(matrix, {}, runs_dir=tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda state: state["metadata"]["medexam"].update(form="angles"), "form is 'angles'"),
        (lambda state: state["metadata"]["medexam"].update(language="es"), "language is 'es'"),
        (lambda state: state.update(reason=state["respond"]), "they are different programs"),
        (lambda state: state["respond"]["signature"]["fields"].pop(), "signature of respond"),
        (lambda state: state["respond"]["demos"][0]["question"].pop("stem"), "damaged"),
        (lambda state: state["respond"]["demos"][0].update(answer=9), "is not an option"),
        (lambda state: state["respond"].pop("signature"), "damaged"),
        (lambda state: state.pop("metadata"), "no program of DSPy's"),
    ],
)
def test_a_foreign_or_corrupt_program_is_refused(finished, document, tmp_path, change, said) -> None:
    done = finished("labeled")
    path = tmp_path / "program.json"
    state = json.loads((done.folder.programs / done.trials[1].digest / "program.json").read_text())
    change(state)
    path.write_text(json.dumps(state))
    with pytest.raises(SpecError, match=said):
        plan_experiment(document, {"program.load": str(path)}, runs_dir=tmp_path / "runs")


def test_a_program_that_is_missing_or_of_another_kind_is_refused(finished, document, tmp_path) -> None:
    with pytest.raises(SpecError, match=r"no program\.json"):
        plan_experiment(document, {"program.load": str(tmp_path / "nowhere")}, runs_dir=tmp_path)
    (tmp_path / "program.json").write_text("{")
    with pytest.raises(SpecError, match="cannot read"):
        plan_experiment(document, {"program.load": str(tmp_path)}, runs_dir=tmp_path)
    done = finished("labeled")
    changed = {"program.load": str(done.folder.path), "program.kind": "few_shot"}
    with pytest.raises(SpecError, match="kind is 'zero_shot'"):
        plan_experiment(document, changed, runs_dir=tmp_path)


def test_demonstrations_from_a_tested_exam_are_refused(finished, document, tmp_path) -> None:
    done = finished("labeled")
    loaded = {"program.load": str(done.folder.programs / done.trials[1].digest), "dataset.split": "train"}
    with pytest.raises(SpecError, match="from an exam that is asked"):
        plan_experiment(document, loaded, runs_dir=tmp_path)


def test_questions_of_nearly_the_same_words_are_found(sample) -> None:
    first, second = sample.questions[:2]
    changed = first.model_copy(update={"key": "other", "stem": first.stem.upper() + " also"})
    assert near_duplicates([changed, second], [first]) == [changed]
    assert near_duplicates([second], [first]) == []
    assert near_duplicates([], [first]) == []
