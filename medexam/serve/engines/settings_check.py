"""Whether a server takes what a spec adds to its requests, found out before the first question.

A server refuses some fields with an error and ignores others. So every field is sent once, and what a chat template is
told must change what it writes.
"""

import asyncio
from collections.abc import Sequence

from dspy.lm15 import LM15Error

from medexam.errors import EngineError
from medexam.serve.discovery.behaviour import DIALOGUE
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.server_calls import CHAT
from medexam.serve.discovery.token_counts import rename_limit
from medexam.serve.engines.prompt_text import Renderer, ServerRenderer
from medexam.serve.network.connections import open_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object
from medexam.serve.network.retry import CURABLE
from medexam.serve.request_settings import RequestSettings, check_switches, other_settings, template_settings
from medexam.specs import EngineNeeds, ModelSpec

_TOKENS = 16
"""Tokens of the reply to the one request that is sent."""


async def check_vllm_settings(
    spec: ModelSpec,
    needs: EngineNeeds,
    settings: RequestSettings,
    seen: Capabilities,
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
    if settings.template and not seen.tokenizes:
        raise EngineError(
            f"{seen.endpoint} does not tokenise, so it cannot be seen whether its chat template takes "
            f"{', '.join(settings.spec_keys)}: serve the model with vLLM, or set it in model.extra_body"
        )
    if needs.guided and settings.chat_only:
        raise EngineError(
            f"model.extra_body.{settings.chat_only[0]}: guided answers are asked on the completions endpoint, which "
            "does not know it: leave it out, or set program.answer_format to free"
        )
    changes = await _find_changes(spec, remote) if settings.template and seen.chat else {}
    if changes:
        reasons = renderer is None or renderer.may_reason
        check_switches(spec, seen.model, changes=changes, may_reason=reasons)
    await asyncio.gather(*(_send_once(endpoint, seen, settings) for endpoint in endpoints))


async def _find_changes(spec: ModelSpec, remote: ServerRenderer) -> dict[str, bool]:
    """Key of the spec -> whether the server's template writes something else if it is set otherwise."""
    changes = {}
    for name, other in (("reasoning_effort", "thinking"), ("thinking", "reasoning_effort")):
        told = template_settings(spec.model_copy(update={other: None}))
        if told:
            asked = (remote.dialogue_tokens(DIALOGUE, one) for one in (told, other_settings(told)))
            first, second = await asyncio.gather(*asked)
            changes[name] = first != second
    return changes


async def _send_once(endpoint: Endpoint, seen: Capabilities, settings: RequestSettings) -> None:
    """One short request with all fields; raises `EngineError` with the server's own words if it is refused."""
    where, fields = "/completions", {"prompt": "Hello", **settings.sampling}
    if seen.chat:
        where, fields = CHAT, {"messages": DIALOGUE, **settings.sampling, **settings.chat}
    tokens = max(_TOKENS, settings.sampling.get("min_tokens") or 0)
    body = {"model": seen.model, "temperature": 0.7, "seed": 0, "max_tokens": tokens, **fields}
    body = rename_limit(body, seen.limit) if seen.chat else body
    async with open_client(endpoint, 60.0) as client:
        try:
            await reply_object(client.post(f"{endpoint.base}{where}", json=body, headers=endpoint.headers), where)
        except LM15Error as error:
            if isinstance(error, CURABLE):
                raise
            said = " ".join(error.message.split())
            raise EngineError(f"{endpoint.base} refuses {', '.join(settings.spec_keys)}: {said[:300]}") from error
