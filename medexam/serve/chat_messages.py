"""Turns as a chat template takes them, the same for every engine.

A request becomes a list of turns and the words the reply must go on from. Some templates refuse a system turn or two
turns of the same speaker in a row; they get the same words in fewer turns. This module renders and probes templates
but knows no model, no tokens and no server.

The opening words of a reply are never rendered as an assistant turn: templates close that turn, and many trim it, so
a trailing space that the next token depends on would be lost. They are appended to the rendered text instead.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dspy.lm15 import InvalidRequestError, Message, Request, TextPart, UnsupportedFeatureError
from pydantic import ValidationError

from medexam.continuations import CONTINUATIONS, ContinuationRequest
from medexam.serve.contract import CHOICE

ChatMessage = dict[str, str]
"""One turn of a chat template: `role` (`system`, `user` or `assistant`) and `content`."""

_ROLES = {"user": "user", "assistant": "assistant", "developer": "system"}
_PROBE_WORDS = "Be brief."


def to_messages(request: Request) -> tuple[list[ChatMessage], str]:
    """The turns of a request, and the words its reply goes on from (`""` when there are none).

    Raises `UnsupportedFeatureError` for anything but text, and `InvalidRequestError` where nobody is left to answer.
    """
    turns: list[ChatMessage] = []
    if request.system is not None:
        turns.append({"role": "system", "content": _system_text(request.system)})
    turns.extend(_turn(message) for message in request.messages)
    prefill = turns.pop()["content"] if turns[-1]["role"] == "assistant" else ""
    if not any(turn["role"] == "user" for turn in turns):
        raise InvalidRequestError("the request has no user turn to answer")
    return turns, prefill


def requested_choices(request: Request) -> list[str] | None:
    """The strings that the reply must be one of; None where the request leaves it free."""
    choices = (request.config.extensions or {}).get(CHOICE)
    if choices is None:
        return None
    strings = isinstance(choices, list) and all(isinstance(choice, str) and choice for choice in choices)
    if not strings or not choices or len(set(choices)) < len(choices):
        raise InvalidRequestError(f"{CHOICE!r} must be a list of distinct strings, not {choices!r}")
    return list(choices)


def requested_continuations(request: Request) -> ContinuationRequest | None:
    """The texts whose log-probabilities are wanted in the place of a reply; None where a reply is wanted."""
    asked = (request.config.extensions or {}).get(CONTINUATIONS)
    if asked is None:
        return None
    try:
        return ContinuationRequest.model_validate(asked)
    except ValidationError as error:
        raise InvalidRequestError(f"{CONTINUATIONS!r}: {error.errors()[0]['msg']}") from None


def plain_text(request: Request) -> str:
    """The text of a request that is no dialogue: its one user turn."""
    turns, prefill = to_messages(request)
    if len(turns) != 1 or prefill:
        raise InvalidRequestError("a plain text is one user turn and nothing else; set template for a dialogue")
    return turns[0]["content"]


def merge_system_messages(turns: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The same words without system turns and without two turns of one speaker in a row.

    System words become the user's, so they open the first user turn; joined words are a blank line apart.
    """
    return join_messages(
        {"role": "user", "content": turn["content"]} if turn["role"] == "system" else turn for turn in turns
    )


def join_messages(turns: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Neighbouring turns of one speaker as one turn, their words a blank line apart."""
    joined: list[ChatMessage] = []
    for turn in turns:
        if joined and joined[-1]["role"] == turn["role"]:
            joined[-1] = {"role": turn["role"], "content": f"{joined[-1]['content']}\n\n{turn['content']}"}
        else:
            joined.append(dict(turn))
    return joined


@dataclass(frozen=True)
class TemplateRules:
    """What a chat template accepts."""

    system: bool
    """It takes a system turn and shows its words to the model."""
    repeats: bool
    """It takes two turns of one speaker in a row."""

    def fit(self, turns: Sequence[ChatMessage]) -> list[ChatMessage]:
        """The turns in the form that the template accepts, every word kept."""
        if not self.system:
            return merge_system_messages(turns)
        return list(turns) if self.repeats else join_messages(turns)


def probe_template(render: Callable[[list[ChatMessage]], str], refusal: type[Exception]) -> TemplateRules:
    """Find out what a template accepts by rendering short dialogues with it.

    `render` turns a dialogue into text and raises `refusal` where the template does. A template that renders a system
    turn and drops its words counts as refusing it.
    """

    def shows(turns: list[ChatMessage]) -> bool:
        try:
            return _PROBE_WORDS in render(turns)
        except refusal:
            return False

    question = {"role": "user", "content": "Hello"}
    return TemplateRules(
        system=shows([{"role": "system", "content": _PROBE_WORDS}, question]),
        repeats=shows([{"role": "user", "content": _PROBE_WORDS}, question]),
    )


def template_digest(template: str) -> str:
    """SHA-256 of a chat template, as recorded with a run."""
    return hashlib.sha256(template.encode()).hexdigest()


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop string in it, and whether there was one."""
    ends = [end for end in (text.find(stop) for stop in stops) if end >= 0]
    return (text[: min(ends)], True) if ends else (text, False)


def _turn(message: Message) -> ChatMessage:
    role = _ROLES.get(message.role)
    if role is None or message.text is None:
        raise UnsupportedFeatureError(
            f"this engine takes text turns only, not {message.role!r} with {sorted({p.type for p in message.parts})}",
            feature="messages",
        )
    return {"role": role, "content": message.text}


def _system_text(system: str | Sequence[object]) -> str:
    if isinstance(system, str):
        return system
    if not all(isinstance(part, TextPart) for part in system):
        raise UnsupportedFeatureError("this engine takes a system turn of text only", feature="system")
    return "\n".join(part.text for part in system if isinstance(part, TextPart))
