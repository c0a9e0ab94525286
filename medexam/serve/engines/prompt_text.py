"""A dialogue as the text that the model reads, and that text as tokens.

One request takes many prompts only as rendered text, and only to rendered text can the opening words of a reply be
appended exactly. The model's own tokenizer renders fastest, if it is on this machine; else the server is asked. Both
must give the server's tokens, which is checked before either is used.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from medexam.errors import InvalidRequestError
from medexam.model_calls import ChatMessage
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.local_model.template import LocalTemplate, load_template
from medexam.serve.network.http_calls import reply_object
from medexam.serve.network.retry import TIMING
from medexam.serve.pool import Server, ServerPool

_CHECKED = [
    [{"role": "user", "content": "Hello: 1. one\n2. two"}],
    [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": " ¿Qué? \n"},
        {"role": "assistant", "content": "Así."},
        {"role": "user", "content": "Bye"},
    ],
    [
        {"role": "system", "content": ""},
        {"role": "user", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ],
]
"""Dialogues whose tokens a local tokenizer must render as the server does: spaces, accents, several messages, and two
of one role behind an empty system message."""
_CHECKED_TEXT = "Hello: 1. ¿qué?\n2. two"
"""Plain text, before which a tokenizer adds its own opening tokens."""


class ServerRenderer:
    """Asks the servers of a pool, with two short calls for each dialogue."""

    template: str | None = None
    may_reason = True

    def __init__(self, pool: ServerPool, model: str, settings: Mapping[str, Any]) -> None:
        """Set up the calls; `settings` is what the chat template is told beside the messages."""
        self._pool, self._model, self.settings = pool, model, dict(settings)

    async def render(self, messages: Sequence[ChatMessage]) -> str:
        """Put the server's tokens of a dialogue back into text."""
        ids = await self.dialogue_tokens(messages, self.settings)
        return str((await self._post("/detokenize", {"tokens": ids}))["prompt"])

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Tokenise a text; `special` adds the tokens that open every text, which the template writes itself."""
        return list((await self._post("/tokenize", {"prompt": text, "add_special_tokens": special}))["tokens"])

    async def dialogue_tokens(self, messages: Sequence[ChatMessage], settings: Mapping[str, Any]) -> list[int]:
        """Return the tokens that the server's chat endpoint would read if its template is told `settings`."""
        fields = {"chat_template_kwargs": settings} if settings else {}
        return list((await self._post("/tokenize", {"messages": messages, **fields}))["tokens"])

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async def send(server: Server) -> dict[str, Any]:
            timeout_s = min(TIMING.probe_silence_s, self._pool.timeout_s)
            assert server.endpoint is not None  # noqa: S101 - a provider shows no template
            address, whole = f"{server.endpoint.root}{path}", {"model": self._model, **body}
            return await reply_object(server.http.post(address, json=whole, timeout=timeout_s))

        return await self._pool.call(send, weight=0)


Renderer = ServerRenderer | LocalTemplate


async def build_renderer(server: ServerRenderer, capabilities: Capabilities) -> Renderer | None:
    """Build the fastest renderer that gives the server's own tokens; None if the server cannot be compared with."""
    if not capabilities.renders:
        return None
    local = await asyncio.to_thread(load_template, capabilities.source or capabilities.model, server.settings)
    if local is None:
        return server

    async def agree(messages: Sequence[ChatMessage]) -> bool:
        try:
            ours = await local.tokens(await local.render(messages))
        except InvalidRequestError:
            return False
        return ours == await server.dialogue_tokens(messages, server.settings)

    plain = await asyncio.gather(*(renderer.tokens(_CHECKED_TEXT, special=True) for renderer in (local, server)))
    verdicts = await asyncio.gather(*(agree(capabilities.rules.fit(messages)) for messages in _CHECKED))
    return local if plain[0] == plain[1] and all(verdicts) else server
