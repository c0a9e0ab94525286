"""What a server really honours, found by asking.

Servers ignore fields that they do not know and still answer 200, so a constraint is believed only when an impossible
choice comes back as asked. Everything is asked at the start of a run and by `medexam doctor`, in well under a second
on a server that is not busy. This module knows what is asked; `server_calls` asks it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from medexam.errors import EndpointSilentError, EndpointUnreachableError, LogprobsUnavailableError
from medexam.model_calls import ChatMessage
from medexam.model_identity import Behaviour, ModelIdentity
from medexam.serve.discovery.behaviour import DIALOGUE, TEXT_FIELDS, hash_dialogue, read_behaviour
from medexam.serve.discovery.capabilities import Capabilities, is_vllm
from medexam.serve.discovery.requests import (
    LIMITS,
    find_limit,
    find_native_forms,
    find_neutral,
    keeps_system,
    reads_pictures,
    shows_thinking,
)
from medexam.serve.discovery.server_calls import ServerCalls, open_calls
from medexam.serve.logprobs.vllm import echo_fields, read_echo, read_label
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import MISFORMED
from medexam.serve.timing import TIMING

_SYSTEM = "Be brief."
_PROMPT = "Two and two make"
_LETTER = "Q"
"""No model continues the prompt with this unless it is made to."""
_WORD = "zyzzyva"
_NAMED = 9
"""Tokens that are named beside the letter: as many as an exam has options, and vLLM allows twenty."""
_GREETING_TOKENS = 32
"""Enough for a greeting, or for a thought to begin."""
_STRUCTURED = "structured_outputs"


async def probe_endpoint(
    endpoint: Endpoint,
    name: str | None,
    *,
    pictures: bool = False,
    tools: bool = False,
    timeout_s: float | None = None,
    wait_s: float = 0.0,
) -> Capabilities:
    """Ask one server everything; raises `EndpointUnreachableError` if it cannot be used at all.

    `name` None takes the only model that it serves; `pictures` shows it one as well, and `tools` offers it one.
    `timeout_s`: silence after which it is given up; None: as long as probes wait. `wait_s`: what its first reply may
    take. `EndpointSilentError` is one that may answer later.
    """
    deadline_s = TIMING.probe_deadline_s + wait_s
    try:
        async with asyncio.timeout(deadline_s), _probing(endpoint, timeout_s, wait_s) as probe:
            return await probe.capabilities(name, pictures=pictures, tools=tools)
    except TimeoutError:
        raise EndpointSilentError(
            f"the server at {endpoint.base} did not answer all requests within {deadline_s:.0f} s; "
            "look into its log, and try again"
        ) from None


async def ask_name(endpoint: Endpoint, *, timeout_s: float, wait_s: float) -> str:
    """Ask for the name of the only model that a server serves; raises as `probe_endpoint` does."""
    async with _probing(endpoint, timeout_s, wait_s) as probe:
        return str(probe.calls.choose_card(await probe.calls.models(None), None)["id"])


async def check_same(endpoint: Endpoint, capabilities: Capabilities, *, timeout_s: float | None = None) -> None:
    """Look again which model answers at an address; raises `EndpointUnreachableError` if two looks show another.

    Raises `EndpointSilentError` if that cannot be told now.
    """
    differences: list[str] = []
    for _ in range(2):
        async with _probing(endpoint, timeout_s, misformed=EndpointSilentError) as probe:
            identity = await probe.identity(capabilities)
        if capabilities.identity.shows_more_than(identity):
            raise EndpointSilentError(f"{endpoint.base} does not show which model it serves; wait until it is healthy")
        if not (differences := capabilities.identity.differences(identity)):
            return
    raise EndpointUnreachableError(f"its model has changed: {'; '.join(differences)}")


@asynccontextmanager
async def _probing(
    endpoint: Endpoint,
    timeout_s: float | None,
    wait_s: float = 0.0,
    misformed: type[EndpointUnreachableError] = EndpointUnreachableError,
) -> AsyncIterator["_Probe"]:
    """Open what asks a server; raises `misformed` where a reply has not the form of the protocol."""
    async with open_calls(endpoint, timeout_s or TIMING.probe_silence_s, wait_s) as calls:
        try:
            yield _Probe(calls)
        except MISFORMED as error:
            raise misformed(
                f"{endpoint.base} sent a reply that does not follow OpenAI's protocol ({error}); look into the "
                "server's log, or give another address"
            ) from error


@dataclass
class _Probe:
    calls: ServerCalls

    async def capabilities(self, name: str | None, *, pictures: bool, tools: bool) -> Capabilities:
        calls = self.calls
        cards = await calls.models(name)
        card = calls.choose_card(cards, name)
        calls.model = card["id"]
        version, letter = await _together(calls.version(card), self._letter())
        vllm = is_vllm(version)
        calls.limit = limit = LIMITS[0] if vllm else await find_limit(calls.chat)
        system, repeats, empty, renders, allowed, echo, names_tokens, greeting, dialogue, behaviour = await _together(
            self._keeps_system(),
            self._accepts([_user(_SYSTEM), _user("Hello")]),
            self._accepts([{"role": "system", "content": ""}, _user(_SYSTEM)]),
            self._renders(),
            self._obeys_allowed_tokens(letter),
            self._echoes(vllm),
            self._names_tokens(letter),
            calls.chat({"messages": [_user("Say hello.")], "temperature": 0, "max_tokens": _GREETING_TOKENS}),
            self._dialogue(),
            self._behaviour(),
        )
        chat = bool(system or repeats or empty or await self._accepts([_user(_SYSTEM)]))
        if not cards and not chat and behaviour is None:
            raise calls.no_server("no models")
        forms = await find_native_forms(calls.chat) if tools else None
        return Capabilities(
            endpoint=calls.endpoint.base,
            server_version=version,
            models=tuple(entry["id"] for entry in cards),
            model=calls.model,
            source=card.get("root") or None,
            max_context=card.get("max_model_len"),
            system_turn=system,
            repeated_turns=repeats,
            empty_system_turn=empty,
            chat=chat,
            renders=renders,
            allowed_token_ids=allowed,
            structured_outputs=await self._obeys_structured_outputs(renders),
            neutral=await find_neutral(partial(self._draws, plain=behaviour is not None), vllm=vllm),
            limit=limit,
            tokenizes=letter is not None,
            echo_logprobs=echo,
            names_tokens=names_tokens,
            thinks=shows_thinking(greeting) if chat else None,
            dialogue=dialogue,
            behaviour=behaviour,
            sees=await reads_pictures(partial(calls.chat, feature="pictures")) if pictures else None,
            takes_tools=forms and forms.takes_tools,
            takes_schema=forms and forms.takes_schema,
            refusals=dict(calls.refusals),
        )

    async def identity(self, capabilities: Capabilities) -> ModelIdentity:
        """Ask which model answers now, and nothing more; `capabilities` is what was seen before."""
        try:
            cards = await self.calls.models(None if capabilities.models else capabilities.model)
        except EndpointUnreachableError as error:
            # A server that restarts may answer anything for a while, which does not make it another model.
            raise EndpointSilentError(str(error)) from error
        card = self.calls.choose_card(cards, capabilities.model)
        self.calls.model = capabilities.model
        dialogue, behaviour = await _together(self._dialogue(), self._behaviour())
        changes = {"source": card.get("root") or None, "dialogue": dialogue, "behaviour": behaviour}
        return capabilities.model_copy(update=changes).identity

    async def _dialogue(self) -> str | None:
        body = {"messages": DIALOGUE, "return_token_strs": True}
        return hash_dialogue(await self.calls.insist(f"{self.calls.endpoint.root}/tokenize", body, "tokens"))

    async def _behaviour(self) -> Behaviour | None:
        """Ask twice, since what a server itself does not repeat is no difference."""
        address = f"{self.calls.endpoint.base}/completions"
        return read_behaviour(await _together(*(self.calls.insist(address, TEXT_FIELDS, "choices") for _ in "12")))

    async def _letter(self) -> int | None:
        """Return the token of the letter that no prompt asks for; None if the server does not tokenise."""
        ids = await self.calls.ids({"prompt": _LETTER, "add_special_tokens": False})
        return ids[-1] if ids else None

    async def _accepts(self, messages: list[ChatMessage]) -> bool:
        ids = await self.calls.ids({"messages": messages})
        if ids:
            return _SYSTEM in await self.calls.text(ids)
        return "choices" in await self.calls.chat({"messages": messages, "max_tokens": 1})

    async def _keeps_system(self) -> bool:
        """Return whether a system message reaches the model: the tokens show it, or else their number."""
        turns: list[ChatMessage] = [{"role": "system", "content": _SYSTEM}, _user("Hello")]
        accepted = await self._accepts(turns)
        if not accepted or await self.calls.ids({"messages": turns}):
            return accepted
        return await keeps_system(self.calls.chat)

    async def _renders(self) -> bool:
        ids = await self.calls.ids(
            {"messages": [_user("Hello"), {"role": "assistant", "content": "Hi."}, _user("Bye?")]}
        )
        return bool(ids) and ids == await self.calls.ids(
            {"prompt": await self.calls.text(ids), "add_special_tokens": False}
        )

    async def _obeys_allowed_tokens(self, letter: int | None) -> bool:
        """Return whether an impossible token was chosen."""
        if letter is None:
            return False
        choice = await self.calls.complete(_PROMPT, "allowed_token_ids", max_tokens=1, allowed_token_ids=[letter])
        return str(choice.get("text", "")).strip() == _LETTER

    async def _draws(self, fields: dict[str, Any], *, plain: bool) -> bool:
        """Return whether a plain text may be continued, else a dialogue be asked, with these fields."""
        if plain:
            return bool(await self.calls.complete(_PROMPT, **fields))
        return bool((await self.calls.chat({"messages": [_user("Hello")], **fields})).get("choices"))

    async def _echoes(self, vllm: bool) -> int | None:
        """Return the alternatives to ask for so that a prompt is echoed with all probabilities; None: it never is.

        vLLM gives them with none; for others none means no probabilities at all.
        """
        ids, alternatives = tuple(await self.calls.ids({"prompt": _PROMPT, "add_special_tokens": False})), int(not vllm)
        choice = await self.calls.complete([[*ids]], "echo", **echo_fields(alternatives)) if ids else None
        try:
            return alternatives if choice and read_echo(choice, ids) else None
        except LogprobsUnavailableError:
            return None

    async def _names_tokens(self, letter: int | None) -> bool:
        """Return whether a request may name tokens, and is told their log-probabilities."""
        if letter is None:
            return False
        token_ids = [letter, *range(max(letter - _NAMED, 0), letter)]
        fields = {"logprobs": 1, "logprob_token_ids": token_ids, "return_tokens_as_token_ids": True}
        choice = await self.calls.complete(_PROMPT, "logprob_token_ids", max_tokens=1, **fields)
        try:
            return bool(choice) and bool(read_label(choice, None, token_ids))
        except LogprobsUnavailableError:
            return False

    async def _obeys_structured_outputs(self, renders: bool) -> bool:
        """Ask on the endpoint that choices would use: completions if prompts can be rendered, else chat."""
        if renders:
            constraint: dict[str, Any] = {"structured_outputs": {"choice": [_WORD]}}
            return (await self.calls.complete(_PROMPT, _STRUCTURED, max_tokens=16, **constraint)).get("text") == _WORD
        fields = {"messages": [_user("Hello")], "temperature": 0, "max_tokens": 16}
        constraint = {"structured_outputs": {"regex": f"{_WORD[0]}({_WORD[1:]})"}}
        reply = await self.calls.chat({**fields, **constraint}, _STRUCTURED)
        choice = (reply.get("choices") or [{}])[0]
        return (choice.get("message") or {}).get("content") == _WORD


async def _together(*calls: Any) -> Any:
    """Await calls that run beside each other; if one fails, the others end before its fault is raised.

    A connection whose opening is cancelled would stay open until it is garbage.
    """
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes


def _user(content: str) -> ChatMessage:
    return {"role": "user", "content": content}
