"""The `scripted` engine: replies from a table, for tests, examples and dry runs; no model and no network.

It replaces the server alone, so everything above it is the real thing. It keeps every dialogue and fails on demand. It
does not tokenise: its token counts are counts of words. It looks at no picture that it is shown.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
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
from medexam.frozen_model import FrozenModel
from medexam.inputs import UnreadableError, decode, read_regular
from medexam.model_calls import ContinuationRequest, Dialogue, Generation, ReadBy, ToolCall
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import cut_at_stop, tool_turns
from medexam.serve.contract import EngineInfo, SyncTwin
from medexam.serve.logprobs.tokens import Candidates, build_logprobs, build_reading
from medexam.specs import parse_yaml

ANY = "*"
"""Key of the reply to everything that no other key matches."""

_ERRORS: dict[str, type[CallError]] = {
    "transport": TransportError,
    "server": ServerError,
    "timeout": CallTimeoutError,
    "rate_limit": RateLimitError,
    "context": ContextLengthError,
}


class ScriptedToolCall(FrozenModel, strict=True):
    """A call of a tool."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)


class ScriptedReply(FrozenModel, strict=True):
    """One reply, or one failure."""

    text: str = ""
    """What the model writes, with or without the opening words that the request prescribes."""
    finish_reason: Literal["stop", "length"] = "stop"
    logprobs: list[list[float]] | None = None
    """The log-probabilities of the tokens of each continuation, if continuations are asked for; every word of a
    continuation is one token. Impossible numbers are refused as a server's would be."""
    tool_calls: list[ScriptedToolCall] = Field(default_factory=list)
    """The tools that the model calls, beside the text or without one."""
    error: Literal["transport", "server", "timeout", "rate_limit", "context"] | None = None
    """Raise this failure instead of replying."""

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: object) -> object:
        return {"text": value} if isinstance(value, str) else value


ReplySource = str | Mapping[str, str] | ScriptedReply
ReplyTable = Mapping[str, ReplySource] | Callable[[str], ReplySource]


class ScriptedEngine:
    """Answers from `replies`, a table or a function of the last user message.

    The first key of the table that the last user message, or a tool's later result, contains gives the reply; else the
    key `"*"` does. A reply is its text, or a mapping: `{error: transport}` raises the failure, `{text: ...,
    finish_reason: length}` is a reply cut short, `{tool_calls: [{name: ..., args: {...}}]}` calls tools.
    """

    concurrency = 64

    def __init__(self, replies: ReplyTable, *, model: str = "scripted", revision: str | None = None):
        self.dialogues: list[Dialogue] = []
        """Every dialogue received, in order."""
        self.sync = SyncTwin(self.answer)
        self._model = model
        self._replies = replies if callable(replies) else {key: _check_reply(key, r) for key, r in replies.items()}
        self._revision = revision

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the table from a YAML file; raises `SpecError` if it is not one."""
        table = _read_table(path)
        try:
            return cls(table, revision=_digest(table))
        except SpecError as error:
            raise SpecError(f"{path}: {error}") from error

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the scripted reply to one dialogue, alone in a list."""
        return self.answer(dialogue)

    @property
    def supports_function_calling(self) -> bool:
        """Whether any reply of the table calls a tool; a function's replies are not known before."""
        return not callable(self._replies) and any(reply.tool_calls for reply in self._replies.values())

    def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the scripted reply to one dialogue, alone in a list; `reply` of both engines ends here."""
        self.dialogues.append(dialogue)
        messages: Sequence[Mapping[str, Any]] = tool_turns(dialogue) or dialogue.messages
        reply = self._reply_to(_last_words(messages))
        if reply.error is not None:
            raise _ERRORS[reply.error](f"scripted {reply.error} failure")
        if dialogue.continuations is not None:
            return [self._read(dialogue.continuations, reply)]
        text = reply.text.removeprefix(dialogue.opening)
        finish_reason: str = reply.finish_reason
        if dialogue.choices:
            text, finish_reason = _choose(text, dialogue.choices), "stop"
        text, stopped = cut_at_stop(text, dialogue.sampling.stop)
        calls = [ToolCall(id=f"call_{i}", name=call.name, args=call.args) for i, call in enumerate(reply.tool_calls)]
        generation = Generation(
            reply=text,
            finish_reason="stop" if stopped else finish_reason,
            model=self._model,
            prompt_tokens=_count_words(*(message["content"] or "" for message in messages), dialogue.opening),
            completion_tokens=_count_words(text),
            tool_calls=tuple(calls),
        )
        return [generation]

    def _read(self, continuations: ContinuationRequest, reply: ScriptedReply) -> Generation:
        if reply.logprobs is None or len(reply.logprobs) != len(continuations.texts):
            raise LogprobsUnavailableError(
                f"the script has no logprobs for {len(continuations.texts)} continuations; give one row for each"
            )
        # A token is its word's place in the order of first use, behind a prompt of one token.
        words = {
            word: place for place, word in enumerate(dict.fromkeys(" ".join(continuations.texts).split()), start=1)
        }
        paths = tuple(tuple(words[word] for word in text.split()) for text in continuations.texts)
        method: ReadBy = "echo" if continuations.read_by == "auto" else continuations.read_by
        reading = build_logprobs(Candidates((0,), paths), reply.logprobs, method, "scripted", computed=1)
        return build_reading(reading, continuations.texts, self._model)

    def info(self) -> EngineInfo:
        """Describe what really runs: a table."""
        return EngineInfo(
            engine="scripted",
            model=self._model,
            identity=ModelIdentity(engine="scripted", name=self._model, content=self._revision),
            revision=self._revision,
            guided_by="next_token",
        )

    async def aclose(self) -> None:
        """Do nothing: there is nothing to release."""

    def _reply_to(self, question: str) -> ScriptedReply:
        if callable(self._replies):
            return _check_reply(question, self._replies(question))
        key = next((key for key in self._replies if key != ANY and key in question), ANY)
        if key not in self._replies:
            raise InvalidRequestError(
                f"no scripted reply fits {question[:80]!r}: add a key that it contains, or {ANY!r}"
            )
        return self._replies[key]


def _count_words(*texts: str) -> int:
    return sum(len(text.split()) for text in texts)


def _last_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the last user message; behind calls of tools, their results with what follows them."""
    dialogue: list[tuple[str, str]] = [(message["role"], message["content"] or "") for message in messages]
    replies = [place for place, (role, _) in enumerate(dialogue) if role == "assistant"]
    if not any(role == "tool" for role, _ in dialogue):
        return next(words for role, words in reversed(dialogue) if role == "user")
    return "\n".join(words for _, words in dialogue[replies[-1] :])


def _check_reply(key: str, reply: Any) -> ScriptedReply:
    if isinstance(reply, ScriptedReply):
        return reply
    try:
        return ScriptedReply.model_validate(reply)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        field = ".".join(map(str, fault["loc"]))
        raise SpecError(f"reply to {key[:80]!r}{f', {field}' if field else ''}: {fault['msg']}") from error


def _choose(text: str, choices: Sequence[str]) -> str:
    """Choose the longest choice that the text begins with, else the first one."""
    words = text.strip()
    return max((choice for choice in choices if words.startswith(choice.strip())), key=len, default=choices[0])


def script_digest(path: Path) -> str:
    """Hash what the script in a file says to 12 hexadecimal digits; raises `SpecError` if it cannot be read."""
    return _digest(_read_table(path))


def _digest(table: Mapping[str, Any]) -> str:
    # The order counts, so keys are not sorted: the first one that matches gives the reply.
    return hashlib.sha256(json.dumps(table, default=str).encode()).hexdigest()[:12]


def _read_table(path: Path) -> dict[str, Any]:
    try:
        text = decode(read_regular(path))
    except (OSError, UnreadableError) as error:
        raise SpecError(f"{path}: the replies cannot be read: {error}") from None
    return _parse_table(text, str(path))


@lru_cache(maxsize=4)
def _parse_table(text: str, source: str) -> dict[str, Any]:
    # A plan asks for the script's digest before an engine reads the script.
    table = parse_yaml(text, source)
    if not isinstance(table, dict) or not table or not all(isinstance(key, str) for key in table):
        raise SpecError(f"{source}: the replies must be a mapping of text to reply, with quoted keys")
    return table
