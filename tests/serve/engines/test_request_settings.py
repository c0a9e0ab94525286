"""What a spec adds to requests: passed on as it is, or refused by name before anything is asked."""

from pathlib import Path
from typing import Any

import pytest
from engine_calls import CHAT, COMPLETIONS, GUIDED, ask, reaching, reply, reply_blocking
from wire_server import Wire, serving

from medexam.serve import EmbeddedEngine
from medexam.specs import ModelSpec
from table_cases import read_table

DRAWN = {"temperature": 0.7, "seed": 1}
CHOICE = ask(choices=["1", "2"], opening="{Answer: ", **DRAWN)
EVERYTHING = {"min_p": 0.1, "thinking": 300, "reasoning_effort": "low", "extra_body": {"repetition_penalty": 1.1}}


async def test_a_server_gets_every_field_on_both_endpoints() -> None:
    with serving(Wire(switch=True, reasoning="hm")) as wire:
        async with reaching(wire, needs=GUIDED, temperature=0.7, **EVERYTHING) as engine:
            await reply(engine, ask(**DRAWN))
            await reply(engine, CHOICE)
    (chat,), (choice,) = wire.bodies(CHAT), wire.bodies(COMPLETIONS)
    assert [chat[name] for name in ("min_p", "repetition_penalty", "thinking_token_budget")] == [0.1, 1.1, 300]
    assert chat["reasoning_effort"] == "low"
    assert chat["chat_template_kwargs"] == {"reasoning_effort": "low", "enable_thinking": True, "thinking": True}
    assert [choice[name] for name in ("min_p", "repetition_penalty", "max_tokens")] == [0.1, 1.1, 1]
    assert choice["prompt"] == "<low><u>Which?\n<a><think>\n\n</think>\n\n{Answer: "


async def test_thinking_that_is_off_is_rendered_so() -> None:
    with serving(Wire(switch=True)) as wire:
        async with reaching(wire, needs=GUIDED, thinking=False) as engine:
            await reply(engine, CHOICE)
    assert wire.bodies(COMPLETIONS)[-1]["prompt"] == "<u>Which?\n<a><think>\n\n</think>\n{Answer: "


async def test_an_endpoint_behind_litellm_gets_the_fields_as_they_are() -> None:
    model = {"min_p": 0.2, "thinking": "off", "extra_body": {"cache_salt": "a"}, "stop": ("END",), "temperature": 0.7}
    with serving(Wire(tokenize=False)) as wire:
        async with reaching(wire, engine="litellm", **model) as engine:
            await reply(engine, ask(**DRAWN))
    (body,) = wire.bodies(CHAT)
    assert (body["min_p"], body["cache_salt"], body["temperature"], body["seed"]) == (0.2, "a", 0.7, 1)
    assert body["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


REPLY = "<think>\nit is 2\n</think>\n\n{Answer: 1}"


@pytest.mark.parametrize(*read_table("thoughts_of_servers"))
async def test_thinking_is_found_where_a_server_left_it_and_counted(
    content: str, reasoning: str | None, opens: bool, finish: str, whole: str, words: str | None
) -> None:
    class Thinking(Wire):
        def render(self, turns: list[dict[str, str]], told: dict[str, Any] | None = None) -> str | None:
            written = super().render(turns, told)
            return written if written is None or not opens else f"{written}<think>\n"

        def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            status, found = super().reply(path, body)
            if path == CHAT and "choices" in found:
                message = {"role": "assistant", "content": content, "reasoning": reasoning}
                found["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
            return status, found

    with serving(Thinking()) as wire:
        async with reaching(wire) as engine:
            answer = await reply(engine, ask())
    assert (answer.text, answer.words) == (whole, whole if words is None else words)
    assert answer.thinking_tokens == (None if whole == words else len("it is 2")), "its tokens are letters"


async def test_the_embedded_engine_tells_thinking_apart_and_counts_it(thinking_model: Path) -> None:
    engine = EmbeddedEngine(ModelSpec(path=thinking_model, dtype="float32"))
    cut = reply_blocking(engine, ask("Tell me a long story.", max_tokens=10))
    closed = reply_blocking(engine, ask(opening="<think>\nIt is 2.\n</think>\n\n{Answer: ", max_tokens=10))
    await engine.aclose()
    assert (cut.finish_reason, cut.thinking_tokens) == ("length", 10)
    assert cut.text.startswith("<think>")
    assert closed.thinking_tokens is None


async def test_the_embedded_engine_chooses_behind_a_closed_block(thinking_model: Path) -> None:
    """Its template opens a block; the prompt of a choice is as long as if thinking were off."""
    sizes = []
    for thinking in (None, "off"):
        engine = EmbeddedEngine(ModelSpec(path=thinking_model, dtype="float32", thinking=thinking))
        choice = reply_blocking(engine, ask(choices=["1", "2"], opening="{Answer: "))
        sizes.append((choice.prompt_tokens, engine.info().details.get("open_thinking")))
        await engine.aclose()
    (opened, recorded), (closed, nothing) = sizes
    assert opened == closed
    assert (recorded, nothing) == ("closed before a choice", None)
