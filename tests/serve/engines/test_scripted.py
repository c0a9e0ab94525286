"""The scripted engine, alone and behind `dspy.LM`."""

import dspy
import pytest

from asked import complete, complete_blocking, requests_of
from medexam.errors import (
    CallTimeoutError,
    ContextLengthError,
    InvalidRequestError,
    RateLimitError,
    ServerError,
    SpecError,
    TransportError,
)
from medexam.serve import ScriptedEngine, build_engine
from medexam.specs import EngineNeeds, ModelSpec
from recorded import recorded

TABLE = {
    "France": "Paris",
    "long": {"text": "On and", "finish_reason": "length"},
    "guided": "{Answer: 10}",
    "*": "I do not know",
}


@pytest.mark.parametrize(
    ("user", "options", "text", "finish_reason"),
    [
        ("Capital of France?", {}, "Paris", "stop"),
        ("Something else", {}, "I do not know", "stop"),
        ("Tell me a long story", {}, "On and", "length"),
        ("Something else", {"stop": (" not",)}, "I do", "stop"),
        ("Capital of France?", {"prefill": "Pa"}, "ris", "stop"),
        ("guided", {"prefill": "{Answer: ", "choice": ["1", "2", "10"]}, "10", "stop"),
        ("guided", {"prefill": "{Answer: ", "choice": ["2", "1"]}, "1", "stop"),
        ("Something else", {"choice": ["3", "4"]}, "3", "stop"),
        ("Capital of France?", {"choice": ["Rome", "Paris"]}, "Paris", "stop"),
    ],
)
async def test_replies(ask, user, options, text, finish_reason) -> None:
    engine = ScriptedEngine(TABLE)
    request = ask(user, **options)
    response = await complete(engine, request)
    assert (response.text, response.finish_reason) == (text, finish_reason)
    assert complete_blocking(engine, request) == response
    assert requests_of(engine) == [request, request]


def test_only_the_last_user_turn_counts(ask) -> None:
    assert complete_blocking(ScriptedEngine(TABLE), ask("Hello", system="France")).text == "I do not know"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("transport", TransportError),
        ("server", ServerError),
        ("timeout", CallTimeoutError),
        ("rate_limit", RateLimitError),
        ("context", ContextLengthError),
    ],
)
def test_failures_on_demand(ask, error, kind) -> None:
    with pytest.raises(kind, match="scripted"):
        complete_blocking(ScriptedEngine({"*": {"error": error}}), ask("Hi"))


def test_a_function_can_reply(ask) -> None:
    replies = iter([{"error": "server"}, "fine"])
    engine = ScriptedEngine(lambda user: next(replies))
    with pytest.raises(ServerError):
        complete_blocking(engine, ask("Hi"))
    assert complete_blocking(engine, ask("Hi")).text == "fine"


def test_nothing_fits(ask) -> None:
    with pytest.raises(InvalidRequestError, match="no scripted reply fits 'Hi'"):
        complete_blocking(ScriptedEngine({"France": "Paris"}), ask("Hi"))


async def test_behind_dspy() -> None:
    engine = ScriptedEngine(TABLE)
    lm = dspy.LM("scripted", **recorded(engine), cache=False)
    assert lm("Capital of France?") == ["Paris"]
    assert await lm.acall("Capital of France?") == ["Paris"]
    assert len(engine.dialogues) == 2


async def test_from_a_file(tmp_path, ask) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text('France: Paris\n"*": {text: "No", finish_reason: length}\n', encoding="utf-8")
    engine = await build_engine(ModelSpec(engine="scripted", path=path), EngineNeeds(guided=True))
    assert (await complete(engine, ask("France?"))).text == "Paris"
    assert engine.info().revision
    await engine.aclose()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("a: [", "not YAML"),
        ("- a", "must be a mapping"),
        ("", "must be a mapping"),
        ("1: one", "put it in quotes"),
        ("a: 1", "reply to 'a'"),
        ("a: {error: fire}", "reply to 'a', error"),
        ("a: {txt: b}", "reply to 'a', txt"),
        ("a: {text: 2020-01-01}", "reply to 'a', text"),
    ],
)
async def test_a_bad_file_is_one_clear_line(tmp_path, content, message) -> None:
    path = tmp_path / "replies.yaml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(SpecError, match=message) as caught:
        await build_engine(ModelSpec(engine="scripted", path=path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
