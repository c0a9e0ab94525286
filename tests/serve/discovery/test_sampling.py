"""What is left out of a request is drawn as the spec says: from all tokens, whatever the server's defaults are."""

from typing import Any

import pytest
from dspy.lm15 import Config, Message, Request
from other_servers import LlamaServer
from wire_server import Wire, serving

from asked import complete
from medexam.dspy_requests import CHOICE, PLAIN
from medexam.errors import RunFolderError
from medexam.experiments import RunFolder
from medexam.experiments.store.answerers import admit
from medexam.model_calls import Dialogue, Sampling
from medexam.serve import NO_KEY, Capabilities, Endpoint, build_engine, probe_endpoint
from medexam.serve.diagnostics.advice import _sampling
from medexam.specs import EngineNeeds, ModelSpec

QWEN = {"repetition_penalty": 1.1, "top_p": 0.8, "top_k": 20}
"""The generation_config.json of Qwen2.5's models, without its temperature."""
NEUTRAL = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


async def probe(wire: Wire) -> Capabilities:
    return await probe_endpoint(Endpoint(wire.address, NO_KEY), None)


@pytest.mark.parametrize(
    ("wire", "neutral", "unread", "filled"),
    [
        (Wire(), NEUTRAL, (), ()),
        (Wire(fills=QWEN), NEUTRAL, (), ("top_p", "top_k", "repetition_penalty")),
        (Wire(unread=("min_p",)), NEUTRAL, ("min_p",), ()),
        (Wire(refused_fields=("min_p",)), {k: v for k, v in NEUTRAL.items() if k != "min_p"}, (), ()),
        (Wire(several=False, fills=QWEN), NEUTRAL, (), None),
        (LlamaServer(), {**NEUTRAL, "repeat_penalty": 1.0}, (), None),
    ],
    ids=["neutral", "fills", "does not read", "refuses", "no n", "llama.cpp"],
)
async def test_what_a_server_does_with_sampling_values(
    wire: Wire, neutral: dict[str, float], unread: tuple[str, ...], filled: tuple[str, ...] | None
) -> None:
    with serving(wire):
        seen = (await probe(wire)).sampling
    assert (seen.neutral, seen.unread, seen.filled) == (neutral, unread, filled)


async def test_a_server_that_wants_another_word_for_all_tokens() -> None:
    class Strict(Wire):
        def _refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
            refused = (422, {"detail": "top_k: at least 0"}) if body.get("top_k", 0) < 0 else None
            return refused or super()._refusal(body)

    with serving(Strict()) as wire:
        seen = await probe(wire)
    assert seen.sampling.neutral["top_k"] == 0
    assert seen.sampling.stated == "neutral"


def asked(prefill: str = "", **extensions: Any) -> Request:
    config = Config(temperature=0.7, max_tokens=8, seed=1, extensions=extensions or None)
    turns = [Message.user("Which?"), *([Message.assistant(prefill)] if prefill else [])]
    return Request(model="m", messages=tuple(turns), config=config)


REQUESTS = [asked(), asked("{Answer: ", **{CHOICE: ["1", "2"]}), asked("Well, "), asked(**{PLAIN: True})]


@pytest.mark.parametrize("request_", REQUESTS, ids=["chat", "choice", "opening", "plain"])
async def test_every_request_states_neutral_values(request_: Request) -> None:
    with serving(Wire(fills=QWEN)) as wire:
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,)), EngineNeeds(guided=True))
        wire.requests.clear()
        await complete(engine, request_)
        details = engine.info().details
        await engine.aclose()
    (body,) = wire.bodies("/v1/chat/completions") + wire.bodies("/v1/completions")
    assert {name: body.get(name) for name in NEUTRAL} == NEUTRAL
    assert details["sampling"] == "neutral"


async def test_bulk_runs_state_them_and_a_spec_overrides_them() -> None:
    model = {"temperature": 0.7, "min_p": 0.1, "extra_body": {"repetition_penalty": 1.2}}
    with serving(Wire()) as wire:
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,), **model))
        wire.requests.clear()
        turns = [{"role": "user", "content": "Which?"}]
        await engine.reply(Dialogue(turns, "Well, ", Sampling(max_tokens=8, temperature=0.7, top_p=0.9)))
        await engine.aclose()
    (body,) = wire.bodies("/v1/completions")
    own = {"top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.2}
    assert {name: body.get(name) for name in NEUTRAL} == {**NEUTRAL, **own}


async def test_the_doctor_names_what_is_filled_and_what_is_not_read() -> None:
    with serving(Wire(fills=QWEN)) as wire:
        (line,) = _sampling(await probe(wire))
    assert "it takes top_p, top_k, repetition_penalty from the model's own settings" in line
    assert line.endswith("start it with --generation-config vllm")
    with serving(Wire(unread=("top_k",))) as wire:
        (line,) = _sampling(await probe(wire))
    assert line.startswith("it ignores top_k, so replies may be sampled with the server's own values")


async def test_answers_under_the_servers_own_values_are_not_continued_silently(tmp_path) -> None:
    with serving(Wire(fills=QWEN)) as wire:
        now = (await probe(wire)).identity
    assert now.notes["fills"] == "top_p, top_k, repetition_penalty"
    before = now.model_copy(update={"sampling": None})
    assert before.print != now.print
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    admit(folder, before, answers=0)
    with pytest.raises(RunFolderError, match=r"leaves out are neutral, and were the server's own.*--fresh, or add"):
        admit(folder, now, answers=3)
    assert admit(folder, now, answers=3, accept=True).print == now.print
