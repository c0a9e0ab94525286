"""A dialogue as the messages of a chat template, the same for every engine.

Some templates refuse a system message, or two messages of one role in a row; they get the same words in fewer messages.
This module renders and probes templates but knows no model, no tokens and no server.

The opening words of a reply are never rendered as an assistant message: templates close that message, and many trim it,
so a trailing space that the next token depends on would be lost. They are appended to the rendered text instead, and
blocks of thinking are looked for there: whether a prompt leaves one open, and where a reply closes it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from medexam.errors import InvalidRequestError
from medexam.model_calls import ChatMessage, Dialogue

_PROBE_WORDS = "Be brief."
OPENING, CLOSING = "<think>", "</think>"
_LEFT_OPEN = re.compile(rf"{OPENING}\s*\Z")
_BEGINS = re.compile(rf"\s*{OPENING}\s*")
CLOSED_EARLY = f"\n{CLOSING}\n\n"
"""What ends thinking that has used up its budget."""
CLOSED = "closed before a choice"
"""What is recorded of a chat template that leaves a block open."""


def no_sight(model: str) -> str:
    """Return the words for a model that is shown a picture and cannot see."""
    return (
        f"{model}, which sees no pictures: name a model that does, with engine vllm or litellm, or set program.images "
        "to hidden"
    )


def plain_text(dialogue: Dialogue) -> str:
    """Return the text of a dialogue that is none: its one user message."""
    if len(dialogue.messages) != 1 or dialogue.opening or dialogue.pictures or dialogue.turns is not None:
        raise InvalidRequestError("a plain text is one user turn and nothing else; set template for a dialogue")
    return dialogue.messages[0]["content"]


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


TAKES_ALL = TemplateRules(system=True, repeats=True, empty_system=True)


def probe_template(render: Callable[[list[ChatMessage]], str], refusal: type[Exception]) -> TemplateRules:
    """Find out what a template accepts by rendering short dialogues with it.

    `render` turns a dialogue into text and raises `refusal` if the template refuses it. A template that drops the words
    of a system message counts as refusing it.
    """

    def shows(*turns: tuple[str, str]) -> bool:
        try:
            return _PROBE_WORDS in render([{"role": role, "content": words} for role, words in turns])
        except refusal:
            return False

    return TemplateRules(
        system=shows(("system", _PROBE_WORDS), ("user", "Hello")),
        repeats=shows(("user", _PROBE_WORDS), ("user", "Hello")),
        empty_system=shows(("system", ""), ("user", _PROBE_WORDS)),
    )


def no_template(model: str) -> str:
    """Return the words for a model that is asked a dialogue and has no chat template."""
    return (
        f"{model}, which has no chat template and takes no dialogue: name an instruction-tuned model, or have it read "
        "plain text (program.kind likelihood, or a translation's --set base.KEY=VALUE)"
    )


def cut_at_stop(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Cut the text before the first stop string in it, and return also whether there was one."""
    ends = [end for end in (text.find(stop) for stop in stops) if end >= 0]
    return (text[: min(ends)], True) if ends else (text, False)


def is_open(prompt: str) -> bool:
    """Return whether a prompt ends with a block that the reply is to fill."""
    return _LEFT_OPEN.search(prompt) is not None


def append(prompt: str, prefill: str, *, choosing: bool = False) -> str:
    """Append a reply's first words to the prompt; a block that both open is opened once.

    `choosing`: a choice follows, which is no thought, so a block that only the prompt opens is closed before the words.
    """
    if not _LEFT_OPEN.search(prompt):
        return prompt + prefill
    opening = _BEGINS.match(prefill)
    if opening is not None:
        return prompt + prefill[opening.end() :]
    return prompt + (CLOSED_EARLY if choosing and CLOSING not in prefill else "") + prefill


def find_thinking(reply: str, *, opened: bool) -> tuple[str, bool] | None:
    """Find what a reply thinks, and whether it closes its block; None if it does not think.

    `opened`: the prompt left a block open.
    """
    opening = _BEGINS.match(reply)
    if opening is None and not opened:
        return None
    thinking, closed, _ = reply[opening.end() if opening else 0 :].partition(CLOSING)
    return thinking, bool(closed)


def whole_reply(reply: str, *, opened: bool) -> str:
    """Add the mark that opens its block to a reply, if the prompt that left one open has that mark already."""
    return OPENING + reply if opened and _BEGINS.match(reply) is None else reply
