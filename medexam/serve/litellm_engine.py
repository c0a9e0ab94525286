"""The `litellm` engine: any model that litellm reaches, hosted by somebody else.

Providers show neither tokens nor templates, so a choice is asked as a JSON schema with one field and read out of the
JSON. Whether the model honours it is found out once at the start, with an impossible choice. Opening words of a reply
are shown as an assistant turn before a choice; a free reply cannot be made to go on from them, and says so. This module
knows litellm's calls, not what is asked.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dspy.lm15 import Config, Message, ProviderError, Request, Response, UnsupportedFeatureError

from medexam.errors import AnswerFormatError, EngineError
from medexam.serve.concurrency import Concurrency
from medexam.serve.contract import CHOICE, EngineInfo
from medexam.serve.endpoints import NO_KEY, normalise_address, read_key
from medexam.serve.litellm_calls import call_litellm, get_litellm, to_response
from medexam.serve.retrying import CURABLE, ask_again, is_refusal
from medexam.serve.turns import Turn, to_turns
from medexam.specs.model import ModelSpec

_FIELD = "answer"
_IMPOSSIBLE = ("zyzzyva", "syzygy")
_FIRST = 16
"""Requests in flight at first: hosted providers limit rates."""
_JSON_TOKENS = 64
"""Room for the JSON around a choice, beyond the reply's own budget."""


class LiteLLMEngine:
    """Asynchronous engine; build it with `medexam.serve.build_engine`. It lives on the network loop."""

    def __init__(self, spec: ModelSpec) -> None:
        assert spec.name is not None  # noqa: S101 - the spec's own validator requires it
        self.model = spec.name
        self._load = Concurrency(spec.timeout_s, first=_FIRST)
        self._timeout_s = spec.timeout_s
        self._address = normalise_address(spec.endpoints[0]) if spec.endpoints else None
        self._connection: dict[str, Any] = {"api_base": self._address} if self._address else {}
        if spec.api_key_env or spec.api_key_file or self._address:
            # Without a key of its own an endpoint gets none: the provider's usual one is for the provider alone.
            self._connection["api_key"] = read_key(spec.api_key_env, file=spec.api_key_file) or NO_KEY
        self._guided = False
        self._check_known()

    @property
    def concurrency(self) -> int:
        """Requests that keep the provider busy; it changes with what it shows."""
        return self._load.value

    async def complete(self, request: Request) -> Response:
        """One reply to one request."""
        with self._load.carrying():
            return await self._complete(request)

    async def _complete(self, request: Request) -> Response:
        from dspy.clients.lm15_boundary import request_kwargs

        turns, prefill = to_turns(request)
        extensions = dict(request.config.extensions or {})
        choices = extensions.pop(CHOICE, None)
        if choices is not None:
            return await self._choose(turns, prefill, tuple(choices), request.config)
        if prefill:
            raise UnsupportedFeatureError(
                "the litellm engine cannot make a provider go on from given words; use engine vllm or embedded",
                feature="messages",
            )
        fields = request_kwargs(request, "chat")
        fields["messages"] = turns
        if request.config.top_k is not None:
            fields["top_k"] = request.config.top_k
        return await self._chat(fields)

    async def check_guided(self) -> None:
        """Ask for an impossible choice; raises `AnswerFormatError` unless it comes back."""
        turns = [{"role": "user", "content": "Say hello."}]
        try:
            response = await self._choose(turns, "", _IMPOSSIBLE, Config(temperature=0.0, max_tokens=16))
        except (UnsupportedFeatureError, ProviderError) as error:
            raise AnswerFormatError(
                f"{self.model}: this model cannot be held to an answer format ({str(error).splitlines()[0]}); "
                "set program.answer_format to free, or serve an open model with engine vllm"
            ) from error
        self._guided = response.text in _IMPOSSIBLE

    def info(self) -> EngineInfo:
        """What really runs."""
        from importlib.metadata import version

        return EngineInfo(
            engine="litellm",
            model=self.model,
            endpoints=(self._address,) if self._address else (),
            guided_by="structured_outputs" if self._guided else None,
            details={"litellm": version("litellm")},
        )

    async def close(self) -> None:
        """Nothing to do: litellm keeps its connections for the process and closes them itself."""

    async def _choose(self, turns: list[Turn], prefill: str, choices: Sequence[str], config: Config) -> Response:
        shown = [*turns, {"role": "assistant", "content": prefill}] if prefill.strip() else turns
        schema = {
            "type": "object",
            "properties": {_FIELD: {"type": "string", "enum": list(choices)}},
            "required": [_FIELD],
            "additionalProperties": False,
        }
        fields = {
            "messages": shown,
            "temperature": config.temperature,
            "seed": config.seed,
            "max_tokens": (config.max_tokens or 0) + _JSON_TOKENS,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "choice", "schema": schema, "strict": True},
            },
        }
        response = await self._chat({name: value for name, value in fields.items() if value is not None})
        text = response.text or ""
        try:
            chosen = json.loads(text)[_FIELD]
        except (ValueError, TypeError, KeyError):
            chosen = None
        if chosen not in choices:
            raise ProviderError(f"{self.model} replied {text[:200]!r} where one of {list(choices)} was demanded")
        return replace(response, message=Message.assistant(chosen), finish_reason="stop")

    async def _chat(self, fields: dict[str, Any]) -> Response:
        call = {**fields, **self._connection, "timeout_s": self._timeout_s}

        async def attempt() -> Response:
            try:
                return to_response(await call_litellm("acompletion", self.model, **call), self.model)
            except CURABLE as fault:
                if is_refusal(fault):
                    self._load.refuse()
                raise

        return await ask_again(attempt, timeout_s=self._timeout_s)

    def _check_known(self) -> None:
        """Raise where litellm knows no provider for the name, before anything is asked."""
        try:
            get_litellm().get_llm_provider(model=self.model, api_base=self._address)
        except Exception as error:
            raise EngineError(
                f"litellm knows no provider for {self.model!r}; write PROVIDER/MODEL, such as openai/gpt-4o-mini or "
                "hosted_vllm/NAME with an endpoint"
            ) from error
