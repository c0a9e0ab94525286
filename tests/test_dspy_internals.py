"""What is used of DSPy without being documented is there, and does what the product needs of it."""

import asyncio
import inspect

import dspy
import pytest
from dspy.clients import costs
from dspy.lm15 import Config, Message, Request, Response, TextPart, Usage
from dspy.utils.exceptions import LMError

from medexam.dspy_internals import (
    chat_request_fields,
    current_settings,
    dspy_errors,
    is_plain_lm,
    model_check,
    prices_looked_up_once,
    read_litellm_error,
)
from medexam.errors import RateLimitError
from medexam.serve.engines.litellm_calls import get_litellm


def test_settings_are_those_of_the_context() -> None:
    outside = current_settings()
    with dspy.context(disable_history=not outside["disable_history"], trace=[]):
        assert current_settings()["disable_history"] is not outside["disable_history"]
        assert current_settings()["trace"] == []
    assert current_settings() == outside
    assert {"callbacks", "track_usage", "usage_tracker", "send_stream"} <= outside.keys()


def test_errors_of_a_call_become_dspys() -> None:
    with pytest.raises(LMError, match="slow down"), dspy_errors("tiny"):
        raise RateLimitError("slow down", status=429)


def test_a_request_is_written_in_openais_chat_dialect() -> None:
    message = Message(role="user", parts=(TextPart("Hello"),))
    fields = chat_request_fields(
        Request(model="tiny", messages=(message,), config=Config(max_tokens=7, temperature=0.5))
    )
    assert fields["temperature"] == 0.5
    assert 7 in (fields.get("max_tokens"), fields.get("max_completion_tokens"))
    assert [turn["role"] for turn in fields["messages"]] == ["user"]


def test_an_error_of_litellm_is_read_and_others_stay() -> None:
    error = get_litellm().RateLimitError("slow down", "openai", "tiny")
    assert isinstance(read_litellm_error(error, "tiny"), RateLimitError)
    other = ValueError("no call")
    assert read_litellm_error(other, "tiny") is other


def test_a_model_is_priced_as_ever_and_looked_up_once(monkeypatch) -> None:
    lookups, own = [], costs.model_info
    monkeypatch.setattr(costs, "model_info", lambda *names, **more: lookups.append(names) or own(*names, **more))
    message, usage = Message.assistant("Hi"), Usage(input_tokens=10, output_tokens=10)
    response = Response(id=None, model="gpt-4o-mini", message=message, finish_reason="stop", usage=usage)

    def price() -> float:
        cost, _ = costs.estimate_cost(response, provider="openai-chat", requested_model="gpt-4o-mini")
        return cost

    outside = price()
    with prices_looked_up_once():
        assert price() == price() == outside > 0
    assert len(lookups) == 2
    assert price() == outside
    assert len(lookups) == 3


def test_a_check_stops_a_model_before_it_is_asked_and_leaves_it_plain() -> None:
    lm, heard = dspy.LM("openai/gpt-4o-mini", api_base="http://127.0.0.1:1"), []

    def refuse(model: dspy.BaseLM) -> None:
        heard.append(model)
        raise KeyError("refused")

    setting = model_check(refuse)
    assert is_plain_lm(lm)
    with dspy.context(**setting):
        assert not is_plain_lm(lm)
        with pytest.raises(KeyError, match="refused"):
            lm("Hi")
        with pytest.raises(KeyError, match="refused"):
            asyncio.run(lm.acall("Hi"))
    assert heard == [lm, lm]
    assert inspect.iscoroutinefunction(dspy.LM.acall)
