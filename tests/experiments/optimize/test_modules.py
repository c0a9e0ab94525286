"""A module of the user's own and a signature in the spec are improved, saved and loaded as the programs that ship."""

import json
import re
from pathlib import Path

import pytest
import yaml

from medexam.cli.views.optimize import optimization_plan_document
from medexam.errors import MedExamError, RunFolderError, SpecError
from medexam.experiments import Runner, plan_experiment, plan_optimization
from medexam.experiments.optimize.optimizer import optimize
from medexam.experiments.optimize.plan import plan_resumed
from medexam.experiments.optimize.registered_prompts import prompt_templates
from medexam.experiments.track.prompts import registered_name
from medexam.plugins import load_object
from medexam.programs import OwnProgram, build_program, loaded_words
from medexam.programs.loading import demonstrations
from medexam.serve import ScriptedEngine
from medexam.specs import CellSpec
from medexam.specs.programs.own import PROGRAMS
from watching import Silent, Trials

MODULE = """
import dspy


class Judge(dspy.Module):
    def __init__(self):
        super().__init__()
        self.note = dspy.Predict("question, options -> note")
        self.judge = dspy.Predict("question, options, note -> answer: int")

    def forward(self, stem, options):
        note = self.note(question=stem, options=options).note
        return self.judge(question=stem, options=options, note=note)
"""


@pytest.fixture
def module(document, tmp_path):
    """The spec of a module with two predictors, over replies that both can read."""
    (tmp_path / "mine.py").write_text(MODULE)
    path = tmp_path / "replies.yaml"
    replies = yaml.safe_load(path.read_text())
    fields = "[[ ## note ## ]]\nA note.\n\n[[ ## answer ## ]]\n{}\n\n[[ ## completed ## ]]"
    replies = {stem: fields.format(re.search(r"\d+", reply)[0]) for stem, reply in replies.items()}
    path.write_text(yaml.safe_dump(replies, allow_unicode=True, width=10**6))
    return {**document, "program": {"kind": f"{tmp_path / 'mine.py'}:Judge"}}


def test_replies_of_a_module_become_demonstrations_of_its_predictors(module, run_optimizer, tmp_path) -> None:
    done, _ = run_optimizer({"optimizer.kind": "bootstrap", "optimizer.demos": 2}, module)
    assert [trial.name for trial in done.trials] == ["as written", "bootstrap"]
    assert done.trials[1].demos > 0
    path = tmp_path / "loaded.json"
    path.write_bytes((done.folder.programs / done.trials[1].digest / "program.json").read_bytes())
    state = json.loads(path.read_text())
    assert {name for name in state if name != "metadata"} == {"note", "judge"}

    loading = {**module, "program": {**module["program"], "load": str(path)}}
    cell = CellSpec.model_validate({key: value for key, value in loading.items() if key != "optimizer"})
    shown = dict(demonstrations(build_program(cell.program, "en")))
    assert set(shown["module.judge"]) == {"question", "options", "note", "answer"}
    assert isinstance(shown["module.judge"]["answer"], int)

    planned = plan_experiment({**loading, "optimizer": None}, {}, runs_dir=tmp_path / "runs")
    as_written = plan_experiment({**module, "optimizer": None}, {}, runs_dir=tmp_path / "runs")
    assert planned.cells[0].spec_digest != as_written.cells[0].spec_digest
    (run,), _ = Runner(planned, Silent()).run()
    first = run.folder.read_predictions()[run.record.questions[0]].generations[0]
    assert first.text.startswith("[[ ## note ## ]]")
    assert run.record.cell.program.label == "Judge-optimized"


WRITTEN = "Weigh each option, and choose well."


@pytest.fixture
def writing(module):
    """The same spec, whose model also writes instructions as each of DSPy's optimizers asks for them."""
    fields = f"[[ ## proposed_instruction ## ]]\n{WRITTEN}\n\n[[ ## proposed_prefix_for_output_field ## ]]\nNow:\n\n"
    rules = "[[ ## reasoning ## ]]\nSo.\n\n[[ ## natural_language_rules ## ]]\nChoose.\n\n"
    observed = "[[ ## observations ## ]]\nCOMPLETE\n\n[[ ## summary ## ]]\nExams.\n\n"
    replies = yaml.safe_load(Path(module["model"]["path"]).read_text())
    asking = ("instruction optimizer", "proposed_instruction", "observations", "summary", "natural_language_rules")
    proposals = dict.fromkeys(asking, f"{fields}{observed}{rules}[[ ## completed ## ]]")
    reflection = {"`new_instruction`": json.dumps({"new_instruction": WRITTEN})}
    path = Path(module["model"]["path"])
    path.write_text(
        yaml.safe_dump({**reflection, **proposals, **replies}, allow_unicode=True, width=10**6, sort_keys=False)
    )
    return module


def shown(module) -> dict:
    """What each predictor of a module is told and shown."""
    return {
        name: (
            predictor.signature.instructions,
            [{key: demo[key] for key in predictor.signature.fields} for demo in predictor.demos],
        )
        for name, predictor in module.named_predictors()
    }


def test_code_that_a_changed_folder_names_is_not_run(module, tmp_path) -> None:
    overrides = {"optimizer.max_tokens": 3_000}
    folder = optimize(plan_optimization(module, overrides, runs_dir=tmp_path / "runs"), Trials()).folder
    assert plan_resumed(folder, {}).optimizer.max_tokens == 3_000
    path, foreign = folder.path / "optimization.json", tmp_path / "foreign.py"
    foreign.write_text(MODULE + f"\nopen({str(tmp_path / 'ran')!r}, 'w')\n")
    path.write_text(path.read_text().replace("mine.py", "foreign.py"))
    with pytest.raises(RunFolderError, match=r"foreign\.py:Judge.*was changed"):
        plan_resumed(folder, {})
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def learning(monkeypatch, sample, key):
    """Have the scripted model answer each question right once it is told what reflection writes."""
    scripted = ScriptedEngine.answer

    def answer(engine, dialogue):
        text = dialogue.messages[-1]["content"]
        question = next((one for one in sample.questions if one.stem in text), None)
        if question is None or WRITTEN not in dialogue.messages[0]["content"]:
            return scripted(engine, dialogue)
        fields = f"[[ ## note ## ]]\nA note.\n\n[[ ## answer ## ]]\n{key[question.key].number}\n\n[[ ## completed ## ]]"
        return scripted(ScriptedEngine({"*": fields}), dialogue)

    monkeypatch.setattr(ScriptedEngine, "answer", answer)


@pytest.mark.usefixtures("learning")
@pytest.mark.parametrize("kind", ["bootstrap", "random_search", "copro", "mipro", "gepa"])
def test_a_state_goes_to_dspy_and_comes_back(writing, run_optimizer, tmp_path, kind) -> None:
    few = {"optimizer.candidates": 3, "optimizer.rounds": 1, "optimizer.demos": 2}
    done, _ = run_optimizer({"optimizer.kind": kind, **few}, writing)
    paths = [done.folder.programs / trial.digest / "program.json" for trial in done.trials[1:]]
    sought = "A note." if kind in ("bootstrap", "random_search") else WRITTEN
    path = next(path for path in paths if sought in path.read_text())
    plain = load_object(f"{tmp_path / 'mine.py'}:Judge", PROGRAMS)()
    assert sought not in str(shown(plain))
    plain.load(str(path))
    assert sought in str(shown(plain))
    cell = CellSpec.model_validate({key: value for key, value in writing.items() if key != "optimizer"})

    def ours(file: Path) -> OwnProgram:
        return build_program(cell.program.model_copy(update={"load": file}), "en")

    expected = shown(ours(path).module)
    assert shown(plain) == expected
    # What DSPy saves anywhere is the same program here.
    (tmp_path / "elsewhere").mkdir()
    plain.save(str(tmp_path / "elsewhere" / "mine.json"))
    back = ours(tmp_path / "elsewhere" / "mine.json")
    assert shown(back.module) == expected
    first = loaded_words(tmp_path / "elsewhere" / "mine.json", of_module=True)
    moved = (tmp_path / "elsewhere" / "mine.json").rename(tmp_path / "moved.json")
    assert loaded_words(moved, of_module=True) == first
    plain.note.signature = plain.note.signature.with_instructions("Otherwise.")
    plain.save(str(moved))
    assert loaded_words(moved, of_module=True) != first


def test_a_state_of_an_earlier_version_is_read_as_before(module, run_optimizer, tmp_path) -> None:
    done, _ = run_optimizer({"optimizer.kind": "bootstrap"}, module)
    path = done.folder.programs / done.trials[1].digest / "program.json"
    state = json.loads(path.read_text())
    earlier = {name if name == "metadata" else f"module.{name}": part for name, part in state.items()}
    del earlier["metadata"]["medexam"]["layout"]
    (tmp_path / "earlier.json").write_text(json.dumps(earlier))
    assert loaded_words(tmp_path / "earlier.json", of_module=True) == loaded_words(path, of_module=True)
    spec = {**module, "optimizer": None, "program": {**module["program"], "load": str(tmp_path / "earlier.json")}}
    (cell,) = plan_experiment(spec, {}, runs_dir=tmp_path / "runs").cells
    assert cell.program.module.judge.demos


def test_prompts_of_predictors_in_a_list_are_registered(module, run_optimizer, tmp_path) -> None:
    from mlflow.prompt.registry_utils import validate_prompt_name

    code = re.sub(r"self\.(note|judge) = (.*)", r"self.steps = [*getattr(self, 'steps', []), \2]", MODULE)
    (tmp_path / "mine.py").write_text(
        code.replace("self.note(", "self.steps[0](").replace("self.judge(", "self.steps[1](")
    )
    done, _ = run_optimizer({"optimizer.kind": "bootstrap", "optimizer.demos": 1}, module)
    names = list(prompt_templates(done))
    assert names == ["scripted-Judge-en-module.steps.0", "scripted-Judge-en-module.steps.1"]
    for name in names:
        validate_prompt_name(name)


@pytest.mark.parametrize(
    ("predictor", "name"),
    [("module.note", "module.note"), ("module.steps[0].predict", "module.steps.0.predict"), ("by['el']", "by.el")],
)
def test_a_predictor_is_registered_under_a_readable_name(predictor, name) -> None:
    assert registered_name(predictor) == name
    assert registered_name("by['sí']") != registered_name("by['só']")


def test_demonstrations_of_asked_questions_are_refused(module, run_optimizer, tmp_path) -> None:
    done, _ = run_optimizer({"optimizer.kind": "bootstrap"}, module)
    path = done.folder.programs / done.trials[1].digest / "program.json"
    asked = {**module, "dataset": {"name": "headqa_sample", "split": "train"}, "optimizer": None}
    with pytest.raises(SpecError, match=r"is nearly headqa-v1/.*, which is asked"):
        plan_experiment({**asked, "program": {**module["program"], "load": str(path)}}, {}, runs_dir=tmp_path / "runs")


def test_a_signature_gets_new_instructions(module, run_optimizer) -> None:
    spec = {**module, "program": {"kind": "signature", "signature": "question, options -> note, answer: int"}}
    proposal = "[[ ## proposed_instruction ## ]]\nChoose well.\n\n[[ ## proposed_prefix_for_output_field ## ]]\nNow:"
    path = Path(spec["model"]["path"])
    replies = yaml.safe_load(path.read_text())
    instruction = {"instruction optimizer": f"{proposal}\n\n[[ ## completed ## ]]", "proposed_instruction": proposal}
    replies = {**instruction, **replies}
    path.write_text(yaml.safe_dump(replies, allow_unicode=True, width=10**6, sort_keys=False))
    done, _ = run_optimizer({"optimizer.kind": "copro", "optimizer.candidates": 2, "optimizer.rounds": 1}, spec)
    assert len(done.trials) >= 2
    states = [json.loads((done.folder.programs / one.digest / "program.json").read_text()) for one in done.trials]
    assert "Choose well." in {state["signature"]["instructions"] for state in states}


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"optimizer.kind": "labeled"}, "optimizer.kind labeled is not for Judge: choose bootstrap, random_search"),
        ({"optimizer.metric": "log_probability"}, "is not for Judge: choose accuracy, exam_score"),
    ],
)
def test_what_a_module_cannot_be_optimized_by_is_said(module, tmp_path, overrides, says) -> None:
    with pytest.raises(SpecError, match=says):
        plan_optimization(module, overrides, runs_dir=tmp_path / "runs")


METRIC = """
seen = []

def brief(question, gold, prediction):
    right = gold.accepts(prediction.answer)
    seen.append(question.key)
    return {"score": 0.75 if right else 0.25, "feedback": f"It {'is' if right else 'is not'} right, says my metric."}

def broken(question, gold, prediction):
    return "good"
"""


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("dspy.LabeledFewShot", {"k": 2}),
        ("dspy.BootstrapFewShot", {"max_bootstrapped_demos": 2}),
        ("dspy.SIMBA", {"bsize": 4, "num_candidates": 2, "max_steps": 1, "max_demos": 2}),
        ("dspy.InferRules", {"num_candidates": 1, "num_rules": 2, "max_bootstrapped_demos": 1}),
    ],
)
def test_any_optimizer_of_dspys_is_named_by_its_class(writing, run_optimizer, kind, args) -> None:
    spec = {**writing, "optimizer": {**writing["optimizer"], "kind": kind, "args": args}}
    done, _ = run_optimizer({}, spec)
    assert done.ending == "complete", done.why
    assert done.trials[0].name == "as written"
    assert kind.removeprefix("dspy.") in {trial.name for trial in done.trials} or len(done.trials) == 1
    assert (done.folder.path / "program.json").exists()
    assert kind.removeprefix("dspy.") in done.folder.name


def test_an_optimizer_that_raises_is_one_line(writing, run_optimizer, tmp_path) -> None:
    source = "from dspy.teleprompt import Teleprompter\n\nclass Broken(Teleprompter):\n"
    source += "    def compile(self, student, trainset):\n        return {}['gone']\n"
    (tmp_path / "broken.py").write_text(source)
    kind = f"{tmp_path / 'broken.py'}:Broken"
    with pytest.raises(MedExamError, match=r"Broken, broken.py:5 in compile: KeyError: 'gone'.*--debug"):
        run_optimizer({}, {**writing, "optimizer": {**writing["optimizer"], "kind": kind, "args": {}}})


def test_candidates_are_chosen_by_a_function_of_ones_own(module, run_optimizer, tmp_path) -> None:
    (tmp_path / "mine_metric.py").write_text(METRIC)
    metric = f"{tmp_path / 'mine_metric.py'}:brief"
    done, _ = run_optimizer({"optimizer.kind": "bootstrap", "optimizer.metric": metric}, module)
    for trial in done.trials:
        assert trial.score == pytest.approx(0.25 + 0.5 * trial.accuracy)
    assert "brief" in (done.folder.path / "report.md").read_text()
    moved = (tmp_path / "mine_metric.py").rename(tmp_path / "moved.py")
    plan = plan_optimization(
        module, {"optimizer.kind": "bootstrap", "optimizer.metric": f"{moved}:brief"}, runs_dir=tmp_path / "runs"
    )
    assert plan.folder.path == done.folder.path


def test_gepa_reflects_on_the_feedback_of_a_function_of_ones_own(writing, run_optimizer, tmp_path, monkeypatch) -> None:
    (tmp_path / "mine_metric.py").write_text(METRIC)
    prompts, scripted = [], ScriptedEngine.answer

    def answer(engine, dialogue):
        prompts.append(dialogue.messages[-1]["content"])
        return scripted(engine, dialogue)

    monkeypatch.setattr(ScriptedEngine, "answer", answer)
    metric = f"{tmp_path / 'mine_metric.py'}:brief"
    done, _ = run_optimizer({"optimizer.kind": "gepa", "optimizer.candidates": 2, "optimizer.metric": metric}, writing)
    assert done.ending == "complete", done.why
    assert done.trials[0].score == pytest.approx(0.25 + 0.5 * done.trials[0].accuracy)
    reflections = [text for text in prompts if "`new_instruction`" in text]
    assert reflections
    assert all("right, says my metric." in text for text in reflections)


@pytest.mark.parametrize(
    ("optimizer", "says"),
    [
        ({"kind": "dspy.Predict"}, "not a subclass of dspy.teleprompt.Teleprompter"),
        ({"kind": "dspy.SIMBA", "args": {"colour": 3}}, "making it failed: TypeError"),
        ({"kind": "bootstrap", "args": {"k": 3}}, "args belong to a kind that is a class"),
        ({"kind": "simba"}, "is none of labeled, knn"),
        ({"kind": "bootstrap", "metric": "METRIC:broken"}, "optimizer.metric returned 'good' for question"),
    ],
)
def test_what_is_no_optimizer_or_metric_is_said(module, run_optimizer, tmp_path, optimizer, says) -> None:
    (tmp_path / "mine_metric.py").write_text(METRIC)
    if "metric" in optimizer:
        optimizer = {**optimizer, "metric": f"{tmp_path / 'mine_metric.py'}:broken"}
    with pytest.raises(SpecError, match=says):
        run_optimizer({}, {**module, "optimizer": {**module["optimizer"], **optimizer}})


def test_a_plan_of_a_module_counts_the_calls_that_are_known(writing, tmp_path) -> None:
    for kind, bound in (("bootstrap", "least_calls"), ("dspy.SIMBA", "least_calls"), ("copro", "least_calls")):
        plan = plan_optimization(writing, {"optimizer.kind": kind}, runs_dir=tmp_path / "runs")
        told = optimization_plan_document(plan)
        assert told[bound] == plan.most_calls
        assert told["most_calls"] is None
    ask = {"ask": "question, options -> answer: int"}
    for known in ({"kind": "zero_shot"}, {"steps": [{"repeat": 2, "do": [ask]}]}):
        spec = {**writing, "program": known}
        plan = plan_optimization(spec, {"optimizer.kind": "bootstrap"}, runs_dir=tmp_path / "runs")
        told = optimization_plan_document(plan)
        assert (told["most_calls"], told["least_calls"]) == (plan.most_calls, None)
    with_module = {
        **writing,
        "program": {"steps": [{"use": writing["program"]["kind"]}, {"unless": "answer", "do": [ask]}]},
    }
    plan = plan_optimization(with_module, {"optimizer.kind": "bootstrap"}, runs_dir=tmp_path / "runs")
    assert optimization_plan_document(plan)["least_calls"] == plan.most_calls
