"""The mechanics of translation with a real model in this process: three questions, few words each."""

import pytest

from medexam.experiments.translate.outcome import find_outcome

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_a_real_model_is_asked_and_every_reply_is_judged(translate) -> None:
    settings = {"model.engine": "embedded", "model.max_tokens": 24}

    plan, watching, stop = translate(settings, limit=3, setups=("expert",))
    outcome = find_outcome(plan)

    assert stop is None
    assert watching.asked_for == 3
    assert outcome.pending == 0
    (count,) = outcome.counts
    assert count.judged == 3
    replies = plan.tasks[0].replies.values()
    assert all(reply.reply for reply in replies)
    assert {reply.model for reply in replies} != {None}
    assert plan.folder.read_json("environment.json")["engine"]["engine"] == "embedded"
