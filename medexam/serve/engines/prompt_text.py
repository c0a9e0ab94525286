"""A dialogue as the text that the model reads, and that text as tokens.

One request takes many prompts only as rendered text, and only to rendered text can the opening words of a reply be
appended exactly. The model's own tokenizer renders fastest, if it is on this machine; else the server is asked. Both
must give the server's tokens, which is checked before either is used. This module knows no requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import httpx

from medexam.errors import InvalidRequestError
from medexam.model_calls import ChatMessage
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.local_model.template import LocalTemplate, load_template
from medexam.serve.logprobs.vllm import Tokenizer
from medexam.serve.network.connections import open_busy_client
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object
from medexam.serve.network.retry import CURABLE, ask_again
from medexam.serve.timing import TIMING

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


class Renderer(Tokenizer, Protocol):
    """Renders and tokenises as one server does."""

    template: str | None
    """SHA-256 of the chat template; None if it cannot be seen."""
    may_reason: bool
    """Whether the model may write thoughts before its reply, as far as the template tells."""

    async def render(self, messages: Sequence[ChatMessage]) -> str:
        """Render the dialogue's text, open for the assistant's reply; raises `CallError`s."""
        ...


class ServerRenderer:
    """Asks a server, with two short calls for each dialogue; if it fails, the next server of the same model."""

    template: str | None = None
    may_reason = True

    def __init__(
        self,
        endpoints: Callable[[], Awaitable[Sequence[Endpoint]]],
        look_again: Callable[[], Awaitable[None]],
        model: str,
        *,
        timeout_s: float | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Set up the calls; `endpoints` returns the servers that can be asked now, `look_again` finds out after a fault
        which these are, and `settings` is what the chat template is told.
        """
        self._endpoints = endpoints
        self._look_again = look_again
        self._index = 0
        self._model = model
        self._timeout_s = timeout_s or TIMING.probe_silence_s
        self.settings = dict(settings or {})
        """What the chat template is told beside the messages."""
        self._client: httpx.AsyncClient | None = None

    async def render(self, messages: Sequence[ChatMessage]) -> str:
        """Put the server's tokens of a dialogue back into text."""
        ids = await self.dialogue_tokens(messages)
        return str((await self._post("/detokenize", {"tokens": ids}))["prompt"])

    async def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Tokenise a text as the server does."""
        return list((await self._post("/tokenize", {"prompt": text, "add_special_tokens": special}))["tokens"])

    async def dialogue_tokens(
        self, messages: Sequence[ChatMessage], settings: Mapping[str, Any] | None = None
    ) -> list[int]:
        """Return the tokens that the server's chat endpoint would read; `settings` None: as the template is always
        told.
        """
        settings = self.settings if settings is None else settings
        fields = {"chat_template_kwargs": dict(settings)} if settings else {}
        return list((await self._post("/tokenize", {"messages": list(messages), **fields}))["tokens"])

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async def attempt() -> dict[str, Any]:
            endpoints = await self._endpoints()
            index = self._index % len(endpoints)
            endpoint = endpoints[index]
            # The servers of a spec have one CA bundle; their keys may differ, and go with each request.
            self._client = self._client or open_busy_client(endpoint, self._timeout_s)
            sending = self._client.post(
                f"{endpoint.root}{path}", json={"model": self._model, **body}, headers=endpoint.headers
            )
            try:
                return await reply_object(sending, path)
            except CURABLE:
                # Of many calls that fail together only the first moves on, or they would skip servers that answer.
                if self._index == index:
                    self._index = (index + 1) % len(endpoints)
                await self._look_again()
                raise

        return await ask_again(attempt, timeout_s=self._timeout_s)


async def build_renderer(server: ServerRenderer, capabilities: Capabilities) -> Renderer | None:
    """Build the fastest renderer that gives the server's own tokens; None if the server cannot be compared with."""
    if not capabilities.renders:
        return None
    local = await asyncio.to_thread(load_template, capabilities.source or capabilities.model, server.settings)
    if local is not None and await _agree(local, server, capabilities):
        await server.aclose()
        return local
    return server


async def _agree(local: LocalTemplate, server: ServerRenderer, capabilities: Capabilities) -> bool:
    async def same(messages: Sequence[ChatMessage]) -> bool:
        try:
            return await local.tokens(await local.render(messages)) == await server.dialogue_tokens(messages)
        except InvalidRequestError:
            return False

    plain = await asyncio.gather(*(renderer.tokens(_CHECKED_TEXT, special=True) for renderer in (local, server)))
    return plain[0] == plain[1] and all(
        await asyncio.gather(*(same(capabilities.rules.fit(messages)) for messages in _CHECKED))
    )
