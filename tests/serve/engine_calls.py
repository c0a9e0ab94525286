"""Engines as these tests ask them: a dialogue in, a generation out, over the servers of this folder."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from wire_server import Wire

from medexam.model_calls import Dialogue, Generation, read_sampling
from medexam.process import background_loop
from medexam.serve import Engine, build_engine
from medexam.specs import EngineNeeds, ModelSpec

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
GUIDED = EngineNeeds(chat=True, guided=True)


def ask(
    text: str = "Which?",
    *,
    system: str | None = None,
    opening: str = "",
    choices: Sequence[str] | None = None,
    turns: list[dict[str, str]] | None = None,
    more: dict[str, Any] | None = None,
    **sampling: Any,
) -> Dialogue:
    """A dialogue of one user message, or of `turns`; `more` are further fields of it."""
    first = [] if system is None else [{"role": "system", "content": system}]
    messages = turns or [*first, {"role": "user", "content": text}]
    drawn = read_sampling({"max_tokens": 8, "temperature": 0.0, **sampling})
    return Dialogue(messages, opening, drawn, choices=tuple(choices) if choices else None, **(more or {}))


async def reply(engine: Engine, dialogue: Dialogue) -> Generation:
    """The one reply to a dialogue."""
    return await engine.reply(dialogue)


async def replies(engine: Engine, dialogues: Sequence[Dialogue]) -> list[Generation]:
    """The reply to each of many dialogues that are asked at once."""
    return await asyncio.gather(*(reply(engine, dialogue) for dialogue in dialogues))


def reply_blocking(engine: Engine, dialogue: Dialogue) -> Generation:
    """The one reply, by the engine's synchronous twin."""
    return background_loop().run(engine.reply(dialogue))


def spec_of(*wires: Wire, **model: Any) -> ModelSpec:
    """The spec of a model at these servers."""
    known = {"name": "openai/tiny"} if model.get("engine") == "litellm" else {}
    return ModelSpec(**{"engine": "vllm", "endpoints": tuple(wire.address for wire in wires), **known, **model})


@asynccontextmanager
async def reaching(*wires: Wire, needs: EngineNeeds | None = None, **model: Any) -> AsyncIterator[Engine]:
    """An engine at these servers, which keep only the requests that follow its start."""
    engine = await build_engine(spec_of(*wires, **model), needs or EngineNeeds())
    for wire in wires:
        wire.requests.clear()
        wire.raw.clear()
        wire.keys.clear()
    try:
        yield engine
    finally:
        await engine.aclose()


def prompts(body: dict[str, Any]) -> list[str]:
    """The prompts of a completions request; litellm sends a list of one as a string."""
    return body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]


def read_cases(name: str) -> list[dict[str, Any]]:
    """The rows of `tests/cases/NAME.jsonl`."""
    path = Path(__file__).parents[1] / "cases" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
