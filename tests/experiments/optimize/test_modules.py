"""DSPy's optimizers improve shipped programs, a signature and a module of the user's own, which DSPy loads again."""

import json
import re
from functools import cache
from pathlib import Path

import dspy
import pytest
import yaml

import medexam as package
from medexam.errors import MedExamError, SpecError
from medexam.plugins import load_object
from medexam.serve import ScriptedEngine
from scripted_engines import LAST_MADE, MADE
from table_cases import read_table

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
WRITTEN = "Weigh each option. Write {Answer: n}."
FIELDS = {
    "proposed_instruction": WRITTEN,
    "proposed_prefix_for_output_field": "Answer:",
    "observations": "COMPLETE",
    "summary": "Medical exams.",
    "program_description": "It answers questions.",
    "module_description": "It answers.",
    "reasoning": "So.",
    "natural_language_rules": "Choose.",
}
ASKS_FOR_WORDS = [f"[[ ## {name} ## ]]" for name in FIELDS if name not in {"module_description", "reasoning"}]
METRIC = """
def brief(question, gold, prediction):
    right = gold.accepts(prediction.answer)
    return {"score": 0.75 if right else 0.25, "feedback": f"It {'is' if right else 'is not'} right, says my metric."}

def broken(question, gold, prediction):
    return "good"
"""


CLASSES = {
    "LabeledFewShot": {"k": 2},
    "BootstrapFewShot": {"max_bootstrapped_demos": 2},
    "BootstrapFewShotWithRandomSearch": {"num_candidate_programs": 2, "max_bootstrapped_demos": 2},
    "BootstrapFewShotWithOptuna": {"num_candidate_programs": 2, "max_bootstrapped_demos": 2},
    "MIPROv2": {"auto": None, "num_candidates": 2, "num_trials": 2, "minibatch": False},
    "COPRO": {"breadth": 2, "depth": 1},
    "GEPA": {"max_metric_calls": 40},
    "SIMBA": {"bsize": 4, "num_candidates": 2, "max_steps": 2, "max_demos": 2},
    "InferRules": {"num_candidates": 2, "num_rules": 2},
}


def answer_fields(number: int) -> str:
    return f"[[ ## note ## ]]\nA note.\n\n[[ ## answer ## ]]\n{number}\n\n[[ ## completed ## ]]"


@pytest.fixture
def writing(document):
    """The spec, whose model also writes instructions as each of DSPy's optimizers asks for them."""
    path = Path(document["model"]["path"])
    proposal = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in FIELDS.items())
    words = {"`new_instruction`": json.dumps({"new_instruction": WRITTEN})}
    words |= dict.fromkeys(ASKS_FOR_WORDS, f"{proposal}\n\n[[ ## completed ## ]]")
    replies = {**words, **yaml.safe_load(path.read_text())}
    path.write_text(yaml.safe_dump(replies, allow_unicode=True, width=10**6, sort_keys=False))
    return document


@pytest.fixture
def module(writing, tmp_path):
    """The spec of a module with two predictors, over replies that both can read."""
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "metric.py").write_text(METRIC)
    path = Path(writing["model"]["path"])
    replies = yaml.safe_load(path.read_text())
    answers = {key: re.fullmatch(r"\{Answer: (\d)\}", reply) for key, reply in replies.items()}
    replies = {key: answer_fields(answers[key][1]) if answers[key] else reply for key, reply in replies.items()}
    path.write_text(yaml.safe_dump(replies, allow_unicode=True, width=10**6, sort_keys=False))
    return {**writing, "program": {"kind": f"{tmp_path / 'mine.py'}:Judge"}}


@pytest.fixture
def learning(document, sample):
    """Have the model answer each question right once it is told what it wrote; gives its engine."""
    path = Path(document["model"]["path"])
    read_table = cache(lambda: yaml.safe_load(path.read_text()))

    def reply(text, dialogue):
        asked = [one for one in sample.questions if one.stem in text]
        told = any(WRITTEN in message["content"] for message in dialogue.messages)
        if not asked or not told or any(words in text for words in ("`new_instruction`", *ASKS_FOR_WORDS)):
            return next(words for key, words in read_table().items() if key in text or key == "*")
        number = sample.golds[max(asked, key=lambda one: len(one.stem)).key].number
        return answer_fields(number) if "[[ ##" in text else f"{{Answer: {number}}}"

    MADE.append(engine := ScriptedEngine(reply))
    document["model"]["engine"] = LAST_MADE
    return engine


@pytest.mark.parametrize("kind", ["copro", "mipro", "gepa"])
def test_instructions_are_written_and_the_better_program_is_kept(writing, learning, optimize, kind) -> None:
    if kind == "mipro":
        pytest.importorskip("optuna")
    writer = {**writing["model"], "name": "writer"}
    done = optimize({"optimizer.kind": kind, "optimizer.rounds": 1, "optimizer.prompt_model": writer}, writing)
    assert done.record["ending"] == "complete", done.record["why"]
    assert done.trials[0]["name"] == "as written"
    assert done.trials[0]["right"] < done.best["right"] == 24
    assert done.record["calls"] > sum(trial["calls"] for trial in done.trials)
    best = json.loads((done.folder / "program.json").read_text())
    assert best["answer"]["signature"]["instructions"] == WRITTEN


def test_a_model_that_cannot_write_instructions_is_named(optimize) -> None:
    done = optimize({"optimizer.kind": "copro"})
    assert (done.record["ending"], "optimizer.prompt_model" in done.record["why"]) == ("failed", True)
    assert len(done.trials) == 1


def test_replies_of_a_module_become_demonstrations_of_its_predictors(module, optimize, tmp_path) -> None:
    done = optimize({"optimizer.kind": "bootstrap", "optimizer.demos": 2}, module)
    assert [trial["name"] for trial in done.trials] == ["as written", "bootstrap"]
    state = done.program(1)
    assert {name for name in state if name != "metadata"} == {"note", "judge"}
    (demo, *_) = state["judge"]["demos"]
    assert {"question", "options", "note", "answer"} <= set(demo)
    spec = {name: part for name, part in module.items() if name != "optimizer"}
    settings = {"runs_dir": tmp_path / "runs", "program__load": str(done.place(1))}
    (run,) = package.run(spec, **settings, track=False, progress=False)
    assert run.program == "Judge-optimized"
    written = package.plan(spec, runs_dir=tmp_path / "runs").cells[0]["spec_digest"]
    assert package.plan(spec, **settings).cells[0]["spec_digest"] != written
    with pytest.raises(SpecError, match=r"is nearly headqa-v1/.*, which is asked"):
        package.plan(spec, **settings, dataset__split="train")


def shown(module: dspy.Module) -> dict:
    """What each predictor of a module is told and shown."""
    return {
        name: (
            each.signature.instructions,
            [{key: demo[key] for key in each.signature.fields if key in demo} for demo in each.demos],
        )
        for name, each in module.named_predictors()
    }


@pytest.mark.usefixtures("learning")
@pytest.mark.parametrize(("kind", "sought"), [("bootstrap", "A note."), ("gepa", WRITTEN)])
def test_a_state_goes_to_dspy_and_what_dspy_saves_is_the_same_program(module, optimize, tmp_path, kind, sought) -> None:
    done = optimize({"optimizer.kind": kind, "optimizer.candidates": 3, "optimizer.demos": 2}, module)
    number = next(trial["number"] for trial in done.trials[1:] if sought in json.dumps(done.program(trial["number"])))
    plain = load_object(f"{tmp_path / 'mine.py'}:Judge", "programs")()
    assert sought not in str(shown(plain))
    plain.load(str(done.place(number) / "program.json"))
    assert sought in str(shown(plain))
    (tmp_path / "elsewhere").mkdir()
    plain.save(str(tmp_path / "elsewhere" / "mine.json"))
    spec = {name: part for name, part in module.items() if name != "optimizer"}

    def loaded(path) -> dict:
        return shown(package.build_program({**spec["program"], "load": str(path)}))

    def digest(path) -> str:
        (cell,) = package.plan(spec, runs_dir=tmp_path / "runs", program__load=str(path)).cells
        return cell["spec_digest"]

    saved = tmp_path / "elsewhere" / "mine.json"
    first, known = loaded(saved), digest(saved)
    assert sought in str(first)
    assert first == loaded(done.place(number) / "program.json")
    moved = saved.rename(tmp_path / "moved.json")
    assert digest(moved) == known
    plain.note.signature = plain.note.signature.with_instructions("Otherwise.")
    plain.save(str(moved))
    assert digest(moved) != known


@pytest.mark.usefixtures("learning")
def test_any_optimizer_of_dspys_is_named_by_its_class(module, optimize) -> None:
    args = {"bsize": 4, "num_candidates": 2, "max_steps": 1, "max_demos": 2}
    spec = {**module, "optimizer": {**module["optimizer"], "kind": "dspy.SIMBA", "args": args}}
    done = optimize(spec=spec)
    assert done.record["ending"] == "complete", done.record["why"]
    assert (done.folder / "program.json").exists()
    assert "SIMBA" in done.folder.name


def test_candidates_are_chosen_by_a_function_of_ones_own(module, optimize, tmp_path) -> None:
    done = optimize({"optimizer.kind": "bootstrap", "optimizer.metric": f"{tmp_path / 'metric.py'}:brief"}, module)
    for trial in done.trials:
        assert trial["score"] == pytest.approx(0.25 + 0.5 * trial["right"] / trial["n"])
    moved = (tmp_path / "metric.py").rename(tmp_path / "moved.py")
    again = optimize({"optimizer.kind": "bootstrap", "optimizer.metric": f"{moved}:brief"}, module)
    assert again.folder == done.folder


def test_gepa_reflects_on_the_feedback_of_a_function_of_ones_own(module, learning, optimize, tmp_path) -> None:
    metric = f"{tmp_path / 'metric.py'}:brief"
    done = optimize({"optimizer.kind": "gepa", "optimizer.candidates": 2, "optimizer.metric": metric}, module)
    assert done.record["ending"] == "complete", done.record["why"]
    asked = [dialogue.messages[-1]["content"] for dialogue in learning.dialogues]
    reflections = [text for text in asked if "`new_instruction`" in text]
    assert reflections
    assert all("right, says my metric." in text for text in reflections)


@pytest.mark.parametrize("name", ["MIPROv2", "GEPA", "SIMBA", "InferRules"])
def test_optimizers_read_questions_of_programs_that_ship_as_texts(writing, learning, optimize, name) -> None:
    spec = {**writing, "optimizer": {"kind": f"dspy.teleprompt.{name}", "args": CLASSES[name], "attempts": 8}}
    done = optimize(spec=spec)
    assert done.record["ending"] == "complete", done.record["why"]
    told = "\n".join(message["content"] for dialogue in learning.dialogues for message in dialogue.messages)
    assert not re.search(r"CandidateProgram|Question\(|headqa-v1/|prompt_tokens|non-serializable", told)


@pytest.mark.parametrize("kind", ["bootstrap", "dspy.BootstrapFewShot"])
def test_right_answers_alone_become_demonstrations_whatever_the_metric_gives(
    module, optimize, sample, tmp_path, kind
) -> None:
    done = optimize({"optimizer.kind": kind, "optimizer.metric": f"{tmp_path / 'metric.py'}:brief"}, module)
    rights = {question.stem: sample.golds[question.key].number for question in sample.questions}
    replies = [demo for demo in done.program(1)["judge"]["demos"] if "note" in demo]
    assert len(replies) >= 3
    assert all(demo["answer"] == rights[demo["question"]] for demo in replies)


def test_labelled_demonstrations_have_the_fields_of_the_module_and_its_program_runs(module, optimize, tmp_path) -> None:
    spec = {**module, "optimizer": {"kind": "dspy.LabeledFewShot", "args": {"k": 2}}}
    done = optimize(spec=spec)
    for name in ("note", "judge"):
        assert [set(demo) for demo in done.program(1)[name]["demos"]] == [{"stem", "options", "answer"}] * 2
    settings = {"runs_dir": tmp_path / "runs", "program__load": str(done.place(1)), "limit": 2}
    del spec["optimizer"]
    (run,) = package.run(spec, **settings, track=False, progress=False)
    assert run.complete


BROKEN = """
from dspy.teleprompt import Teleprompter

class Broken(Teleprompter):
    def compile(self, student, trainset):
        return {}["gone"]
"""


@pytest.mark.parametrize(*read_table("refused_optimizers"))
def test_what_is_no_optimizer_or_metric_is_said(module, optimize, tmp_path, listening, optimizer, says) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    optimizer = {
        name: f"{tmp_path / value}" if isinstance(value, str) and ".py:" in value else value
        for name, value in optimizer.items()
    }
    engine = listening(module)
    with pytest.raises(MedExamError, match=says):
        optimize(spec={**module, "optimizer": {**module["optimizer"], **optimizer}})
    assert not engine.dialogues or "KeyError" in says or "for question" in says


@pytest.mark.parametrize("name", CLASSES)
def test_every_optimizer_of_dspys_gets_the_module_and_its_fields(module, learning, optimize, tmp_path, name) -> None:
    spec = {**module, "optimizer": {"kind": f"dspy.teleprompt.{name}", "args": CLASSES[name], "attempts": 8}}
    done = optimize(spec=spec)
    assert done.record["ending"] == "complete", done.record["why"]
    told = "\n".join(message["content"] for dialogue in learning.dialogues for message in dialogue.messages)
    assert not re.search(r"CandidateProgram|Question\(|medexam", told)
    plain = load_object(f"{tmp_path / 'mine.py'}:Judge", "programs")()
    plain.load(str(done.folder / "program.json"))
    loaded = package.build_program({**module["program"], "load": str(done.folder)})
    assert shown(loaded.module) == shown(plain)


class Two(dspy.Module):
    def __init__(self):
        super().__init__()
        self.note = dspy.Predict("question, options -> note")
        self.answer = dspy.Predict("question, options, note -> answer: int")


class One(dspy.Module):
    def __init__(self):
        super().__init__()
        self.answer = dspy.Predict("question, options -> answer: int")


STEPS = {
    Two: [{"ask": "question, options -> note"}, {"ask": "question, options, note -> answer: int"}],
    One: [{"ask": "question, options -> answer: int"}],
}


@pytest.mark.parametrize("kind", STEPS)
def test_states_of_plain_modules_load_into_steps_and_back(module, optimize, tmp_path, kind) -> None:
    plain = kind()
    for predictor in plain.predictors():
        predictor.signature = predictor.signature.with_instructions("Choose well.")
    plain.save(str(tmp_path / "state.json"))
    program = {"name": "mine", "steps": STEPS[kind]}
    spec = {name: part for name, part in module.items() if name != "optimizer"} | {"program": program}
    loaded = {**spec, "program": {**program, "load": str(tmp_path / "state.json")}}
    first, *_ = package.plan(loaded, runs_dir=tmp_path / "runs").cells[0]["prompt"]
    assert "Choose well." in first["content"]
    done = optimize({"optimizer.kind": "bootstrap", "optimizer.demos": 2}, {**module, "program": program})
    plain.load(str(done.place(1) / "program.json"))
    assert plain.answer.demos
    plain.save(str(tmp_path / "whole"), save_program=True)
    with pytest.raises(SpecError, match="save_program=True pickles code"):
        package.plan({**spec, "program": {**program, "load": str(tmp_path / "whole")}}, runs_dir=tmp_path / "runs")
