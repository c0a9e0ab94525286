"""What a server honours of OpenAI's own API: choices by schema, log-probabilities, several replies, seeds.

Each is asked so that the reply shows whether it was heard. A server that refuses a field says so and is believed; one
that answers as if it were not there ignores it. This module knows fields of requests and replies.
"""

from typing import Any, Literal

from medexam.frozen_model import FrozenModel
from medexam.serve.choice_schema import IMPOSSIBLE, SCHEMA_FORMS, SCHEMA_TOKENS, parse_guided_choice, response_format
from medexam.serve.discovery.server_calls import ServerCalls
from medexam.serve.network.http_calls import MISFORMED

_TOP = 5
"""Alternatives asked for."""
_PROMPT = "The capital of France is"
_RANDOM = {
    "messages": [{"role": "user", "content": "Write random words, one after the other."}],
    "temperature": 1.5,
    "max_tokens": 16,
}
_SHORT = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": 2}
SCHEMA = "choices by {}"


class ApiCheck(FrozenModel):
    """What came of one field."""

    what: str
    verdict: Literal["honoured", "ignored", "refused"]
    said: str = ""
    """What the server said when it refused, or what is wrong with its reply; empty otherwise."""

    def describe(self) -> str:
        """Describe the verdict in words."""
        return f"{self.verdict} ({self.said})" if self.said else self.verdict


async def check_api(calls: ServerCalls) -> tuple[ApiCheck, ...]:
    """Ask for each feature, one after the other; raises as the calls do."""
    checks = [await _judge(calls, SCHEMA.format(form), _chooses(form)) for form in SCHEMA_FORMS]
    checks.append(await _judge(calls, "logprobs in chat", _tells_in_chat))
    checks.append(await _judge(calls, "logprobs in completions", _tells_in_completions))
    checks.append(await _judge(calls, "n", _replies_twice))
    checks.append(await _judge(calls, "seed", _repeats))
    return tuple(checks)


def honours_schema(checks: tuple[ApiCheck, ...]) -> str | None:
    """Find the form of schema that holds the model to a choice; None if none does."""
    honoured = {check.what for check in checks if check.verdict == "honoured"}
    return next((form for form in SCHEMA_FORMS if SCHEMA.format(form) in honoured), None)


async def _judge(calls: ServerCalls, feature: str, probe: Any) -> ApiCheck:
    calls.refusals.pop(feature, None)
    try:
        honoured = await probe(calls, feature)
    except MISFORMED as error:
        return ApiCheck(what=feature, verdict="ignored", said=f"its reply cannot be read: {error}")
    if honoured:
        return ApiCheck(what=feature, verdict="honoured")
    refusal = calls.refusals.get(feature)
    return ApiCheck(what=feature, verdict="refused" if refusal else "ignored", said=refusal or "")


def _chooses(form: Any) -> Any:
    async def chooses(calls: ServerCalls, feature: str) -> bool:
        body = {**_SHORT, "max_tokens": SCHEMA_TOKENS, "response_format": response_format(IMPOSSIBLE, form)}
        (message, *_) = _messages(await _chat(calls, feature, body)) or [""]
        return parse_guided_choice(message, IMPOSSIBLE) is not None

    return chooses


async def _tells_in_chat(calls: ServerCalls, feature: str) -> bool:
    reply = await _chat(calls, feature, {**_SHORT, "logprobs": True, "top_logprobs": _TOP})
    for choice in reply.get("choices") or ():
        content = (choice.get("logprobs") or {}).get("content") or [{}]
        return len(content[0].get("top_logprobs") or ()) == _TOP
    return False


async def _tells_in_completions(calls: ServerCalls, feature: str) -> bool:
    for choice in await calls.complete(_PROMPT, feature, max_tokens=1, logprobs=_TOP):
        top_logprobs = (choice.get("logprobs") or {}).get("top_logprobs") or [{}]
        return len(top_logprobs[0] or ()) >= _TOP
    return False


async def _replies_twice(calls: ServerCalls, feature: str) -> bool:
    return len(_messages(await _chat(calls, feature, {**_RANDOM, "n": 2}))) == 2


async def _repeats(calls: ServerCalls, feature: str) -> bool:
    """Return whether one seed gives one reply, and another seed another."""
    first, again, other = [_messages(await _chat(calls, feature, {**_RANDOM, "seed": seed})) for seed in (7, 7, 8)]
    return bool(first) and first == again != other


async def _chat(calls: ServerCalls, feature: str, body: dict[str, Any]) -> dict[str, Any]:
    return await calls.chat(body, feature)


def _messages(reply: dict[str, Any]) -> list[str]:
    """Return the text of each choice."""
    return [str((choice.get("message") or {}).get("content") or "") for choice in reply.get("choices") or ()]
