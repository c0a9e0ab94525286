"""Which form of OpenAI's schemas holds a server's model to a choice.

Each is asked with a choice that no model would make by itself, so that the reply shows whether it was heard.
"""

from typing import Any, Literal

from medexam.frozen_model import FrozenModel
from medexam.serve.choice_schema import IMPOSSIBLE, SCHEMA_FORMS, SCHEMA_TOKENS, parse_guided_choice, response_format
from medexam.serve.discovery.server_calls import ServerCalls
from medexam.serve.network.http_calls import MISFORMED

_SHORT = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, "max_tokens": SCHEMA_TOKENS}
_SCHEMA = "choices by {}"


class ApiCheck(FrozenModel):
    """What came of one form."""

    what: str
    verdict: Literal["honoured", "ignored", "refused"]
    said: str = ""
    """What the server said when it refused, or what is wrong with its reply; empty otherwise."""

    def describe(self) -> str:
        """Describe the verdict in words."""
        return f"{self.verdict} ({self.said})" if self.said else self.verdict


async def check_api(calls: ServerCalls) -> tuple[ApiCheck, ...]:
    """Ask by each form, one after the other; raises as the calls do."""
    return tuple([await _judge(calls, form) for form in SCHEMA_FORMS])


def honours_schema(checks: tuple[ApiCheck, ...]) -> str | None:
    """Find the form of schema that holds the model to a choice; None if none does."""
    honoured = {check.what for check in checks if check.verdict == "honoured"}
    return next((form for form in SCHEMA_FORMS if _SCHEMA.format(form) in honoured), None)


async def _judge(calls: ServerCalls, form: Any) -> ApiCheck:
    feature = _SCHEMA.format(form)
    calls.refusals.pop(feature, None)
    try:
        reply = await calls.chat({**_SHORT, "response_format": response_format(IMPOSSIBLE, form)}, feature)
        choices = reply.get("choices") or [{}]
        text = str((choices[0].get("message") or {}).get("content") or "")
        honoured = parse_guided_choice(text, IMPOSSIBLE) is not None
    except MISFORMED as error:
        return ApiCheck(what=feature, verdict="ignored", said=f"its reply cannot be read: {error}")
    if honoured:
        return ApiCheck(what=feature, verdict="honoured")
    refusal = calls.refusals.get(feature)
    return ApiCheck(what=feature, verdict="refused" if refusal else "ignored", said=refusal or "")
