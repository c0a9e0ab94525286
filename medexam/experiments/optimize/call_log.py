"""Every call of an optimization, on disk as soon as it is answered; asked again, it is answered from there.

DSPy's optimizers are deterministic in what the model says, so an interrupted one is not stored but repeated: what it
asked before costs nothing, and it goes on where it stopped. A line answers requests of the model that wrote it alone.
"""

import asyncio
import hashlib
import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from dspy.lm15 import Message, Request, Response, TextPart, ThinkingPart, Usage
from pydantic import BaseModel, Field

from medexam.errors import RunFolderError
from medexam.experiments.optimize.budget import Budget
from medexam.files import cut_torn_line, open_private, parse_lines
from medexam.model_identity import Answerer
from medexam.serve import Engine
from medexam.serve.contract import CHOICE, EngineInfo
from medexam.serve.network.event_loop import background_loop

TEMPLATE_TOKENS = 16
"""Tokens that a chat template adds to a turn at most."""
DEFAULT_REPLY_TOKENS = 4096
"""Tokens counted for a reply whose budget is not said, until it is there."""


@dataclass(frozen=True)
class Spent:
    """What one purpose has cost."""

    calls: int = 0
    tokens: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.calls + other.calls, self.tokens + other.tokens)


@dataclass
class Purpose:
    """What calls are made for."""

    name: str
    """A trial's digest, or what is done beside the trials, such as `bootstrapping`."""
    promised: int = 0
    """Calls that the budget keeps for it."""


_purpose: ContextVar[Purpose | None] = ContextVar("purpose", default=None)
_OTHER = Purpose("instructions")


@contextmanager
def calling_for(purpose: Purpose) -> Iterator[None]:
    """What is called within is for this purpose."""
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


class _Call(BaseModel):
    """One line of the log."""

    purpose: str = Field(alias="for")
    key: str
    answered_by: str
    """Print of the model."""
    tokens: int
    reply: dict[str, Any] | None
    """None where the call failed."""


class CallLog:
    """The calls of one optimization, in `calls.jsonl`: one line a call, a failed one without a reply."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a torn last line counts as not written.

        Raises `RunFolderError` where it cannot be read.
        """
        self._path = path
        self._known: defaultdict[tuple[str, str], deque[dict[str, Any]]] = defaultdict(deque)
        self._spent: defaultdict[str, Spent] = defaultdict(Spent)
        self.repeated: Counter[tuple[str, str]] = Counter()
        """Print of a model and key -> how often it was asked at a temperature, in all sessions together."""
        self.replies = 0
        """Calls that were answered, by whichever model."""
        self._read()

    @property
    def total(self) -> Spent:
        """What all calls have cost."""
        return sum(self._spent.values(), Spent())

    def spent(self, purpose: str) -> Spent:
        """What one purpose has cost, in all sessions together."""
        return self._spent[purpose]

    def recall(self, model: str, key: str, *, again: bool) -> dict[str, Any] | None:
        """The reply of the model of this print to a call of this key, or None.

        `again` says that the same call would get the same reply, so that one line answers all of them.
        """
        replies = self._known.get((model, key))
        if not replies:
            return None
        return replies[0] if again else replies.popleft()

    def add(
        self, purpose: str, model: str, key: str, tokens: int, reply: Mapping[str, Any] | None, *, again: bool
    ) -> None:
        """Put one call of the model of a print on the disk; raises `RunFolderError` where it does not fit."""
        line = {"for": purpose, "key": key, "answered_by": model, "tokens": tokens, "reply": reply}
        try:
            with open_private(self._path, "ab") as stream:
                stream.write(json.dumps(line, ensure_ascii=False).encode("utf-8") + b"\n")
        except OSError as error:
            raise RunFolderError(f"cannot write {self._path}: {error.strerror}") from None
        self._spent[purpose] += Spent(1, tokens)
        if reply is not None:
            self.replies += 1
            if again:
                self._known[model, key].append(dict(reply))

    def _read(self) -> None:
        cut_torn_line(self._path)
        for _, _, call in parse_lines(self._path, _Call.model_validate_json):
            self._spent[call.purpose] += Spent(1, call.tokens)
            asked = call.answered_by, call.key
            self.repeated[asked] += 1
            if call.reply is not None:
                self.replies += 1
                self._known[asked].append(call.reply)


class LoggedEngine:
    """An engine whose calls are counted on a budget and kept in a log."""

    def __init__(self, engine: Engine, answerer: Answerer, log: CallLog, budget: Budget) -> None:
        self._engine = engine
        self._answerer = answerer
        self._log = log
        self._budget = budget
        self._answering: dict[str, asyncio.Future[Response]] = {}
        self.sync = _Blocking(self)
        self._repeated = log.repeated

    @property
    def concurrency(self) -> int:
        """The engine's own."""
        return self._engine.concurrency

    def info(self) -> EngineInfo:
        """The engine's own."""
        return self._engine.info()

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    async def complete(self, request: Request) -> Response:
        """The reply that is known, or the engine's; raises `StoppedError` where the budget allows no further call."""
        key, again = _key(request), not request.config.temperature
        known = self._log.recall(self._answerer.print, key, again=again)
        if known is not None:
            return _response(known)
        if again and key in self._answering:
            return await asyncio.shield(self._answering[key])
        if not again:
            return await self._ask(self._another(request, key), key, again=False)
        asking = asyncio.ensure_future(self._ask(request, key, again=True))
        self._answering[key] = asking
        try:
            return await asking
        finally:
            self._answering.pop(key, None)

    def _another(self, request: Request, key: str) -> Request:
        """The same request under a seed of its own: asked twice at a temperature, it shall be answered twice."""
        asked = self._answerer.print, key
        repeated = self._repeated[asked]
        self._repeated[asked] += 1
        if not repeated or request.config.seed is None:
            return request
        return replace(request, config=replace(request.config, seed=request.config.seed + repeated))

    async def _ask(self, request: Request, key: str, *, again: bool) -> Response:
        purpose = _purpose.get() or _OTHER
        most = _most_tokens(request)
        promised = purpose.promised > 0
        purpose.promised -= promised
        await self._budget.begin(most, promised=promised)
        tokens: int | None = None
        reply: dict[str, Any] | None = None
        answered_by = self._answerer.print
        try:
            response = await self._engine.complete(request)
            usage = response.usage
            if usage.input_tokens is not None and usage.output_tokens is not None:
                tokens = usage.input_tokens + usage.output_tokens
            reply = _reply(response)
            answered_by = self._answerer.print_of(response.model, cut=False)
            return response
        finally:
            await self._budget.end(most, tokens)
            cost = most if tokens is None else tokens
            self._log.add(purpose.name, answered_by, key, cost, reply, again=again)


class _Blocking:
    def __init__(self, engine: LoggedEngine) -> None:
        self._engine = engine

    def complete(self, request: Request) -> Response:
        """One reply, for the threads that DSPy's optimizers run in."""
        return background_loop().run(self._engine.complete(request))


def _key(request: Request) -> str:
    """SHA-256 of everything that the reply depends on."""
    text = json.dumps(_plain(request), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _most_tokens(request: Request) -> int:
    """Tokens that the call cannot exceed: no tokenizer makes more of a text than it has bytes."""
    system = (
        [request.system] if isinstance(request.system, str) else [getattr(p, "text", "") for p in request.system or ()]
    )
    said = [part.text for message in request.messages for part in message.parts if isinstance(part, TextPart)]
    read = sum(len(text.encode()) for text in (*system, *said)) + TEMPLATE_TOKENS * (len(request.messages) + 2)
    extensions = request.config.extensions or {}
    if CHOICE in extensions:
        return read + max(len(choice.encode()) for choice in extensions[CHOICE])
    return read + (request.config.max_tokens or DEFAULT_REPLY_TOKENS)


def _reply(response: Response) -> dict[str, Any]:
    parts = response.message.parts
    return {
        "model": response.model,
        "finish_reason": response.finish_reason,
        "text": "".join(part.text for part in parts if isinstance(part, TextPart)),
        "thinking": "".join(part.text for part in parts if isinstance(part, ThinkingPart)) or None,
        "input_tokens": response.usage.input_tokens,
        "output_tokens": response.usage.output_tokens,
        "provider_data": response.provider_data,
    }


def _response(reply: Mapping[str, Any]) -> Response:
    parts: list[Any] = [ThinkingPart(reply["thinking"])] if reply["thinking"] else []
    return Response(
        id=None,
        model=reply["model"],
        message=Message.assistant([*parts, TextPart(reply["text"])]),
        finish_reason=reply["finish_reason"],
        usage=Usage(input_tokens=reply["input_tokens"], output_tokens=reply["output_tokens"]),
        provider_data=reply["provider_data"],
    )
