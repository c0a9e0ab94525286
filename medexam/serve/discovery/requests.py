"""What is asked to find out what a server or a model does, and what its replies show.

Servers drop messages and fields that they do not know, and still answer. So what is found out shows in counts of tokens
or in a word that no model says. A fixed text and a fixed dialogue tell a model from another of the same name. This
module words requests and reads replies; the probe and the engines know how both travel.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from medexam.model_calls import ChatMessage, is_cut, put_pictures
from medexam.model_identity import Behaviour, mean_gap
from medexam.serve.choice_schema import IMPOSSIBLE, SCHEMA_TOKENS, choice_fields, parse_guided_choice
from medexam.signatures.thinking import split_thinking

LOADING = (502, 503, 504)
"""What a gateway answers while the server behind it is not there."""
_TEXT = "Chest pain for two hours; ST elevation in II, III and aVF. ¿Qué arteria? 17 of 51 (33 %)."
"""Prose, numbers and a second language, so that other weights show in some token; short, since it is asked twice."""
HOSTED_TOKENS = 16
"""The fewest tokens of a reply that every server takes as a limit."""
DIALOGUE: list[ChatMessage] = [
    {"role": "user", "content": " Name a bone.\n"},
    {"role": "assistant", "content": "Fémur: 1"},
    {"role": "user", "content": _TEXT},
]
TEXT_FIELDS = {
    "prompt": _TEXT,
    "echo": True,
    "logprobs": 1,
    "max_tokens": 2,
    "temperature": 0,
    "return_token_ids": True,
}
_LEAST = 1e6
"""Nats below zero that no token has."""
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DATE = re.compile(
    rf"\b(\d{{4}}-\d\d-\d\d|\d\d?[ -]({_MONTHS})[a-z]*[ -]\d{{4}}|({_MONTHS})[a-z]* \d\d?, \d{{4}}"
    r"|\d\d?[/.]\d\d?[/.]\d{4})"
)
"""Some templates write the day into every prompt."""
_THOUGHT = re.compile(r"(?:think|thought|reason)(?!\w*(?:signatures?|effort|id)$)", re.IGNORECASE)
"""Begins the names of fields, parts and counts that hold what was thought."""
_TEXTS = ("text", "content", "summary")
Ask = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]
"""Sends the body of a chat request, without its model; returns the reply's object, empty if it is refused."""
TOOL_PARAMS = ("tools", "tool_choice", "parallel_tool_calls")
LIMITS = ("max_tokens", "max_completion_tokens")
"""What OpenAI's API calls the most tokens of a reply, the name that most servers know first."""
UNLIMITED = (
    "{} ignores max_tokens and max_completion_tokens, so replies may be longer than program.max_tokens; set a limit "
    "at the server"
)
NEUTRAL: Mapping[str, tuple[float, ...]] = {
    "top_p": (1.0,),
    "top_k": (-1, 0),
    "min_p": (0.0,),
    "repetition_penalty": (1.0,),
    "presence_penalty": (0.0,),
    "frequency_penalty": (0.0,),
    "repeat_penalty": (1.0,),
}
"""Sampling field -> the values that let it change nothing, in the order in which they are tried. Servers word `top_k`
in two ways, and llama.cpp's `repeat_penalty` is the other one's penalty."""
_SYSTEMS = ("Be brief.", "You sit an exam in medicine: be brief, be exact, and give a reason for all that you say.")
"""A short and a long system message: only one that reaches the model costs what it is long, since a template may write
one of its own without it."""
_HELLO = {"role": "user", "content": "Say hello."}
_MOST_COUNTED = 10**9
"""Tokens of one reply; those of thousands of replies together still fit in any table."""
_TOKENS = 16
"""Some providers refuse fewer."""
_MOST_CHARACTERS = 12 * _TOKENS
"""No tokenizer makes words of counting as long."""
_SQUARE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAwElEQVR4nNXOQREAAAyDMKRX+kTw4BYFYc9RByzqgEUdsKgD"
    "FnXAog5Y1AGLOmBRByzqgEUdsKgDFnXAog5Y1AGLOmBRByzqgEUdsKgDFnXAog5Y1AGLOmBRByzqgEUdsKgDFnXAog5Y1AGLOmBRByzqgEUdsKgDFnXA"
    "og5Y1AGLOmBRByzqgEUdsKgDFnXAog5Y1AGLOmBRByzqgEUdsKgDFnXAog5Y1AGLOmBRByzqgEUdsKgDFnXAog5Y1AHrAB8+AWlViFU0AAAAAElFTkSuQmCC"
)
"""A grey square of 64 pixels; some models take no picture that is smaller than a patch of theirs."""


def is_count(value: Any) -> bool:
    """Return whether a server's number of tokens can be one."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_COUNTED


def rename_limit(fields: Mapping[str, Any], limit: str | None) -> dict[str, Any]:
    """Return the fields of a chat request with the most tokens under the name `limit`; None changes nothing."""
    return {limit if limit and name in LIMITS else name: value for name, value in fields.items()}


def first_message(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of a chat reply; an empty one without it."""
    return (reply.get("choices") or [{}])[0].get("message") or {}


def join_texts(value: Any) -> str:
    """Join what is text in a part of a message, whatever lists and mappings hold it."""
    if isinstance(value, Mapping):
        value = [inner for name, inner in value.items() if name in _TEXTS or _THOUGHT.match(name)]
    return "".join(map(join_texts, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def read_thoughts(message: Mapping[str, Any]) -> str:
    """Return what a message says that was thought, in a field or in parts of the content that are named so."""
    fields = {**(message.get("provider_specific_fields") or {}), **message}
    values = [value for name, value in fields.items() if _THOUGHT.match(name)]
    parts = [part for part in _list(message, "content") if isinstance(part, Mapping)]
    typed = [part if _THOUGHT.match(str(part.get("type"))) else {**part, **dict.fromkeys(_TEXTS)} for part in parts]
    # Servers that write thoughts into several fields repeat them.
    return next(filter(None, map(join_texts, [*values, typed])), "")


def _counts_thoughts(usage: Any) -> bool:
    return isinstance(usage, Mapping) and any(
        _counts_thoughts(value) or bool(_THOUGHT.match(name) and is_count(value) and value)
        for name, value in usage.items()
    )


def shows_thinking(reply: Mapping[str, Any]) -> bool:
    """Return whether a model thought before it replied: it says or counts so, or its budget is gone without a word."""
    message = first_message(reply)
    text = str(message.get("content") or "").strip()
    if read_thoughts(message).strip() or _counts_thoughts(reply.get("usage")) or split_thinking(text)[0] is not None:
        return True
    cut = bool(reply.get("choices")) and is_cut(reply["choices"][0].get("finish_reason"))
    return cut and not text and not message.get("tool_calls")


async def keeps_system(ask: Ask) -> bool:
    """Return whether a system message reaches the model: the longer of two costs more tokens.

    A server that counts no tokens is believed; one that refuses the message keeps none.
    """
    short, long = [
        await ask({"messages": [{"role": "system", "content": words}, _HELLO], "temperature": 0, "max_tokens": _TOKENS})
        for words in _SYSTEMS
    ]
    return bool(short.get("choices")) and _counts_more(long, short)


async def find_limit(ask: Ask) -> str | None:
    """Find the first of `LIMITS` at which a reply ends; None if it ends at neither. A model that refuses both shows
    nothing.

    A reply may end by itself before: then the name that it was asked by is believed.
    """
    answered = False
    counting = {"role": "user", "content": "Count from one to fifty in words, without a word of your own."}
    for name in LIMITS:
        reply = await ask({"messages": [counting], "temperature": 0, name: _TOKENS})
        if reply.get("choices"):
            answered = True
            count, message = (reply.get("usage") or {}).get("completion_tokens"), first_message(reply)
            length = len(f"{read_thoughts(message)}{message.get('content') or ''}")
            if count <= _TOKENS if is_count(count) and count else length <= _MOST_CHARACTERS:
                return name
    return None if answered else LIMITS[0]


async def reads_pictures(ask: Ask) -> bool:
    """Return whether a model takes a grey square and reads it: the words with it cost more tokens than without."""
    replies = []
    for pictures in ([_SQUARE], []):
        replies.append(await ask({"messages": put_pictures([_HELLO], pictures), "max_tokens": _TOKENS}))
        if not replies[0].get("choices"):
            return False
    return _counts_more(*replies)


async def find_native_forms(ask: Ask) -> tuple[bool, bool]:
    """Find out whether tools are called, and whether a reply is held to a JSON schema, by at most three requests.

    A tool that must be called is called, and one that may be is not refused.
    """
    body = {"messages": [_HELLO], "temperature": 0, "max_tokens": SCHEMA_TOKENS}
    tools = choice_fields(IMPOSSIBLE, "tool_choice")
    takes_tools = bool(first_message(await ask({**body, **tools})).get("tool_calls"))
    takes_tools = takes_tools and bool(first_message(await ask({**body, **tools, "tool_choice": "auto"})))
    text = first_message(await ask({**body, **choice_fields(IMPOSSIBLE, "json_schema")})).get("content")
    return takes_tools, isinstance(text, str) and parse_guided_choice(text, IMPOSSIBLE) is not None


def _counts_more(reply: Mapping[str, Any], shorter: Mapping[str, Any]) -> bool:
    count, shorter_count = ((answer.get("usage") or {}).get("prompt_tokens") for answer in (reply, shorter))
    return not (is_count(count) and is_count(shorter_count) and count and shorter_count) or bool(count > shorter_count)


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
    readings = []
    for choice in (reply["choices"][0] for reply in replies):
        tokens = tuple(token for token in _list(choice, "prompt_token_ids") if isinstance(token, int))
        values = _list(choice.get("logprobs"), "token_logprobs")
        # A server that does not echo gives the continuation's alone.
        logprobs = values[1 : len(tokens)] if values and values[0] is None and tokens else []
        if not all(isinstance(value, int | float) and abs(value) <= _LEAST for value in logprobs):
            logprobs = []
        continuation = str(choice.get("text") or "").removeprefix(_TEXT)
        readings.append((tokens, tuple(round(float(value), 4) for value in logprobs), continuation))
    (tokens, first, reply), (_, second, other_reply) = readings
    noise = mean_gap(first, second) if first and second else 0.0 if reply == other_reply else None
    return Behaviour(tokens=tokens, logprobs=first, reply=reply, noise=noise)


def _list(holder: object, name: str) -> list[Any]:
    value = holder.get(name) if isinstance(holder, Mapping) else None
    return value if isinstance(value, list) else []
