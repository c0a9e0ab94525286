"""What a server really honours, found by asking it.

Servers ignore fields that they do not know and still answer 200, so a constraint is believed only when an impossible
choice comes back as asked. Everything is asked at the start of a run and by `medexam doctor`, in well under a second
on a server that is not busy. A refusal is an answer, and what the server said is kept.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import httpx

from medexam.errors import (
    AuthError,
    BillingError,
    CallError,
    EndpointSilentError,
    EndpointUnreachableError,
    LogprobsUnavailableError,
)
from medexam.files import UnreadableError, parse_json
from medexam.model_calls import ChatMessage, Generation
from medexam.model_identity import Behaviour, ModelIdentity
from medexam.serve.choice_schema import (
    IMPOSSIBLE,
    OPENING,
    SCHEMA_TOKENS,
    ChoiceForm,
    choice_fields,
    find_choice_form,
    read_choice,
)
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.requests import (
    DIALOGUE,
    HOSTED_TOKENS,
    LIMITS,
    LOADING,
    NEUTRAL,
    TEXT_FIELDS,
    find_limit,
    find_native_forms,
    first_message,
    hash_dialogue,
    keeps_system,
    read_behaviour,
    reads_pictures,
    rename_limit,
    shows_thinking,
)
from medexam.serve.engines.litellm_calls import read_chat
from medexam.serve.logprobs import echo_fields, read_echo, read_label
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.http_calls import MISFORMED, redirect_fault, reply_object
from medexam.serve.network.retry import CURABLE, TIMING, ask_again
from medexam.serve.pool import Server
from medexam.serve.request_settings import THINKING_TOKENS

_SYSTEM = "Be brief."
_PROMPT = "Two and two make"
_LETTER = "Q"
"""No model continues the prompt with this unless it is made to."""
_NAMED = 9
"""Tokens that are named beside the letter: as many as an exam has options, and vLLM allows twenty."""
_GREETING_TOKENS = 32
_REFUSALS = (500, 501)
"""What some servers answer to fields and messages that they do not take; asking again would not help."""
_LOADS = re.compile(r"\bload", re.IGNORECASE)
_OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp"}


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
    async with _probing(endpoint, timeout_s, wait_s) as probe:
        return await probe.capabilities(name, pictures=pictures, tools=tools)


async def ask_name(endpoint: Endpoint, *, timeout_s: float, wait_s: float) -> str:
    """Ask for the name of the only model that a server serves; raises as `probe_endpoint` does."""
    async with _probing(endpoint, timeout_s, wait_s) as probe:
        return str(probe.choose_card(await probe.models(None), None)["id"])


async def look_again(endpoint: Endpoint, capabilities: Capabilities, *, timeout_s: float) -> ModelIdentity:
    """Ask which model answers at an address now, where `capabilities` were seen; raises as `probe_endpoint` does."""
    async with _probing(endpoint, timeout_s, misformed=EndpointSilentError) as probe:
        return await probe.look_again(capabilities)


@asynccontextmanager
async def _probing(
    endpoint: Endpoint,
    timeout_s: float | None,
    wait_s: float = 0.0,
    misformed: type[EndpointUnreachableError] = EndpointUnreachableError,
) -> AsyncIterator["_Probe"]:
    """Open what asks a server, whose first reply may take `wait_s`.

    Its faults become `EndpointUnreachableError`, or `EndpointSilentError` if they may pass; `misformed` is raised where
    a reply has not the form of the protocol.
    """
    timeout_s = timeout_s or TIMING.probe_silence_s
    server = Server.at(endpoint, "", timeout_s)
    async with server.http:
        probe = _Probe(server, endpoint, timeout_s, wait_s)
        if wait_s > timeout_s:
            probe.notice = asyncio.get_running_loop().call_later(
                TIMING.notice_s,
                logging.getLogger(__name__).warning,
                "medexam: warning: %s has not replied yet: it may load its model; waiting up to %.0f s (model.wait_s)",
                endpoint.base,
                wait_s,
            )
        try:
            yield probe
        except MISFORMED as error:
            raise misformed(
                f"{endpoint.base} sent a reply that does not follow OpenAI's protocol ({error}); look into the "
                "server's log, or give another address"
            ) from error
        except (httpx.TransportError, *CURABLE) as error:
            reason = str(error) or type(error).__name__
            if not probe.answered:
                raise EndpointSilentError(
                    f"no server answers at {endpoint.base} ({reason}); start one with `medexam serve MODEL`, "
                    "wait until it is healthy, or correct the endpoint"
                ) from error
            raise EndpointSilentError(
                f"the server at {endpoint.base} answered, then stopped answering ({reason}); look into its log, and "
                "start it again"
            ) from error
        finally:
            if probe.notice is not None:
                probe.notice.cancel()


class _Probe:
    """An open connection to one server, and what is asked over it."""

    def __init__(self, server: Server, endpoint: Endpoint, timeout_s: float, wait_s: float) -> None:
        """Ask nothing yet; a reply of the model may take `wait_s`: it may load first, or serve others."""
        self.server, self.endpoint = server, endpoint
        self.client: httpx.AsyncClient = server.http
        self.timeout_s, self.wait_s = timeout_s, wait_s
        self.limit: str | None = None
        """What the server calls the most tokens of a reply to a dialogue; None: the usual name."""
        self.refusals: dict[str, str] = {}
        self.answered = False
        self.notice: asyncio.TimerHandle | None = None
        """Says that the first reply of the model takes long, unless it comes."""

    async def capabilities(self, name: str | None, *, pictures: bool, tools: bool) -> Capabilities:
        """Ask everything."""
        cards = await self.models(name)
        card = self.choose_card(cards, name)
        self.server.model = card["id"]
        ids = self.ids({"prompt": _LETTER, "add_special_tokens": False})
        version, letter_ids = await _together(self.version(card), ids)
        # The token of a letter that no prompt asks for; None if the server does not tokenise.
        letter, vllm = letter_ids[-1] if letter_ids else None, (version or "").startswith("vllm")
        self.limit = limit = LIMITS[0] if vllm else await find_limit(self.chat)
        system, repeats, empty, renders, allowed, echo, names_tokens, greeting, dialogue, shown = await _together(
            self._keeps_system(),
            self._accepts([_user(_SYSTEM), _user("Hello")]),
            self._accepts([{"role": "system", "content": ""}, _user(_SYSTEM)]),
            self._renders(),
            self._obeys_allowed_tokens(letter),
            self._echoes(vllm),
            self._names_tokens(letter),
            self.chat({"messages": [_user("Say hello.")], "temperature": 0, "max_tokens": _GREETING_TOKENS}),
            *self._fixed(),
        )
        behaviour, completes = shown
        chat = bool(system or repeats or empty or await self._accepts([_user(_SYSTEM)], "dialogues"))
        if not cards and not chat and behaviour is None:
            raise self._no_server("no models")
        forms = await find_native_forms(self.chat) if tools else None

        thinks = shows_thinking(greeting) if chat else None
        room = card["max_model_len"] // 2 if card.get("max_model_len") else THINKING_TOKENS
        if thinks and not vllm:
            room, hello = min(room, THINKING_TOKENS), {"messages": [_user("Say hello.")]}
            while room and not await self.chat({**hello, "max_tokens": HOSTED_TOKENS + room}):
                room //= 2
        form, prefills = None, None
        if chat:
            form, prefills = await self._find_choice_form(room if thinks else 0)

        return Capabilities(
            endpoint=self.endpoint.base,
            server_version=version,
            models=tuple(entry["id"] for entry in cards),
            model=self.server.model,
            source=card.get("root") or None,
            max_context=card.get("max_model_len"),
            system_turn=system,
            repeated_turns=repeats,
            empty_system_turn=empty,
            chat=chat,
            completes=completes,
            takes_lists=vllm and await self._takes_lists(),
            choice_form=form,
            prefills=prefills,
            room=room,
            renders=renders,
            allowed_token_ids=allowed,
            neutral=await self._find_neutral(vllm, completes),
            limit=limit,
            tokenizes=letter is not None,
            echo_logprobs=echo,
            names_tokens=names_tokens,
            thinks=thinks,
            dialogue=dialogue,
            behaviour=behaviour,
            sees=await reads_pictures(lambda body: self.chat(body, "pictures")) if pictures else None,
            takes_tools=forms and forms[0],
            takes_schema=forms and forms[1],
            refusals=dict(self.refusals),
        )

    async def look_again(self, capabilities: Capabilities) -> ModelIdentity:
        """Ask which model answers now, and nothing more; `capabilities` is what was seen before."""
        try:
            cards = await self.models(None if capabilities.models else capabilities.model)
        except EndpointUnreachableError as error:
            # A server that restarts may answer anything for a while, which does not make it another model.
            raise EndpointSilentError(str(error)) from error
        card = self.choose_card(cards, capabilities.model)
        self.server.model = capabilities.model
        dialogue, (behaviour, _) = await _together(*self._fixed())
        changes = {"source": card.get("root") or None, "dialogue": dialogue, "behaviour": behaviour}
        return capabilities.model_copy(update=changes).identity

    async def version(self, card: Mapping[str, Any]) -> str | None:
        """Ask for the server's kind and version, such as `vllm 0.32.0`; None if it says neither."""
        owned_by = card.get("owned_by")
        owner = _OWNERS.get(str(owned_by))
        version = _object(await self.client.get(f"{self.endpoint.root}/version")).get("version")
        if version:
            return f"{owner or ('vllm' if owned_by is None else 'version')} {version}"
        ollama = None if owner else _object(await self.client.get(f"{self.endpoint.root}/api/version")).get("version")
        return f"ollama {ollama}" if ollama else owner

    async def models(self, name: str | None) -> list[dict[str, Any]]:
        """Ask for the entries of `/models`; none if it lists nothing that can be read, and the model has a `name`."""
        address, loop = f"{self.endpoint.base}/models", asyncio.get_running_loop()
        end = loop.time() + self.wait_s
        while True:
            reply = await self.client.get(address)
            if reply.status_code not in LOADING or not _LOADS.search(reply.text) or loop.time() > end:
                break
            await asyncio.sleep(TIMING.poll_s)
        self.answered = True
        if reply.status_code in (401, 403):
            raise EndpointUnreachableError(
                f"{address} refuses the key (HTTP {reply.status_code}); "
                "name the environment variable that holds it in model.api_key_env"
            )
        if reply.status_code in LOADING:
            raise EndpointSilentError(f"{address} answers HTTP {reply.status_code}; wait until the server is healthy")
        if (redirect := redirect_fault(reply)) is not None:
            raise EndpointUnreachableError(redirect)
        cards = _object(reply).get("data")
        if isinstance(cards, list) and all(isinstance(card, dict) and card.get("id") for card in cards):
            # A proxy lists a model once for each server behind it.
            return [*{str(card["id"]): {**card, "id": str(card["id"])} for card in cards}.values()]
        if name is None:
            raise self._no_server(f"HTTP {reply.status_code}", ", or name its model in model.name (doctor: --model)")
        return []

    def choose_card(self, cards: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
        """Choose the entry with this name, or the only one if it is None; raises `EndpointUnreachableError`.

        A server that lists no models is taken to serve the one that is named.
        """
        match = [card for card in cards or [{"id": name}] if name in (None, card["id"])]
        if len(match) == 1 and match[0]["id"] is not None:
            return match[0]
        raise EndpointUnreachableError(
            f"{self.endpoint.base} serves {', '.join(card['id'] for card in cards) or 'no models'}"
            f"{f', not {name}' if name else ''}: name one that it serves in model.name, or correct model.endpoints"
        )

    def _no_server(self, answer: str, another_way: str = "") -> EndpointUnreachableError:
        return EndpointUnreachableError(
            f"something answers at {self.endpoint.base}/models ({answer}), but not as an OpenAI-compatible server; "
            f"correct the endpoint, or start a server with `medexam serve`{another_way}"
        )

    async def post(self, address: str, body: Mapping[str, Any], part: str = "", feature: str = "") -> dict[str, Any]:
        """Post a body and return the reply's object, empty if the server refuses; repeat a call that meets a passing
        fault, and once more one whose reply lacks its main `part`.

        `feature` is asked for; if it is refused, it stands in `refusals`.
        """

        async def call(timeout_s: float) -> dict[str, Any]:
            timeout = httpx.Timeout(self.timeout_s, read=timeout_s)
            whole = {"model": self.server.model, **body}
            return await reply_object(self.client.post(address, json=whole, timeout=timeout))

        return await self._insist(call, part, feature, writes=address.endswith("/completions"))

    async def chat(self, body: Mapping[str, Any], feature: str = "") -> dict[str, Any]:
        """Ask for the reply to a dialogue as a run does, and return as `post` does."""
        fields = rename_limit(body, self.limit)
        return await self._insist(partial(self.server.chat, fields), "", feature, writes=True)

    async def _insist(
        self, call: Callable[[float], Awaitable[dict[str, Any]]], part: str, feature: str, *, writes: bool
    ) -> dict[str, Any]:
        silence_s = max(self.timeout_s, self.wait_s) if writes else self.timeout_s

        async def attempt() -> dict[str, Any]:
            try:
                return await call(silence_s)
            except CallError as fault:
                if isinstance(fault, CURABLE) and fault.status not in _REFUSALS:
                    raise
                if isinstance(fault, AuthError | BillingError) and writes:
                    raise EndpointUnreachableError(
                        f"{self.endpoint.base} takes no request: {fault.message}; name the environment variable that "
                        "holds the right key in model.api_key_env, or raise the account's quota"
                    ) from fault
                if fault.status and httpx.codes.is_redirect(fault.status):
                    raise EndpointUnreachableError(fault.message) from fault
                if feature:
                    message = " ".join(fault.message.split()).removeprefix(f"HTTP {fault.status}")[:600]
                    self.refusals[feature] = f"HTTP {fault.status}{': ' if message else ''}{message}"
                return {}

        reply = await ask_again(attempt, timeout_s=silence_s, patience_s=silence_s)
        if part and reply and not reply.get(part):
            reply = await ask_again(attempt, timeout_s=silence_s, patience_s=silence_s)
        if writes and reply and self.notice is not None:
            self.notice.cancel()
        return reply

    async def ids(self, body: Mapping[str, Any]) -> list[int]:
        """Tokenise a prompt or messages by `/tokenize`; empty if it refuses."""
        return list((await self.post(f"{self.endpoint.root}/tokenize", body)).get("tokens") or [])

    async def _complete(self, prompt: str | list[list[int]], feature: str = "", **body: Any) -> dict[str, Any]:
        fields = {"prompt": prompt, "temperature": 0, **body}
        reply = await self.post(f"{self.endpoint.base}/completions", fields, "choices", feature)
        return next(iter(reply.get("choices") or ()), {})

    async def _text(self, ids: list[int]) -> str:
        return str((await self.post(f"{self.endpoint.root}/detokenize", {"tokens": ids})).get("prompt", ""))

    async def _find_neutral(self, vllm: bool, completes: bool) -> dict[str, int | float]:
        """Find the neutral sampling values that the server takes: all at once, or else each field alone in each value.

        vLLM warns of llama.cpp's field at each request.
        """

        async def takes(fields: dict[str, int | float]) -> bool:
            body: dict[str, Any] = {"temperature": 1.0, "seed": 23, "max_tokens": HOSTED_TOKENS, **fields}
            if completes:
                return bool(await self._complete(_PROMPT, **body | {"max_tokens": 1}))
            return bool((await self.chat({"messages": [_user("Hello")], **body})).get("choices"))

        candidates = {name: values for name, values in NEUTRAL.items() if not (vllm and name == "repeat_penalty")}
        usual: dict[str, int | float] = {name: values[0] for name, values in candidates.items()}
        if await takes(usual):
            return usual
        neutral: dict[str, int | float] = {}
        for name, value in ((name, value) for name, values in candidates.items() for value in values):
            if name not in neutral and await takes({name: value}):
                neutral[name] = value
        return neutral

    def _fixed(self) -> tuple[Any, Any]:
        """Ask what becomes of the fixed dialogue, and of the fixed text: twice, since what a server itself does not
        repeat is no difference.
        """

        async def dialogue() -> str | None:
            body = {"messages": DIALOGUE, "return_token_strs": True}
            return hash_dialogue(await self.post(f"{self.endpoint.root}/tokenize", body, "tokens"))

        async def behaviour() -> tuple[Behaviour | None, bool]:
            calls = (self.post(f"{self.endpoint.base}/completions", TEXT_FIELDS, "choices") for _ in "12")
            if (seen := read_behaviour(await _together(*calls))) is not None:
                return seen, True
            fields = {"messages": DIALOGUE, "temperature": 0, "max_tokens": HOSTED_TOKENS}
            replies = await _together(*(self.chat(fields) for _ in "12"))
            texts = [str(first_message(reply).get("content") or "") for reply in replies if reply.get("choices")]
            return read_behaviour([{"choices": [{"text": text}]} for text in texts]) if len(texts) > 1 else None, False

        return dialogue(), behaviour()

    async def _accepts(self, messages: list[ChatMessage], feature: str = "") -> bool:
        if ids := await self.ids({"messages": messages}):
            return _SYSTEM in await self._text(ids)
        return "choices" in await self.chat({"messages": messages, "max_tokens": HOSTED_TOKENS}, feature)

    async def _keeps_system(self) -> bool:
        turns: list[ChatMessage] = [{"role": "system", "content": _SYSTEM}, _user("Hello")]
        accepted = await self._accepts(turns)
        if not accepted or await self.ids({"messages": turns}):
            return accepted
        return await keeps_system(self.chat)

    async def _renders(self) -> bool:
        messages = [_user("Hello"), {"role": "assistant", "content": "Hi."}, _user("Bye?")]
        ids = await self.ids({"messages": messages})
        return bool(ids) and ids == await self.ids({"prompt": await self._text(ids), "add_special_tokens": False})

    async def _obeys_allowed_tokens(self, letter: int | None) -> bool:
        if letter is None:
            return False
        choice = await self._complete(_PROMPT, "allowed_token_ids", max_tokens=1, allowed_token_ids=[letter])
        return str(choice.get("text", "")).strip() == _LETTER

    async def _echoes(self, vllm: bool) -> int | None:
        """Return the alternatives to ask for so that a prompt is echoed with all probabilities; None: it never is.

        vLLM gives them with none; for others none means no probabilities at all.
        """
        ids, alternatives = tuple(await self.ids({"prompt": _PROMPT, "add_special_tokens": False})), int(not vllm)
        choice = await self._complete([[*ids]], "echo", **echo_fields(alternatives)) if ids else None
        with suppress(LogprobsUnavailableError):
            return alternatives if choice and read_echo(choice, ids, _PROMPT) else None
        return None

    async def _names_tokens(self, letter: int | None) -> bool:
        if letter is None:
            return False
        token_ids = [letter, *range(max(letter - _NAMED, 0), letter)]
        fields = {"logprobs": 1, "logprob_token_ids": token_ids, "return_tokens_as_token_ids": True}
        choice = await self._complete(_PROMPT, "logprob_token_ids", max_tokens=1, **fields)
        with suppress(LogprobsUnavailableError):
            return bool(choice) and bool(read_label(choice, None, token_ids))
        return False

    async def _find_choice_form(self, room: int) -> tuple[ChoiceForm | None, bool | None]:
        async def ask(form: ChoiceForm, opening: str) -> Generation | None:
            turns = [_user("Say hello."), *([{"role": "assistant", "content": opening}] if opening else [])]
            fields = {"temperature": 0, "max_tokens": HOSTED_TOKENS + SCHEMA_TOKENS + room}
            reply = await self.chat({"messages": turns, **fields, **choice_fields(IMPOSSIBLE, form)}, form)
            with suppress(CallError):
                choice = read_chat(reply, self.server.model) if reply else None
                if choice is not None and read_choice(choice, IMPOSSIBLE) is None:
                    self.refusals[form] = f"it writes {choice.words[:40]!r}"
                return choice
            return None

        return await find_choice_form(ask, (OPENING, ""))

    async def _takes_lists(self) -> bool:
        body = {"max_tokens": 1, "temperature": 1.0, "seed": 0, "prompt": [_PROMPT, _SYSTEM]}
        reply = await self.post(f"{self.endpoint.base}/completions", body, "choices")
        return len(reply.get("choices") or ()) == 2


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


def _object(reply: httpx.Response) -> dict[str, Any]:
    with suppress(UnreadableError):
        body = parse_json(reply.content) if reply.status_code == httpx.codes.OK else {}
        return body if isinstance(body, dict) else {}
    return {}
