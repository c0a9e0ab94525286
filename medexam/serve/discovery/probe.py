"""What a server really honours, found by asking.

Servers ignore fields that they do not know and still answer 200, so a constraint is believed only when an impossible
choice comes back as asked. Everything is asked at the start of a run and by `medexam doctor`, in well under a second
on a server that is not busy. This module knows what is asked; `server_calls` asks it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
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
_PROMPTS = ["Two and two make", "The capital of France is"]
_SEED = 11
"""Under this seed two replies are asked for."""
_LETTER = "Q"
"""No model continues the prompts with this unless it is made to."""
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
        calls.model = str(card["id"])
        version, letter = await _together(calls.version(card), self._letter())
        vllm = is_vllm(version)
        calls.limit = limit = LIMITS[0] if vllm else await find_limit(calls.chat)
        system, repeats, empty, renders, (allowed, list_prompts) = await _together(
            self._keeps_system(),
            self._accepts([_user(_SYSTEM), _user("Hello")]),
            self._accepts([{"role": "system", "content": ""}, _user(_SYSTEM)]),
            self._renders(),
            self._obeys_allowed_tokens(letter),
        )
        echo, names_tokens, greeting = await _together(
            self._echo_alternatives(),
            self._names_tokens(letter),
            calls.chat({"messages": [_user("Say hello.")], "temperature": 0, "max_tokens": _GREETING_TOKENS}),
        )
        dialogue, behaviour = await _together(self._dialogue(), self._behaviour())
        chat = bool(system or repeats or empty or await self._accepts([_user(_SYSTEM)]))
        if not cards and not chat and behaviour is None:
            raise calls.no_server("no models")
        forms = await find_native_forms(calls.chat) if tools else None
        draw = self._draws_plain if behaviour is not None else self._draws_in_chat
        return Capabilities(
            endpoint=calls.endpoint.base,
            server_version=version,
            models=tuple(str(entry["id"]) for entry in cards),
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
            list_prompts=list_prompts,
            several_replies=await self._offers_several(chat),
            neutral=await find_neutral(draw, vllm=vllm),
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
        return hash_dialogue(await self._insist(f"{self.calls.endpoint.root}/tokenize", body, "tokens"))

    async def _behaviour(self) -> Behaviour | None:
        """Ask twice, since what a server itself does not repeat is no difference."""
        address = f"{self.calls.endpoint.base}/completions"
        return read_behaviour(await _together(*(self._insist(address, TEXT_FIELDS, "choices") for _ in "12")))

    async def _insist(self, address: str, body: Mapping[str, Any], part: str) -> dict[str, Any]:
        """Ask for the reply's object; if it lacks its main part without being a refusal, ask once more."""
        reply = await self.calls.post(address, body)
        return reply if not reply or reply.get(part) else await self.calls.post(address, body)

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

    async def _obeys_allowed_tokens(self, letter: int | None) -> tuple[bool, bool]:
        """Return whether an impossible token was chosen, and whether both prompts of the list were answered."""
        constraint = {} if letter is None else {"allowed_token_ids": [letter]}
        choices = await self.calls.complete(_PROMPTS, "several prompts", max_tokens=1, **constraint)
        takes_lists = len(choices) == len(_PROMPTS)
        if constraint and not choices:
            choices = await self.calls.complete(_PROMPTS[0], "allowed_token_ids", max_tokens=1, **constraint)
        texts = [str(choice.get("text", "")).strip() for choice in choices]
        return letter is not None and bool(texts) and set(texts) == {_LETTER}, takes_lists

    async def _offers_several(self, chat: bool) -> bool:
        """Return whether `n: 2` brings two replies, the second as under the next seed; in a chat too, if it chats.

        What is drawn at a temperature may differ by rounding, so the seeds are compared at the likeliest half.
        """
        sampling: dict[str, Any] = {"temperature": 1.0, "top_p": 0.5, "max_tokens": 4}
        choices = await self.calls.complete(_PROMPTS[0], "n", **sampling, seed=_SEED, n=2)
        next_choices = await self.calls.complete(_PROMPTS[0], **sampling, seed=_SEED + 1)
        if len(choices) != 2 or not next_choices or choices[1].get("text") != next_choices[0].get("text"):
            return False
        if not chat:
            return True
        fields = {"messages": [_user("Hello")], **sampling, "seed": _SEED, "n": 2}
        reply = await self.calls.chat(fields, feature="n")
        return len(reply.get("choices") or ()) == 2

    async def _draws_plain(self, fields: dict[str, Any]) -> bool:
        """Return whether a plain text may be asked to be continued with these fields."""
        return bool(await self.calls.complete(_PROMPTS[0], **fields))

    async def _draws_in_chat(self, fields: dict[str, Any]) -> bool:
        """Return whether a dialogue may be asked with these fields."""
        return bool((await self.calls.chat({"messages": [_user("Hello")], **fields})).get("choices"))

    async def _echo_alternatives(self) -> int | None:
        """Find the alternatives to ask for so that a prompt is echoed with all probabilities; None: it never is."""
        ids = tuple(await self.calls.ids({"prompt": _PROMPTS[0], "add_special_tokens": False}))
        for alternatives in (0, 1) if ids else ():
            choices = await self.calls.complete([list(ids)], "echo", **echo_fields(alternatives))
            try:
                if choices and read_echo(choices[0], ids):
                    return alternatives
            except LogprobsUnavailableError:
                continue
        return None

    async def _names_tokens(self, letter: int | None) -> bool:
        """Return whether a request may name tokens, and is told their log-probabilities."""
        if letter is None:
            return False
        named = [letter, *range(max(letter - _NAMED, 0), letter)]
        fields = {"logprobs": 1, "logprob_token_ids": named, "return_tokens_as_token_ids": True}
        choices = await self.calls.complete(_PROMPTS[0], "logprob_token_ids", max_tokens=1, **fields)
        try:
            return bool(choices) and bool(read_label(choices[0], None, named))
        except LogprobsUnavailableError:
            return False

    async def _obeys_structured_outputs(self, renders: bool) -> bool:
        """Ask on the endpoint that choices would use: completions if prompts can be rendered, else chat."""
        if renders:
            choices = await self.calls.complete(
                _PROMPTS[0], _STRUCTURED, max_tokens=16, structured_outputs={"choice": [_WORD]}
            )
            return bool(choices) and choices[0].get("text") == _WORD
        fields = {"messages": [_user("Hello")], "temperature": 0, "max_tokens": 16}
        constraint = {"structured_outputs": {"regex": f"{_WORD[0]}({_WORD[1:]})"}}
        reply = await self.calls.chat({**fields, **constraint}, _STRUCTURED)
        choice = (reply.get("choices") or [{}])[0]
        return (choice.get("message") or {}).get("content") == _WORD


async def _together(*calls: Any) -> Any:
    """Await calls that run beside each other; if one fails, the others end before its fault is raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        # The others are waited for, since a connection whose opening is cancelled stays open until it is garbage.
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


def _user(content: str) -> ChatMessage:
    return {"role": "user", "content": content}
