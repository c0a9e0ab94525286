"""What a model's spec adds to each of its requests, beside what programs ask: its fields on a server's two endpoints,
and what its chat template is told.

This module knows fields; it asks nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from medexam.errors import EngineError
from medexam.specs import ModelSpec
from medexam.specs.model import Thinking

_SWITCHES = ("enable_thinking", "thinking")
"""What chat templates call the switch: Qwen3, GLM and Gemma the first, DeepSeek V3.1 and Granite the second. A template
that has no such name is not told it."""
_CHAT_ONLY = {
    *("chat_template", "documents", "include_reasoning", "mm_processor_kwargs", "media_io_kwargs"),
    *("parallel_tool_calls", "service_tier", "store", "user"),
}
"""Fields that vLLM's chat endpoint knows and its completions endpoint ignores."""
_LENGTHS = {"min_tokens", "ignore_eos", "stop_token_ids"}
"""Fields that say how long a reply may be; a choice is as long as it is."""

_BY_EFFORT = ("gemini", "vertex_ai", "vertex_ai_beta")
"""Providers of litellm's that thinking is switched off at by an effort of none: it drops their own switch."""
_BY_BODY = ("zai",)
"""Providers whose switch for thinking litellm names and does not send."""
OFF_FIELDS: tuple[dict[str, Any], ...] = (
    {"chat_template_kwargs": dict.fromkeys(_SWITCHES, False)},  # vLLM, SGLang, llama.cpp
    {"reasoning_effort": "none"},  # Ollama, OpenAI
    {"enable_thinking": False},  # DashScope, SiliconFlow
    {"thinking": {"type": "disabled"}},  # Zhipu, DeepSeek, Moonshot
    {"reasoning": {"enabled": False}},  # OpenRouter
)
"""What servers of OpenAI's API take for thinking that is off, in the order in which they are tried."""
THINKING_TOKENS = 8192
"""Tokens that a hosted model may think beside its reply where neither `model.max_tokens` nor `model.thinking` says."""


@dataclass(frozen=True)
class RequestSettings:
    """The fields of requests to a server."""

    sampling: dict[str, Any] = field(default_factory=dict)
    """Fields that mean the same on the chat and the completions endpoint."""
    chat: dict[str, Any] = field(default_factory=dict)
    """Those of the chat endpoint alone."""
    template: dict[str, Any] = field(default_factory=dict)
    """What the chat template is told."""
    thinks: bool | None = None
    """Whether the model shall think; None leaves it to the model."""
    spec_keys: tuple[str, ...] = ()
    """The keys of the spec that are behind these fields."""

    @classmethod
    def of(cls, spec: ModelSpec) -> Self:
        """Collect the fields that a spec sets."""
        template = template_settings(spec)
        template |= spec.extra_body.get("chat_template_kwargs") or {}
        extra = {name: value for name, value in spec.extra_body.items() if name != "chat_template_kwargs"}
        sampling = {name: value for name, value in extra.items() if name not in _CHAT_ONLY}
        chat = {name: value for name, value in extra.items() if name in _CHAT_ONLY}
        if spec.min_p is not None:
            sampling["min_p"] = spec.min_p
        if spec.reasoning_effort is not None:
            chat["reasoning_effort"] = spec.reasoning_effort
        if isinstance(spec.thinking, int):
            chat["thinking_token_budget"] = spec.thinking
        if template:
            chat["chat_template_kwargs"] = template
        thinks = None if "thinking" not in spec.request_settings else spec.thinking != "off"
        return cls(sampling, chat, template, thinks, tuple(f"model.{name}" for name in spec.request_settings))

    @property
    def choosing(self) -> dict[str, Any]:
        """Those of `sampling` that a choice takes."""
        return {name: value for name, value in self.sampling.items() if name not in _LENGTHS}

    @property
    def chat_only(self) -> list[str]:
        """Fields that a request on the completions endpoint cannot carry, and the chat template does not stand for."""
        return sorted(self.chat.keys() & _CHAT_ONLY)


def hosted_fields(spec: ModelSpec, provider: str = "") -> dict[str, Any]:
    """Build litellm's fields for a spec's settings: for a provider in litellm's words, which it turns into the
    provider's.

    An endpoint of one's own gets the fields as they are, and its chat template is told of thinking.
    """
    extra = dict(spec.extra_body)
    fields: dict[str, Any] = {}
    if spec.min_p is not None:
        extra["min_p"] = spec.min_p
    if spec.endpoints:
        if spec.reasoning_effort is not None:
            extra["reasoning_effort"] = spec.reasoning_effort
        if template := template_settings(spec) | (extra.get("chat_template_kwargs") or {}):
            extra["chat_template_kwargs"] = template
    else:
        if spec.reasoning_effort is not None:
            fields["reasoning_effort"] = spec.reasoning_effort
        if spec.thinking is not None:
            thinking_fields = _thinking_fields(spec.thinking, provider)
            (extra if provider in _BY_BODY else fields).update(thinking_fields)
    return {**fields, "extra_body": extra} if extra else fields


def _thinking_fields(thinking: Thinking, provider: str) -> dict[str, Any]:
    if isinstance(thinking, int):
        return {"thinking": {"type": "enabled", "budget_tokens": thinking}}
    if thinking == "off":
        return {"reasoning_effort": "none"} if provider in _BY_EFFORT else {"thinking": {"type": "disabled"}}
    # Anthropic's API takes no thinking without a budget.
    budget = {} if provider in _BY_BODY else {"budget_tokens": THINKING_TOKENS}
    return {"thinking": {"type": "enabled", **budget}}


def off_settings(fields: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return an endpoint's settings with these fields, of `OFF_FIELDS`, instead of those that were tried before."""
    extra = dict(settings.get("extra_body", {}))
    told = {name: value for name, value in extra.pop("chat_template_kwargs", {}).items() if name not in _SWITCHES}
    merged = {**extra, **({"chat_template_kwargs": told} if told else {})}
    for name, value in fields.items():
        merged[name] = {**merged.get(name, {}), **value} if isinstance(value, dict) else value
    return {**settings, "extra_body": merged}


def still_thinks(model: str) -> str:
    """Return the words for a model that thinks although it shall not."""
    tried = ", ".join(name for fields in OFF_FIELDS for name in fields)
    return (
        f"{model} thinks with model.thinking: off too ({tried}): name the server's own field in model.extra_body, "
        "leave model.thinking out, or ask another model"
    )


def thinking_room(spec: ModelSpec, *, thinks: bool) -> int:
    """Return the tokens that a hosted model may think beside its reply.

    `thinks`: whether it thinks without being told to.
    """
    if isinstance(spec.thinking, int):
        return spec.thinking
    if spec.thinking == "on":
        return THINKING_TOKENS
    unlimited = spec.max_tokens is None and spec.thinking is None and spec.reasoning_effort != "none"
    return THINKING_TOKENS if unlimited and (thinks or spec.reasoning_effort is not None) else 0


def template_settings(spec: ModelSpec) -> dict[str, Any]:
    """Collect what `thinking` and `reasoning_effort` of a spec tell a chat template."""
    settings: dict[str, Any] = {}
    if spec.reasoning_effort is not None:
        settings["reasoning_effort"] = spec.reasoning_effort
    if spec.thinking is not None:
        settings |= dict.fromkeys(_SWITCHES, spec.thinking != "off")
    return settings


def other_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Turn every switch the other way; a template that writes the same for both has no switch."""
    opposite: dict[str, Any] = {name: not value for name, value in settings.items() if name in _SWITCHES}
    if effort := settings.get("reasoning_effort"):
        opposite["reasoning_effort"] = "high" if effort != "high" else "low"
    return opposite


def check_switches(spec: ModelSpec, model: str, *, changes: dict[str, bool], may_reason: bool) -> None:
    """Raise `EngineError` for a setting that this model's chat template has no words for.

    `changes`: key of the spec -> whether the template writes something else if it is set otherwise. `may_reason`:
    whether the model may think, as far as its template tells.
    """
    if spec.reasoning_effort is not None and not changes["reasoning_effort"]:
        raise EngineError(
            f"{model}: its chat template does not take model.reasoning_effort: leave it out, or set model.thinking"
        )
    if spec.thinking is None or changes["thinking"]:
        return
    if spec.thinking == "off" and may_reason:
        raise EngineError(f"{model}: its chat template cannot switch thinking off: leave model.thinking out")
    if spec.thinking != "off" and not may_reason:
        raise EngineError(f"{model}: its chat template does not take model.thinking: leave model.thinking out")
