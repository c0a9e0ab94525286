"""Servers that ignore a limit of tokens, drop a system message or cut a prompt, and answer all the same."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dspy.lm15 import Config, Message, Request
from wire_server import Wire, serving

import medexam
from asked import complete
from medexam.serve import build_engine
from medexam.serve.discovery.token_counts import counts_more, is_count
from medexam.serve.engines.prompt_counts import PromptCounts
from medexam.specs import EngineNeeds, ModelSpec

CHAT = "/v1/chat/completions"
OLDER, NEWER = "max_tokens", "max_completion_tokens"


@dataclass
class LaxWire(Wire):
    """A server without `/tokenize` that reads `limits` alone, and shows its model less than it was sent."""

    version: str | None = None
    owner: str | None = "tiny"
    tokenize: bool = False
    several: bool = False
    limits: tuple[str, ...] = (OLDER, NEWER)
    drops: bool = False
    """Leave system messages out."""
    cuts: int | None = None
    """The most characters of a prompt that the model reads."""
    counts: bool = True
    """Count tokens."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.drops and "messages" in body:
            body = {**body, "messages": [turn for turn in body["messages"] if turn["role"] != "system"]}
        status, reply = super().reply(path, body)
        if path != CHAT or status != 200:
            return status, reply
        written = min([60, *(body[name] for name in self.limits if body.get(name))])
        for choice in reply["choices"]:
            # Only replies to what is counted are long.
            if choice["message"]["content"] == "hello":
                choice["message"]["content"] = " ".join(["seventeen"] * written)
        usage = reply["usage"]
        usage |= {"completion_tokens": written, "prompt_tokens": min(usage["prompt_tokens"], self.cuts or 10**6)}
        return status, reply if self.counts else {**reply, "usage": None}


def model_of(engine: str, wire: Wire) -> dict[str, Any]:
    return {"engine": engine, "name": "tiny" if engine == "vllm" else "openai/tiny", "endpoints": [wire.address]}


async def reply_of(engine_name: str, wire: Wire, *, system: str | None = None) -> tuple[str, Any]:
    engine = await build_engine(ModelSpec(**model_of(engine_name, wire)), EngineNeeds())
    try:
        wire.requests.clear()
        asked = Request(model="m", system=system, messages=(Message.user("?"),), config=Config(max_tokens=8))
        return (await complete(engine, asked)).text, engine.info()
    finally:
        await engine.aclose()


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("field", [OLDER, NEWER])
@pytest.mark.parametrize("refuses", [True, False])
def test_the_limit_that_a_server_reads_is_the_one_that_is_sent(engine, counts, field, refuses) -> None:
    other = NEWER if field == OLDER else OLDER
    with serving(LaxWire(limits=(field,), counts=counts, refused_fields=(other,) if refuses else ())) as wire:
        text, info = asyncio.run(reply_of(engine, wire))
    assert len(text.split()) == 8
    (body,) = wire.bodies(CHAT)
    assert (body.get(field), body.get(other)) == (8, None)
    assert info.details["warnings"] == []


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
def test_a_server_that_reads_no_limit_is_told_of(engine: str) -> None:
    with serving(LaxWire(limits=())) as wire:
        _, info = asyncio.run(reply_of(engine, wire))
    (warning,) = info.details["warnings"]
    assert f"{wire.address} ignores max_tokens and max_completion_tokens" in warning


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
def test_a_system_message_that_costs_no_tokens_opens_the_users(engine: str) -> None:
    with serving(LaxWire(drops=True)) as wire:
        _, info = asyncio.run(reply_of(engine, wire, system="Be brief."))
    assert info.system_turn == "merged"
    assert wire.bodies(CHAT)[-1]["messages"] == [{"role": "user", "content": "Be brief.\n\n?"}]


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
@pytest.mark.parametrize("wire", [LaxWire(), LaxWire(drops=True, counts=False)], ids=["kept", "not counted"])
def test_a_system_message_is_kept_unless_tokens_show_that_it_is_dropped(engine: str, wire: LaxWire) -> None:
    with serving(wire):
        asyncio.run(reply_of(engine, wire, system="Be brief."))
    assert wire.bodies(CHAT)[-1]["messages"][0] == {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
def test_a_run_says_at_how_many_tokens_a_server_cuts_prompts(engine: str, tmp_path: Path, caplog) -> None:
    spec = {"name": "cut", "dataset": {"name": "headqa_sample", "language": "en", "limit": 30}, "program": "zero_shot"}
    with serving(LaxWire(cuts=300)) as wire, caplog.at_level(logging.WARNING):
        (run,) = medexam.run({**spec, "model": model_of(engine, wire)}, runs_dir=tmp_path, progress=False, track=False)
    (warning,) = run.stored.warnings
    assert warning.startswith("the server counted 300 tokens for each of ")
    assert "it cuts prompts there without saying so" in (run.folder / "report.md").read_text(encoding="utf-8")
    assert sum("it cuts prompts there" in record.message for record in caplog.records) == 1


def test_prompts_of_different_lengths_that_count_the_same_are_cut() -> None:
    counts = PromptCounts()
    assert [counts.add(*prompt) for prompt in [(100, 20), (800, 200), (400, 100), (900, 200)]] == [False] * 4
    assert (counts.add(1_000, 200), counts.add(1_300, 200), counts.cut_at) == (True, False, 200)
    assert (counts.add(1_300, None), counts.add(2_000, 400), counts.cut_at) == (False, False, None)


def test_prompts_of_similar_lengths_may_count_the_same() -> None:
    counts = PromptCounts()
    assert not any(counts.add(characters, 200) for characters in range(800, 900, 10))
    assert counts.warning is None


def test_what_is_no_count_shows_nothing() -> None:
    assert [is_count(value) for value in (0, 7, True, -1, 1.0, "7", None, 10**9)] == [True, True, *[False] * 6]
    for told in ({}, {"usage": None}, {"usage": {"prompt_tokens": 0}}, {"usage": {"prompt_tokens": True}}):
        assert counts_more(told, {"usage": {"prompt_tokens": 9}})
        assert counts_more({"usage": {"prompt_tokens": 9}}, told)
    assert not counts_more({"usage": {"prompt_tokens": 9}}, {"usage": {"prompt_tokens": 9}})
