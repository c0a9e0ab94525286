"""The mechanics of translation with a model in this process: three questions, few words each."""

import pytest

from medexam.companions.translation.outcome import find_outcome
from medexam.errors import EngineError

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_a_model_in_this_process_is_asked_and_every_reply_is_judged(translate, tiny_llama) -> None:
    settings = {"model.engine": "embedded", "model.path": tiny_llama, "model.max_tokens": 24}

    plan, watching, stop = translate(settings, limit=3, setups=("expert",))
    outcome = find_outcome(plan)

    assert stop is None
    assert watching.asked_for == 3
    assert outcome.pending == 0
    (count,) = outcome.counts
    assert count.judged == 3
    replies = plan.setups[0].predictions.values()
    assert all(reply.reply for reply in replies)
    assert {reply.model for reply in replies} != {None}
    assert plan.setups[0].cell.folder.read_environment()["engine"]["engine"] == "embedded"


def test_a_base_model_continues_plain_text_beside_the_instruct_model(translate, tiny_llama, base_model) -> None:
    engines = {"model.engine": "embedded", "base.engine": "embedded"}
    settings = {**engines, "model.path": tiny_llama, "base.path": base_model}
    small = {f"{name}.max_tokens": 24 for name in ("model", "base")}

    plan, watching, stop = translate(settings | small, limit=2)

    assert stop is None
    assert (watching.tasks, watching.asked_for) == (["zero_shot", "one_shot", "expert"], 6)
    one_shot = plan.setups[1].predictions.values()
    assert all(reply.reply and reply.completion_tokens <= 24 for reply in one_shot)
    engines = {run.role: run.cell.folder.read_environment()["engine"] for run in plan.setups}
    assert engines["model"]["chat_template"]
    assert engines["base"]["chat_template"] is None
    asked = [plan.setups[0].cell.program.adapter.words.render_user(source) for source in plan.sources.values()]
    assert all(text.endswith("English:") for text in asked)


def test_a_base_model_is_refused_where_dialogues_are_asked(translate, base_model) -> None:
    with pytest.raises(EngineError, match="has no chat template and takes no dialogue: name an"):
        translate({"model.engine": "embedded", "model.path": base_model}, limit=1)
