"""Whether a server takes what a spec adds to its requests, found out before the first question.

A server refuses some fields with an error and ignores others. So every field is sent once, and what a chat template is
told must change what it writes.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from medexam.errors import CallError, EngineError
from medexam.serve.discovery.behaviour import DIALOGUE
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.requests import rename_limit, shows_thinking
from medexam.serve.discovery.server_calls import CHAT
from medexam.serve.engines.prompt_text import Renderer, ServerRenderer
from medexam.serve.network.connections import open_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object
from medexam.serve.network.retry import CURABLE
from medexam.serve.request_settings import (
    RequestSettings,
    check_switches,
    other_settings,
    still_thinks,
    template_settings,
)
from medexam.specs import EngineNeeds, ModelSpec

_TOKENS = 16
"""Tokens of the reply to the one request that is sent."""


async def check_vllm_settings(
    spec: ModelSpec,
    needs: EngineNeeds,
    settings: RequestSettings,
    capabilities: Capabilities,
    endpoints: Sequence[Endpoint],
    remote: ServerRenderer,
    renderer: Renderer | None,
) -> None:
    """Raise `EngineError` for the first setting of the spec that a request to these servers cannot have."""
    if not settings.spec_keys:
        return
    if needs.logprobs and spec.extra_body:
        raise EngineError(
            "model.extra_body is not sent where log-probabilities are read: give such programs a model without it"
        )
    if settings.template and not capabilities.tokenizes:
        raise EngineError(
            f"{capabilities.endpoint} does not tokenise, so it is unknown whether its chat template takes "
            f"{', '.join(settings.spec_keys)}: serve the model with vLLM, or set it in model.extra_body"
        )
    if needs.guided and settings.chat_only:
        raise EngineError(
            f"model.extra_body.{settings.chat_only[0]}: guided answers are asked on the completions endpoint, which "
            "does not know it: leave it out, or set program.answer_format to free"
        )
    changes = await _find_changes(spec, remote) if settings.template and capabilities.chat else {}
    if changes:
        reasons = renderer is None or renderer.may_reason
        check_switches(spec, capabilities.model, changes=changes, may_reason=reasons)
    replies = await asyncio.gather(*(_send_once(endpoint, capabilities, settings) for endpoint in endpoints))
    if spec.thinking == "off" and any(map(shows_thinking, replies)):
        raise EngineError(still_thinks(capabilities.model))


async def _find_changes(spec: ModelSpec, remote: ServerRenderer) -> dict[str, bool]:
    """Map each key of the spec to whether the server's template writes something else if it is set otherwise."""
    changes = {}
    for name, other_key in (("reasoning_effort", "thinking"), ("thinking", "reasoning_effort")):
        settings = template_settings(spec.model_copy(update={other_key: None}))
        if settings:
            calls = (remote.dialogue_tokens(DIALOGUE, variant) for variant in (settings, other_settings(settings)))
            first, second = await asyncio.gather(*calls)
            changes[name] = first != second
    return changes


async def _send_once(endpoint: Endpoint, capabilities: Capabilities, settings: RequestSettings) -> dict[str, Any]:
    """Return the reply to a short request with all fields; raises `EngineError` with the server's own words if it is
    refused.
    """
    path, fields = "/completions", {"prompt": "Hello", **settings.sampling}
    if capabilities.chat:
        path, fields = CHAT, {"messages": DIALOGUE, **settings.sampling, **settings.chat}
    tokens = max(_TOKENS, settings.sampling.get("min_tokens") or 0)
    body = {"model": capabilities.model, "temperature": 0.7, "seed": 0, "max_tokens": tokens, **fields}
    body = rename_limit(body, capabilities.limit) if capabilities.chat else body
    async with open_client(endpoint, 60.0) as client:
        try:
            return await reply_object(client.post(f"{endpoint.base}{path}", json=body, headers=endpoint.headers), path)
        except CallError as error:
            if isinstance(error, CURABLE):
                raise
            message = " ".join(error.message.split())
            raise EngineError(f"{endpoint.base} refuses {', '.join(settings.spec_keys)}: {message[:300]}") from error
