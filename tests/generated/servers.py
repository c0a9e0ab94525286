"""Servers that answer with changed replies: to the engines, to the probe and to `medexam doctor`."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dspy.lm15 import Config, Message, Request
from hypothesis import strategies as st
from wire_server import Wire, serving

from asked import complete
from generated.boundary import Boundary
from generated.commands import call, refusing
from generated.mutations import changed_json
from medexam.dspy_requests import CHOICE, CONTINUATIONS, read_generation
from medexam.errors import CallError
from medexam.model_calls import ContinuationRequest
from medexam.predictions import Prediction, Status
from medexam.serve import TIMING, build_engine
from medexam.specs import ModelSpec

USAGE = {"prompt_tokens": 34, "completion_tokens": 5, "total_tokens": 39, "prompt_tokens_details": None}
CHAT = {
    "id": "chatcmpl-8f0c",
    "object": "chat.completion",
    "created": 1763800000,
    "model": "tiny",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "{Answer: 1}",
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "tool_calls": [],
                "reasoning": "Because.",
                "reasoning_content": None,
            },
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": None,
            "token_ids": [1, 2, 3],
        }
    ],
    "service_tier": None,
    "system_fingerprint": None,
    "usage": USAGE,
    "prompt_logprobs": None,
    "prompt_token_ids": [1, 2, 3],
    "kv_transfer_params": None,
}
"""A reply to a dialogue with every field that vLLM 0.32 writes."""
COMPLETION = {
    "id": "cmpl-8f0c",
    "object": "text_completion",
    "created": 1763800000,
    "model": "tiny",
    "choices": [
        {
            "index": 0,
            "text": "1",
            "finish_reason": "length",
            "stop_reason": None,
            "token_ids": [49],
            "logprobs": {
                "text_offset": [0],
                "token_logprobs": [-0.1],
                "tokens": ["token_id:49"],
                "top_logprobs": [{"token_id:49": -0.1, "token_id:50": -2.5}],
            },
            "prompt_logprobs": None,
            "prompt_token_ids": [60, 117, 62],
        }
    ],
    "service_tier": None,
    "system_fingerprint": None,
    "usage": USAGE,
    "kv_transfer_params": None,
}
"""A reply to a prompt."""
FAULTS = [
    {
        "error": {
            "message": "This model's maximum context length is 4096 tokens.",
            "type": "BadRequestError",
            "code": 400,
        }
    },
    {"object": "error", "message": "overloaded", "type": "ServerError", "param": None, "code": 503},
    {"detail": "Not Found"},
]
PROBED = {
    "/version": {"version": "0.32.0"},
    "/v1/models": {
        "object": "list",
        "data": [{"id": "tiny", "object": "model", "owned_by": "vllm", "root": "none/tiny", "max_model_len": 4096}],
    },
    "/tokenize": {"count": 3, "max_model_len": 4096, "tokens": [60, 117, 62], "token_strs": ["<", "u", ">"]},
    "/detokenize": {"prompt": "<u>"},
    "/v1/completions": COMPLETION,
    "/v1/chat/completions": CHAT,
}
"""What the probe asks, and a reply to each."""


@dataclass
class ChangedWire(Wire):
    """Answers what `paths` ask with `content` and `status`, and everything else as a server does."""

    content: bytes | None = None
    status: int = 200
    paths: tuple[str, ...] = ("/v1/completions", "/v1/chat/completions")

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        if self.content is None or path not in self.paths:
            return None
        return {":status": str(self.status)}, iter([self.content])


def _request(**extensions: Any) -> Request:
    config = Config(temperature=0.0, max_tokens=4, extensions=extensions or None)
    return Request(model="tiny", messages=(Message.user("Hello"),), config=config)


REQUESTS = {
    "free": _request(),
    "choice": _request(**{CHOICE: ["1", "2", "3"]}),
    "words": _request(**{CHOICE: ["{Answer: 1}", "{Answer: 2}"]}),
    "continuations": _request(**{CONTINUATIONS: ContinuationRequest(texts=(" a", " bc")).model_dump(mode="json")}),
}


def replies(folder: Path, closing: ExitStack) -> Boundary:
    """Replies to the engines `vllm` and `litellm`: what comes out can be kept, or is a fault of the server."""
    wire = closing.enter_context(serving(ChangedWire()))
    runner = closing.enter_context(asyncio.Runner())
    closing.enter_context(patch.object(TIMING, "attempts", 1))
    own = ModelSpec(engine="vllm", endpoints=(wire.address,), timeout_s=60.0)
    other = ModelSpec(engine="litellm", name="openai/tiny", endpoints=(wire.address,), timeout_s=60.0)
    engines = {name: runner.run(build_engine(spec)) for name, spec in {"vllm": own, "litellm": other}.items()}
    for engine in engines.values():
        closing.callback(lambda engine=engine: runner.run(engine.aclose()))
    inputs = st.tuples(
        st.sampled_from(list(engines)),
        st.sampled_from(list(REQUESTS)),
        st.one_of(changed_json([CHAT]), changed_json([COMPLETION]), changed_json([CHAT, COMPLETION, *FAULTS])),
        st.sampled_from([200, 200, 200, 200, 400, 404, 422, 429, 500, 503]),
    )

    async def ask(engine: str, request: Request) -> None:
        try:
            response = await complete(engines[engine], request)
        except CallError as error:
            said = {"status": Status.FAILED, "failure": {"kind": type(error).__name__, "message": str(error)}}
        else:
            generation = read_generation(response)
            usage = {name: getattr(generation, name) for name in ("prompt_tokens", "completion_tokens", "model")}
            said = {"status": Status.ANSWERED, "answer": 1, "reply": generation.reply, **usage}
        kept = Prediction(question="q", program="p", spec_digest="d", **said)
        line = json.dumps(kept.to_json(), ensure_ascii=False).encode()
        assert Prediction.model_validate_json(line) == kept
        assert b"Traceback" not in line

    def trial(one: tuple[str, str, bytes, int]) -> None:
        engine, request, wire.content, wire.status = one
        with refusing():
            runner.run(ask(engine, REQUESTS[request]))

    return Boundary(inputs, trial)


def probes(folder: Path, closing: ExitStack) -> Boundary:
    """What a server says of itself, to `medexam doctor`."""
    wire = closing.enter_context(serving(ChangedWire()))
    closing.enter_context(patch.object(TIMING, "attempts", 1))
    inputs = st.sampled_from(list(PROBED)).flatmap(
        lambda path: st.tuples(
            st.just(path),
            st.one_of(changed_json([PROBED[path]]), changed_json([PROBED[path], *FAULTS])),
            st.sampled_from([200, 200, 200, 200, 400, 404, 500]),
            st.booleans(),
        )
    )

    def trial(one: tuple[str, bytes, int, bool]) -> None:
        path, wire.content, wire.status, identify = one
        wire.paths = (path,)
        call("doctor", wire.address, *(["--identify"] if identify else ["--burst", "0"]))

    return Boundary(inputs, trial)
