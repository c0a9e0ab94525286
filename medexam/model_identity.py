"""What a model really is, whatever it is called, and whether two models are the same.

An engine says it before it is asked anything, a run folder keeps it, and it is compared when the run is taken up. A
name, an address or a path is not enough: another model may stand behind each of them.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from medexam.frozen_model import FrozenModel

PRINT_LENGTH = 8
"""Hexadecimal digits of a print."""
SAME_NATS = 0.08
"""Two readings of one text by one model differ by no more than this on average, in nats a token: other hardware and
other batches round differently in 16 bits, the last scores alone by some 0.05. docs/protocol.md has the figures."""
_NOISE_FACTOR = 3.0
"""How often the noise that a server showed itself may pass for the same model."""


class Behaviour(FrozenModel):
    """What a model made of a fixed text: its log-probabilities, and how it continued it."""

    tokens: tuple[int, ...] = ()
    """The text's tokens; empty where they are not told."""
    logprobs: tuple[float, ...] = ()
    """In nats, of each token of the text but the first; empty where they are not told."""
    reply: str
    """The greedy continuation, a few tokens long."""
    noise: float | None
    """Mean difference of the log-probabilities in nats a token when the same was asked twice; without
    log-probabilities 0 where both replies were equal, and None where they were not."""


class ModelIdentity(FrozenModel):
    """What answers, as data; what is None could not be found out."""

    engine: str
    """`embedded`, `vllm`, `litellm`, `scripted`, or another's name."""
    name: str
    """The name that its replies carry."""
    content: str | None = None
    """The weights, for a model in this process: a hash of a folder's files, a hub commit or a package's version."""
    dtype: str | None = None
    """The type that the weights are multiplied in."""
    hub_id: str | None = None
    """Where a server says that its weights come from; None where it names a folder."""
    commit: str | None = None
    """The hub's commit of those weights, where the server tells."""
    dialogue: str | None = None
    """Hash of what chat template and tokenizer make of a fixed dialogue."""
    behaviour: Behaviour | None = None
    sampling: str | None = None
    """How requests treat sampling values that a spec leaves out: `neutral`, or `neutral but for` the fields that the
    server does not take. None without a server."""
    notes: dict[str, str | int | None] = Field(default_factory=dict)
    """What a server tells besides that changes no answer: its version, its context, where its weights lie."""

    @property
    def print(self) -> str:
        """A short hash of all but the notes, which predictions carry."""
        text = json.dumps(self.model_dump(mode="json", exclude={"notes"}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:PRINT_LENGTH]

    def differences(self, other: "ModelIdentity") -> list[str]:
        """Describe in words what tells `other` from this model; empty where both are the same."""
        lines = []
        for field, phrase in _COMPARED.items():
            own_part, other_part = getattr(self, field), getattr(other, field)
            # What the content settles may lie in a folder of another name, and other engines leave other values out.
            is_settled = self.content is not None if field == "name" else self.engine != other.engine
            is_untold = field in _TOLD and not (own_part and other_part)
            if own_part != other_part and not is_untold and not (field in ("name", "sampling") and is_settled):
                lines.append(f"{phrase} {other_part or 'untold'}, not {own_part or 'untold'}")
        return lines + _compare_behaviour(self.behaviour, other.behaviour)

    def shows_more_than(self, other: "ModelIdentity") -> bool:
        """Return whether `other` lacks what this one shows, so that they cannot be compared."""
        behaviour, other_behaviour = self.behaviour, other.behaviour
        lacks_text = behaviour is not None and (
            other_behaviour is None or bool(behaviour.logprobs) > bool(other_behaviour.logprobs)
        )
        return lacks_text or (self.dialogue is not None and other.dialogue is None)

    def describe(self) -> str:
        """Describe the identity in words, for a report."""
        fields = {name: getattr(self, name) for name in _COMPARED if name not in ("engine", "name")} | self.notes
        parts = [f"{self.name} ({self.engine})", f"print {self.print}"]
        return ", ".join(parts + [f"{name} {value}" for name, value in fields.items() if value is not None])


@dataclass(frozen=True)
class Answerer:
    """A model that was admitted to a folder."""

    print: str
    """What its answers carry."""
    name: str
    """What its replies call it."""

    def print_of(self, name: str | None) -> str:
        """Return the print of an answer whose reply names its model so: another where a provider has swapped it."""
        if name in (None, self.name):
            return self.print
        return hashlib.sha256(f"{self.print} {name}".encode()).hexdigest()[:PRINT_LENGTH]


_TOLD = ("hub_id", "commit")
"""Compared where both servers tell."""
_COMPARED = {
    "engine": "engine",
    "name": "it is",
    "sampling": "sampling values that the spec leaves out are",
    "content": "weights",
    "dtype": "dtype",
    "dialogue": "chat template and tokenizer",
    **dict.fromkeys(_TOLD, "its weights come from"),
}


def _compare_behaviour(behaviour: Behaviour | None, other: Behaviour | None) -> list[str]:
    if behaviour is None or other is None:
        news = f"its answers to a fixed text are {'now' if behaviour is None else 'no longer'} available"
        return [news] * (behaviour is not other)
    if behaviour.tokens != other.tokens:
        return ["its tokenizer splits a fixed text into other tokens"]
    if behaviour.logprobs and other.logprobs:
        gap = mean_gap(behaviour.logprobs, other.logprobs)
        limit = max(SAME_NATS, *(_NOISE_FACTOR * (reading.noise or 0.0) for reading in (behaviour, other)))
        return [f"its log-probabilities of a fixed text differ by {gap:.3f} nats a token"] if gap > limit else []
    if bool(behaviour.logprobs) != bool(other.logprobs):
        return [f"its log-probabilities are {'no longer' if behaviour.logprobs else 'now'} available"]
    steady = behaviour.noise == other.noise == 0.0
    return [f"it continues a fixed text with {other.reply!r}, not {behaviour.reply!r}"] * (
        steady and behaviour.reply != other.reply
    )


def mean_gap(reading: Sequence[float], other: Sequence[float]) -> float:
    """Compute the mean absolute difference of two readings, in nats a token; infinite where their lengths differ."""
    if len(reading) != len(other):
        return float("inf")
    return sum(abs(a - b) for a, b in zip(reading, other, strict=True)) / max(len(reading), 1)
