"""Calls to one server, as the probe makes them: what it answers, what it refuses, and whether it is still there.

A refusal is an answer, and what the server said is kept. A reply of the model is waited for longer than the rest, since
a server may load it first. This module speaks plain HTTP and knows where OpenAI's and vLLM's addresses lie.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from medexam.errors import CallError, EndpointSilentError, EndpointUnreachableError, TransportError
from medexam.inputs import UnreadableError, parse_json
from medexam.serve.discovery.requests import rename_limit
from medexam.serve.network.connections import certificate_fault, open_client, redirect_fault
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import reply_object
from medexam.serve.network.retry import CURABLE, ask_again
from medexam.serve.timing import TIMING

_log = logging.getLogger(__name__)
CHAT = "/chat/completions"
"""Where dialogues are answered."""
LOADING = (502, 503, 504)
"""What a gateway answers while the server behind it is not there."""
_REFUSALS = (500, 501)
"""What some servers answer to fields and messages that they do not take; asking again would not help."""
_LOADS = re.compile(r"\bload", re.IGNORECASE)
"""What servers say that answer HTTP 503 until their model is there."""
_MESSAGE_CHARS = 600
"""Characters of a refusal that are kept."""
_OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp"}
"""What servers of these kinds call the owner of their models."""


@dataclass
class ServerCalls:
    """An open connection to one server."""

    client: httpx.AsyncClient
    endpoint: Endpoint
    timeout_s: float
    wait_s: float = 0.0
    """Seconds that a reply of the model may take, if they are more: it may load first, or serve others."""
    model: str = ""
    """What requests ask for."""
    limit: str | None = None
    """What the server calls the most tokens of a reply to a dialogue; None: the usual name."""
    refusals: dict[str, str] = field(default_factory=dict)
    """What was refused -> what the server said."""
    answered: bool = False
    notice: asyncio.TimerHandle | None = None
    """Says that the first reply of the model takes long, unless it comes."""
    lost: str = ""
    """What was asked when the connection was lost for good; empty if it was not."""

    async def version(self, card: Mapping[str, Any]) -> str | None:
        """Ask for the server's kind and version, such as `vllm 0.32.0`; None if it says neither."""
        owned_by = card.get("owned_by")
        owner = _OWNERS.get(str(owned_by))
        version = _object(await self._get(f"{self.endpoint.root}/version")).get("version")
        if version:
            return f"{owner or ('vllm' if owned_by is None else 'version')} {version}"
        ollama = None if owner else _object(await self._get(f"{self.endpoint.root}/api/version")).get("version")
        return f"ollama {ollama}" if ollama else owner

    async def models(self, name: str | None) -> list[dict[str, Any]]:
        """Ask for the entries of `/models`; none if it lists nothing that can be read, and the model has a `name`."""
        address, loop = f"{self.endpoint.base}/models", asyncio.get_running_loop()
        end = loop.time() + self.wait_s
        reply = await self.client.get(address)
        while reply.status_code in LOADING and _LOADS.search(reply.text) and loop.time() < end:
            await asyncio.sleep(TIMING.poll_s)
            reply = await self.client.get(address)
        self.answered = True
        if reply.status_code in (401, 403):
            raise EndpointUnreachableError(
                f"{address} refuses the key (HTTP {reply.status_code}); "
                "name the environment variable that holds it in model.api_key_env, or the file in model.api_key_file"
            )
        if reply.status_code in LOADING:
            raise EndpointSilentError(f"{address} answers HTTP {reply.status_code}; wait until the server is healthy")
        if (redirect := redirect_fault(reply)) is not None:
            raise EndpointUnreachableError(redirect)
        cards = _object(reply).get("data")
        if isinstance(cards, list) and all(isinstance(card, dict) and card.get("id") for card in cards):
            return [{**card, "id": str(card["id"])} for card in cards]
        if name is None:
            raise self.no_server(f"HTTP {reply.status_code}", ", or name its model in model.name (doctor: --model)")
        return []

    def no_server(self, answer: str, another_way: str = "") -> EndpointUnreachableError:
        """Build the error for something that is no such server, with another way out than the usual ones."""
        return EndpointUnreachableError(
            f"something answers at {self.endpoint.base}/models ({answer}), but not as an OpenAI-compatible server; "
            f"correct the endpoint, or start a server with `medexam serve`{another_way}"
        )

    def choose_card(self, cards: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
        """Choose the entry with this name, or the only one if it is None; raises `EndpointUnreachableError`.

        A server that lists no models is taken to serve the one that is named.
        """
        names = ", ".join(card["id"] for card in cards)
        if name is None and len(cards) != 1:
            raise EndpointUnreachableError(
                f"{self.endpoint.base} serves {len(cards)} models ({names or 'none'}); name one in model.name"
            )
        if name is not None and not cards:
            return {"id": name}
        for card in cards:
            if name in (None, card["id"]):
                return card
        raise EndpointUnreachableError(
            f"{self.endpoint.base} serves {names}, not {name}; "
            "correct model.name or model.endpoints, or leave model.name out to take the only one"
        )

    async def post(self, address: str, body: Mapping[str, Any], feature: str = "") -> dict[str, Any]:
        """Post a body and return the reply's object, empty if the server refuses; repeat a call that meets a passing
        fault.

        `feature` is asked for; if it is refused, it stands in `refusals`.
        """
        writes = address.endswith("/completions")
        silence_s = max(self.timeout_s, self.wait_s) if writes else self.timeout_s

        async def attempt() -> dict[str, Any]:
            try:
                timeout = httpx.Timeout(self.timeout_s, read=silence_s)
                call = self.client.post(address, json={"model": self.model, **body}, timeout=timeout)
                return await reply_object(call, address)
            except CallError as fault:
                if isinstance(fault, CURABLE) and fault.status not in _REFUSALS:
                    raise
                if feature:
                    message = " ".join(fault.message.split()).removeprefix(f"HTTP {fault.status}")[:_MESSAGE_CHARS]
                    self.refusals[feature] = f"HTTP {fault.status}{': ' if message else ''}{message}"
                return {}

        try:
            reply = await ask_again(attempt, timeout_s=silence_s, patience_s=silence_s)
        except TransportError:
            self.lost = feature or address.removeprefix(self.endpoint.root)
            raise
        if writes and reply and self.notice is not None:
            self.notice.cancel()
        return reply

    async def chat(self, body: Mapping[str, Any], feature: str = "") -> dict[str, Any]:
        """Post as `post` does, to where dialogues are answered."""
        return await self.post(f"{self.endpoint.base}{CHAT}", rename_limit(body, self.limit), feature)

    async def complete(self, prompt: str | list[list[int]], feature: str = "", **body: Any) -> dict[str, Any]:
        """Ask for a completion and return its choice, empty if there is none."""
        fields = {"prompt": prompt, "temperature": 0, **body}
        reply = await self.insist(f"{self.endpoint.base}/completions", fields, "choices", feature)
        return next(iter(reply.get("choices") or ()), {})

    async def insist(self, address: str, body: Mapping[str, Any], part: str, feature: str = "") -> dict[str, Any]:
        """Post as `post` does; if the reply lacks its main part without being a refusal, ask once more."""
        reply = await self.post(address, body, feature)
        return reply if not reply or reply.get(part) else await self.post(address, body, feature)

    async def ids(self, body: Mapping[str, Any]) -> list[int]:
        """Tokenise a prompt or messages by `/tokenize`; empty if it refuses."""
        return list((await self.post(f"{self.endpoint.root}/tokenize", body)).get("tokens") or [])

    async def text(self, ids: list[int]) -> str:
        """Turn tokens to text by `/detokenize`; empty if it refuses."""
        return str((await self.post(f"{self.endpoint.root}/detokenize", {"tokens": ids})).get("prompt", ""))

    async def _get(self, address: str) -> httpx.Response:
        try:
            return await self.client.get(address)
        except httpx.TimeoutException:
            raise
        except httpx.TransportError:
            # A server that has just answered HTTP 500 may close the connection behind it.
            return await self.client.get(address)


def tell_of_wait(place: str, wait_s: float) -> None:
    """Say that a first reply is waited for."""
    _log.warning(
        "medexam: warning: %s has not replied yet: it may load its model; waiting up to %.0f s (model.wait_s)",
        place,
        wait_s,
    )


@asynccontextmanager
async def open_calls(endpoint: Endpoint, timeout_s: float, wait_s: float = 0.0) -> AsyncIterator[ServerCalls]:
    """Open a connection whose first reply may take `wait_s`; its faults become `EndpointUnreachableError`, or
    `EndpointSilentError` if they may pass.
    """
    async with open_client(endpoint, timeout_s) as client:
        calls = ServerCalls(client, endpoint, timeout_s, wait_s)
        if wait_s > timeout_s:
            calls.notice = asyncio.get_running_loop().call_later(TIMING.notice_s, tell_of_wait, endpoint.base, wait_s)
        try:
            yield calls
        except (httpx.TransportError, *CURABLE) as error:
            if (fault := certificate_fault(error)) is not None:
                ca_note = f"known to {endpoint.ca_bundle}" if endpoint.ca_bundle else "known to this machine"
                raise EndpointUnreachableError(
                    f"the certificate of {endpoint.base} is not {ca_note} ({fault}); name a file with the certificate "
                    "of its CA in model.ca_bundle"
                ) from error
            reason = str(error) or type(error).__name__
            if not calls.answered:
                raise EndpointSilentError(
                    f"no server answers at {endpoint.base} ({reason}); start one with `medexam serve MODEL`, "
                    "wait until it is healthy, or correct the endpoint"
                ) from error
            occasion = f" when it was asked for {calls.lost}" if calls.lost else ""
            raise EndpointSilentError(
                f"the server at {endpoint.base} answered, then stopped answering{occasion} ({reason}); look into its "
                "log, and start it again"
            ) from error
        finally:
            if calls.notice is not None:
                calls.notice.cancel()


def _object(reply: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of a successful reply, else an empty one."""
    with suppress(UnreadableError):
        body = parse_json(reply.content) if reply.status_code == httpx.codes.OK else {}
        return body if isinstance(body, dict) else {}
    return {}
