"""The `scripted` engine: replies from a table, for tests, examples and dry runs; no model and no network.

It replaces the server alone, so everything above it is the real thing. It keeps the last dialogues, and fails or waits
where the table says so. It does not tokenise: its token counts are counts of words. It looks at no picture.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from medexam.errors import (
    CallError,
    CallTimeoutError,
    ContextLengthError,
    InvalidRequestError,
    LogprobsUnavailableError,
    RateLimitError,
    ServerError,
    SpecError,
    TransportError,
)
from medexam.files import UnreadableError, decode
from medexam.frozen_model import FrozenModel
from medexam.model_calls import ContinuationRequest, Dialogue, Generation, ToolCall
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import cut_at_stop
from medexam.serve.contract import EngineInfo
from medexam.serve.logprobs import Candidates, build_logprobs
from medexam.specs import parse_yaml
from medexam.specs.base import describe_faults

ANY = "*"
"""Key of the reply to everything that no other key matches."""

_KEPT = 10_000
"""Dialogues that are kept, for tests to look at."""
_ERRORS: dict[str, type[CallError]] = {
    "transport": TransportError,
    "server": ServerError,
    "timeout": CallTimeoutError,
    "rate_limit": RateLimitError,
    "context": ContextLengthError,
}


class ScriptedReply(FrozenModel, strict=True):
    """One reply, or one failure."""

    text: str = ""
    """What the model writes, with or without the opening words that the request prescribes; of a failure, its words."""
    finish_reason: Literal["stop", "length"] = "stop"
    logprobs: list[list[float]] | None = None
    """The log-probabilities of the tokens of each continuation, if continuations are asked for; every word of a
    continuation is one token. Impossible numbers are refused as a server's would be."""
    tool_calls: list[dict[str, Any]] = Field(default_factory=list)
    """The tools that the model calls, beside the text or without one: `name` and `args` of each."""
    error: Literal["transport", "server", "timeout", "rate_limit", "context"] | None = None
    """Raise this failure instead of replying. All but `context` may be over next time, so they are no part of what
    tells one script from another: who takes one out goes on with the same run."""
    wait_s: float = Field(default=0.0, ge=0)
    """How long the reply takes, in seconds."""

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: object) -> object:
        return {"text": value} if isinstance(value, str) else value


ReplySource = str | Mapping[str, Any] | ScriptedReply
ReplyTable = Mapping[str, ReplySource | Sequence[ReplySource]] | Callable[[str, Dialogue], ReplySource]


class ScriptedEngine:
    """Answers from `replies`, a table or a function of the last user message and the whole dialogue.

    The first key of the table that the last user message, or a tool's later result, contains gives the reply; else the
    key `"*"` does. A reply is its text, or a mapping: `{error: transport}` raises the failure, `{text: ..., wait_s: 2}`
    takes two seconds, `{text: ..., finish_reason: length}` is a reply cut short, `{tool_calls: [{name: ..., args:
    {...}}]}` calls tools. A list gives its replies one after the other, and then again from the first.
    """

    concurrency = 64

    def __init__(self, replies: ReplyTable, *, revision: str | None = None):
        self.dialogues: list[Dialogue] = []
        """The last dialogues received, in order."""
        table = {} if callable(replies) else {key: _check_replies(key, one) for key, one in replies.items()}
        self._replies = replies if callable(replies) else {key: cycle(turns) for key, turns in table.items()}
        self.supports_function_calling = any(reply.tool_calls for turns in table.values() for reply in turns)
        """Whether any reply of the table calls a tool; a function's replies are not known before."""
        self._revision = revision

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the table from a YAML file; raises `SpecError` if it is not one."""
        try:
            return cls(_read_table(path), revision=script_digest(path))
        except SpecError as error:
            raise SpecError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error

    async def reply(self, dialogue: Dialogue) -> Generation:
        """Return the scripted reply to one dialogue."""
        self.dialogues.append(dialogue)
        del self.dialogues[:-_KEPT]
        messages = dialogue.turns or dialogue.messages
        reply = self._find_reply(_last_words(messages), dialogue)
        await asyncio.sleep(reply.wait_s)
        if reply.error is not None:
            raise _ERRORS[reply.error](reply.text or f"scripted {reply.error} failure")
        if dialogue.continuations is not None:
            return _read(dialogue.continuations, reply)
        text, stopped = cut_at_stop(reply.text.removeprefix(dialogue.opening), dialogue.sampling.get("stop") or ())
        if dialogue.choices:
            # The longest choice that the text begins with, else the first one.
            matches = (choice for choice in dialogue.choices if text.strip().startswith(choice.strip()))
            text, stopped = max(matches, key=len, default=dialogue.choices[0]), True
        words = [*(_words(turn["content"]) for turn in messages), dialogue.opening]
        calls = (ToolCall(**{"id": f"call_{place}", "args": {}, **call}) for place, call in enumerate(reply.tool_calls))
        return Generation(
            text,
            "stop" if stopped else reply.finish_reason,
            "scripted",
            sum(len(text.split()) for text in words),
            len(text.split()),
            tool_calls=tuple(calls),
        )

    def info(self) -> EngineInfo:
        """Describe what really runs: a table."""
        return EngineInfo(
            engine="scripted",
            model="scripted",
            identity=ModelIdentity(engine="scripted", name="scripted", content=self._revision),
            revision=self._revision,
            guided_by="next_token",
        )

    async def aclose(self) -> None:
        """Do nothing: there is nothing to release."""

    def _find_reply(self, question: str, dialogue: Dialogue) -> ScriptedReply:
        if callable(self._replies):
            return _check_replies(question, self._replies(question, dialogue))[0]
        key = next((key for key in self._replies if key != ANY and key in question), ANY)
        if key not in self._replies:
            raise InvalidRequestError(
                f"no scripted reply fits {question[:80]!r}: add a key that it contains, or {ANY!r}"
            )
        return next(self._replies[key])


def _read(request: ContinuationRequest, reply: ScriptedReply) -> Generation:
    if reply.logprobs is None or len(reply.logprobs) != len(request.texts):
        raise LogprobsUnavailableError(
            f"the script has no logprobs for {len(request.texts)} continuations; give one row for each"
        )
    # A token is its word's place in the order of first use, behind a prompt of one token.
    words = {word: place for place, word in enumerate(dict.fromkeys(" ".join(request.texts).split()), start=1)}
    paths = tuple(tuple(words[word] for word in text.split()) for text in request.texts)
    method = "echo" if request.read_by == "auto" else request.read_by
    return build_logprobs(
        Candidates((0,), paths), reply.logprobs, method, "scripted", request.texts, "scripted", computed=1
    )


def _words(content: Any) -> str:
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    return "".join(str(part.get("text", "")) for part in parts)


def _last_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the last user message; behind calls of tools, their results with what follows them."""
    roles = [message["role"] for message in messages]
    if "tool" not in roles:
        return _words(next(message["content"] for message in reversed(messages) if message["role"] == "user"))
    last_reply = max(place for place, role in enumerate(roles) if role == "assistant")
    return "\n".join(_words(message["content"]) for message in messages[last_reply:])


def _check_replies(key: str, replies: Any) -> list[ScriptedReply]:
    turns = replies if isinstance(replies, list) and replies else [replies]
    try:
        return [ScriptedReply.model_validate(reply) for reply in turns]
    except ValidationError as error:
        raise SpecError(f"reply to {key[:80]!r}, {describe_faults(error)}") from error


def script_digest(path: Path) -> str:
    """Hash what the script in a file says to 12 hexadecimal digits; raises `SpecError` if it cannot be read.

    Waits, and failures that may be over next time, are left out: answers do not depend on them.
    """
    lasting = {}
    for key, replies in _read_table(path).items():
        turns: list[Any] = []
        for reply in _check_replies(key, replies):
            if reply.error in (None, "context"):
                fields = reply.model_dump(exclude={"wait_s"}, exclude_unset=True)
                turns.append(fields["text"] if fields.keys() == {"text"} else fields)
        if turns:
            lasting[key] = turns[0] if len(turns) == 1 else turns
    # The order counts, so keys are not sorted: the first one that matches gives the reply.
    return hashlib.sha256(json.dumps(lasting).encode()).hexdigest()[:12]


def _read_table(path: Path) -> dict[str, Any]:
    try:
        table = parse_yaml(decode(path.read_bytes()), str(path))
    except (OSError, UnreadableError) as error:
        raise SpecError(f"{path}: the replies cannot be read: {error}") from None
    if not isinstance(table, dict) or not table or not all(isinstance(key, str) for key in table):
        raise SpecError(f"{path}: the replies must be a mapping of text to reply, with quoted keys")
    return table
