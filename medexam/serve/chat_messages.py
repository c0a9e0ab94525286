"""A request as the messages of a chat template, the same for every engine.

A request becomes a list of messages and the words that the reply must continue. Some templates refuse a system message,
or two messages of one role in a row; they get the same words in fewer messages. This module renders and probes
templates but knows no model, no tokens and no server.

The opening words of a reply are never rendered as an assistant message: templates close that message, and many trim it,
so a trailing space that the next token depends on would be lost. They are appended to the rendered text instead.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dspy.lm15 import ImagePart, Message, Request, TextPart, ToolCallPart, ToolResultPart
from pydantic import ValidationError

from medexam.dspy_internals import chat_request_fields
from medexam.errors import InvalidRequestError, UnsupportedFeatureError
from medexam.model_calls import CONTINUATIONS, ChatMessage, ContinuationRequest
from medexam.serve.contract import CHOICE, PLAIN

_ROLES = {"user": "user", "assistant": "assistant", "developer": "system"}
_PROBE_WORDS = "Be brief."


def to_messages(request: Request) -> tuple[list[ChatMessage], str]:
    """Convert a request to its messages and the words that its reply continues (`""` if there are none).

    Raises `UnsupportedFeatureError` for anything but text, and `InvalidRequestError` if nothing is left to answer.
    """
    messages: list[ChatMessage] = []
    if request.system is not None:
        messages.append({"role": "system", "content": _system_text(request.system)})
    messages.extend(_message(message) for message in request.messages)
    prefill = messages.pop()["content"] if messages[-1]["role"] == "assistant" else ""
    if not any(message["role"] == "user" for message in messages):
        raise InvalidRequestError("the request has no user turn to answer")
    return messages, prefill


def tool_messages(request: Request) -> list[dict[str, Any]] | None:
    """Return the messages in OpenAI's chat dialect if some call tools or bring their results; None if none does."""
    if not any(isinstance(part, ToolCallPart | ToolResultPart) for turn in request.messages for part in turn.parts):
        return None
    messages: list[dict[str, Any]] = chat_request_fields(request)["messages"]
    return messages


def take_pictures(request: Request) -> tuple[Request, list[str]]:
    """Return the request without the pictures of its last user message, and these as data URLs, in order."""
    users = [place for place, message in enumerate(request.messages) if message.role == "user"]
    user_turn = request.messages[users[-1]] if users else None
    if user_turn is None or not any(isinstance(part, ImagePart) for part in user_turn.parts):
        return request, []
    pictures = [
        f"data:{picture.media_type};base64,{picture.data}"
        for picture in user_turn.parts
        if isinstance(picture, ImagePart)
    ]
    messages = list(request.messages)
    messages[users[-1]] = replace(
        user_turn, parts=tuple(part for part in user_turn.parts if not isinstance(part, ImagePart))
    )
    return replace(request, messages=tuple(messages)), pictures


def put_pictures(messages: Sequence[ChatMessage], pictures: Sequence[str]) -> list[dict[str, Any]]:
    """Write the messages in OpenAI's chat dialect, with pictures before the words of the last user message."""
    turns: list[dict[str, Any]] = [dict(message) for message in messages]
    if pictures:
        user_turn = next(message for message in reversed(turns) if message["role"] == "user")
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
        user_turn["content"] = [*parts, {"type": "text", "text": user_turn["content"]}]
    return turns


def no_sight(model: str) -> str:
    """Return the words for a model that is shown a picture and cannot see."""
    return (
        f"{model}, which sees no pictures: name a model that does, with engine vllm or litellm, or set program.images "
        "to hidden"
    )


def requested_choices(request: Request) -> list[str] | None:
    """Return the strings that the reply must be one of; None if it is free."""
    choices = (request.config.extensions or {}).get(CHOICE)
    if choices is None:
        return None
    strings = isinstance(choices, list) and all(isinstance(choice, str) and choice for choice in choices)
    if not strings or not choices or len(set(choices)) < len(choices):
        raise InvalidRequestError(f"{CHOICE!r} must be a list of distinct strings, not {choices!r}")
    return list(choices)


def requested_continuations(request: Request) -> ContinuationRequest | None:
    """Return the texts whose log-probabilities are wanted instead of a reply; None if a reply is wanted."""
    continuations = (request.config.extensions or {}).get(CONTINUATIONS)
    if continuations is None:
        return None
    try:
        return ContinuationRequest.model_validate(continuations)
    except ValidationError as error:
        raise InvalidRequestError(f"{CONTINUATIONS!r}: {error.errors()[0]['msg']}") from None


def continues_plain_text(request: Request) -> bool:
    """Return whether the reply continues the request's one user message, without a chat template."""
    return (request.config.extensions or {}).get(PLAIN) is True


def plain_text(request: Request) -> str:
    """Return the text of a request that is no dialogue: its one user message."""
    messages, prefill = to_messages(request)
    if len(messages) != 1 or prefill:
        raise InvalidRequestError("a plain text is one user turn and nothing else; set template for a dialogue")
    return messages[0]["content"]


@dataclass(frozen=True)
class TemplateRules:
    """What a chat template accepts."""

    system: bool
    """It takes a system message and shows its words to the model."""
    repeats: bool
    """It takes two messages of one role in a row."""
    empty_system: bool
    """It takes a system message without words."""

    def fit(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Fit the messages to the form that the template accepts, every word kept.

        A refused system message becomes the user's, so it opens the first user message, and an empty one is left out;
        neighbours of one role are joined, a blank line apart.
        """
        if self.system and self.repeats and self.empty_system:
            return list(messages)
        turns: list[ChatMessage] = []
        joins = not self.repeats
        for role, content in ((message["role"], message["content"]) for message in messages):
            if role == "system" and not content and not (self.system and self.empty_system):
                continue
            refused = role == "system" and not self.system
            role = "user" if refused else role
            if joins and turns and turns[-1]["role"] == role:
                turns[-1]["content"] += f"\n\n{content}"
            else:
                turns.append({"role": role, "content": content})
            joins = refused or not self.repeats
        return turns

    @property
    def details(self) -> dict[str, str]:
        """What becomes of messages that it may refuse, as recorded with a run."""
        return {
            "repeated_turns": "kept" if self.repeats else "merged",
            "empty_system_turn": "kept" if self.system and self.empty_system else "left out",
        }


def probe_template(render: Callable[[list[ChatMessage]], str], refusal: type[Exception]) -> TemplateRules:
    """Find out what a template accepts by rendering short dialogues with it.

    `render` turns a dialogue into text and raises `refusal` if the template refuses it. A template that drops the words
    of a system message counts as refusing it.
    """

    def shows(messages: list[ChatMessage]) -> bool:
        try:
            return _PROBE_WORDS in render(messages)
        except refusal:
            return False

    question = {"role": "user", "content": "Hello"}
    return TemplateRules(
        system=shows([{"role": "system", "content": _PROBE_WORDS}, question]),
        repeats=shows([{"role": "user", "content": _PROBE_WORDS}, question]),
        empty_system=shows([{"role": "system", "content": ""}, {"role": "user", "content": _PROBE_WORDS}]),
    )


def no_template(model: str) -> str:
    """Return the words for a model that is asked a dialogue and has no chat template."""
    return (
        f"{model}, which has no chat template and takes no dialogue: name an instruction-tuned model, or have it read "
        "plain text (program.kind likelihood, or a translation's --set base.KEY=VALUE)"
    )


def template_digest(template: str) -> str:
    """Hash a chat template by SHA-256, as recorded with a run."""
    return hashlib.sha256(template.encode()).hexdigest()


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Cut the text before the first stop string in it, and return also whether there was one."""
    ends = [end for end in (text.find(stop) for stop in stops) if end >= 0]
    return (text[: min(ends)], True) if ends else (text, False)


def _message(message: Message) -> ChatMessage:
    role = _ROLES.get(message.role)
    if role is None or message.text is None:
        raise UnsupportedFeatureError(
            f"this engine takes text messages, not {message.role!r} with {sorted({p.type for p in message.parts})}",
            feature="messages",
        )
    return {"role": role, "content": message.text}


def _system_text(system: str | Sequence[object]) -> str:
    if isinstance(system, str):
        return system
    if not all(isinstance(part, TextPart) for part in system):
        raise UnsupportedFeatureError("this engine takes a system message of text only", feature="system")
    return "\n".join(part.text for part in system if isinstance(part, TextPart))
