"""A model without a chat template: it does whatever needs none, and is refused in one line where one is needed."""

import asyncio
import sys

import pytest
import yaml
from dspy.lm15 import Config, Message, Request

from asked import complete
from medexam.dspy_requests import PLAIN
from medexam.errors import UnsupportedFeatureError
from medexam.experiments import Runner, plan_experiment
from medexam.serve import EmbeddedEngine
from medexam.specs import ModelSpec
from watching import Silent

pytestmark = pytest.mark.model
SUM = "Spanish:\nUno.\n\nEnglish:\nOne.\n\nSpanish:\nDos.\n\nEnglish:"


def _document(path, program) -> dict:
    return {
        "name": "base",
        "dataset": {"name": "headqa_sample", "limit": 2},
        "model": {"engine": "embedded", "path": str(path), "dtype": "float32"},
        "program": program,
    }


def test_log_probabilities_are_those_of_the_same_weights_with_a_template(base_model, tiny_llama, tmp_path) -> None:
    scores = []
    for path in (base_model, tiny_llama):
        plan = plan_experiment(_document(path, {"kind": "likelihood"}), {}, runs_dir=tmp_path / "runs")
        (run,), _ = Runner(plan, Silent()).run()
        assert run.complete
        predictions = run.folder.read_predictions()
        scores.append({key: predictions[key].option_scores for key in sorted(predictions)})
        assert (run.environment["engine"]["chat_template"] is None) is (path == base_model)
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    "program",
    [
        {"kind": "zero_shot"},
        {"kind": "few_shot", "answer_format": "guided"},
        {"kind": "likelihood", "chat_template": True},
    ],
)
def test_what_needs_a_chat_template_is_refused_before_anything_is_asked(
    base_model, tmp_path, monkeypatch, capsys, program
) -> None:
    from medexam.cli import run_command

    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(_document(base_model, program)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["medexam", "run", "spec.yaml"])
    with pytest.raises(SystemExit) as ended:
        run_command()
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "medexam: engine embedded has model, which has no chat template and takes no dialogue: name an "
        "instruction-tuned model, or have it read plain text (program.kind likelihood, or a translation's "
        "--set base.KEY=VALUE)"
    )


def test_a_plain_text_is_continued_token_by_token_until_a_stop(base_model) -> None:
    import torch

    engine = EmbeddedEngine(ModelSpec(path=base_model, dtype="float32"))

    def ask(**config) -> str:
        asked = Config(temperature=0.0, max_tokens=12, extensions={PLAIN: True}, **config)
        request = Request(model="m", messages=(Message.user(SUM),), config=asked)
        return asyncio.run(complete(engine, request)).text

    model = engine._model
    ids = model.tokenizer(SUM, return_tensors="pt").input_ids
    with torch.inference_mode():
        written = model.model.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=model.pad)
    whole = model.tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True)
    assert ask() == whole
    stop = whole.splitlines()[-1]
    assert ask(stop=(f"\n{stop}",)) == whole.partition(f"\n{stop}")[0]
    with pytest.raises(UnsupportedFeatureError, match="takes no dialogue"):
        asyncio.run(complete(engine, Request(model="m", messages=(Message.user("Hello"),))))
    asyncio.run(engine.aclose())
