"""What a model makes of a fixed text and a fixed dialogue, which tells it from another of the same name.

This module words what is asked and reads the replies; how they travel is known to `probe.py` and the engines.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from medexam.model_calls import ChatMessage
from medexam.model_identity import Behaviour, mean_gap

TEXT = "Chest pain for two hours; ST elevation in II, III and aVF. ¿Qué arteria? 17 of 51 (33 %)."
"""Prose, numbers and a second language, so that other weights show in some token; short, since it is asked twice."""
REPLY_TOKENS = 2
"""Tokens of the continuation."""
HOSTED_TOKENS = 16
"""Tokens of a hosted model's reply to the dialogue, which is all that it shows."""
DIALOGUE: list[ChatMessage] = [
    {"role": "user", "content": " Name a bone.\n"},
    {"role": "assistant", "content": "Fémur: 1"},
    {"role": "user", "content": TEXT},
]
TEXT_FIELDS = {
    "prompt": TEXT,
    "echo": True,
    "logprobs": 1,
    "max_tokens": REPLY_TOKENS,
    "temperature": 0,
    "return_token_ids": True,
}
"""The body of a completions request that reads `TEXT` and continues it."""
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_LEAST = 1e6
"""Nats below zero that no token has."""
_DATE = re.compile(
    rf"\b(\d{{4}}-\d\d-\d\d|\d\d?[ -]({_MONTHS})[a-z]*[ -]\d{{4}}|({_MONTHS})[a-z]* \d\d?, \d{{4}}"
    r"|\d\d?[/.]\d\d?[/.]\d{4})"
)
"""Some templates write the day into every prompt."""


def hash_dialogue(reply: Mapping[str, Any]) -> str | None:
    """Hash of the rendered dialogue as `/tokenize` gave it, dates left out; None if it gave none."""
    if words := _list(reply, "token_strs"):
        # Byte-level tokenizers write a space as Ġ, sentencepiece writes it as ▁.
        text = _DATE.sub("<date>", "".join(map(str, words)).replace("Ġ", " ").replace("▁", " "))
    elif ids := reply.get("tokens"):
        text = " ".join(map(str, ids))
    else:
        return None
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def read_behaviour(replies: Sequence[Mapping[str, Any]]) -> Behaviour | None:
    """Read what two completions requests of `TEXT_FIELDS` brought; None if one of them brought nothing."""
    if not all(reply.get("choices") for reply in replies):
        return None
    first, second = (_read_text(reply["choices"][0]) for reply in replies)
    noise = None
    if first.logprobs and second.logprobs:
        noise = mean_gap(first.logprobs, second.logprobs)
    elif first.reply == second.reply:
        noise = 0.0
    return first.model_copy(update={"noise": noise})


def _read_text(choice: Mapping[str, Any]) -> Behaviour:
    """Read the tokens of the text, the log-probabilities of all but the first, and the continuation."""
    tokens = tuple(token for token in _list(choice, "prompt_token_ids") if isinstance(token, int))
    values = _list(choice.get("logprobs"), "token_logprobs")
    # A server that does not echo gives the continuation's alone.
    logprobs = values[1 : len(tokens)] if values and values[0] is None and tokens else []
    if not all(isinstance(value, int | float) and abs(value) <= _LEAST for value in logprobs):
        logprobs = []
    continuation = str(choice.get("text") or "").removeprefix(TEXT)
    rounded = tuple(round(float(value), 4) for value in logprobs)
    return Behaviour(tokens=tokens, logprobs=rounded, reply=continuation, noise=None)


def _list(holder: object, name: str) -> list[Any]:
    """Return a list that a part of a reply holds; empty if it holds none."""
    value = holder.get(name) if isinstance(holder, Mapping) else None
    return value if isinstance(value, list) else []
