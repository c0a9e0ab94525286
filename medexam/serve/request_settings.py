"""What a model's spec adds to each of its requests, beside what programs ask: its fields on a server's two endpoints,
and what its chat template is told.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from medexam.errors import EngineError
from medexam.specs import ModelSpec

_SWITCHES = ("enable_thinking", "thinking")
"""What chat templates call the switch: Qwen3, GLM and Gemma the first, DeepSeek V3.1 and Granite the second. A template
that has no such name is not told it."""
CHAT_ONLY = {
    *("chat_template", "documents", "include_reasoning", "mm_processor_kwargs", "media_io_kwargs"),
    *("parallel_tool_calls", "service_tier", "store", "user"),
}
"""Fields that vLLM's chat endpoint knows and its completions endpoint ignores."""
TEMPLATE = "chat_template_kwargs"
"""The field of what the chat template is told."""
_OF_CHAT = {*CHAT_ONLY, TEMPLATE, "reasoning_effort", "thinking_token_budget"}

OFF_FIELDS: tuple[dict[str, Any], ...] = (
    {TEMPLATE: dict.fromkeys(_SWITCHES, False)},  # vLLM, SGLang, llama.cpp
    {"reasoning_effort": "none"},  # Ollama, OpenAI
    {"enable_thinking": False},  # DashScope, SiliconFlow
    {"thinking": {"type": "disabled"}},  # Zhipu, DeepSeek, Moonshot
    {"reasoning": {"enabled": False}},  # OpenRouter
)
"""What servers of OpenAI's API take for thinking that is off, in the order in which they are tried."""
THINKING_TOKENS = 8192
"""Tokens that a hosted model may think beside its reply where neither `model.max_tokens` nor `model.thinking` says."""


def server_fields(spec: ModelSpec) -> dict[str, Any]:
    """Build the fields of each request to the chat endpoint of a server."""
    template = template_settings(spec) | (spec.extra_body.get(TEMPLATE) or {})
    own = {"min_p": spec.min_p, "reasoning_effort": spec.reasoning_effort, TEMPLATE: template or None}
    return {**spec.extra_body, **{name: value for name, value in own.items() if value is not None}}


def completion_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a server's fields that mean the same on its completions endpoint."""
    return {name: value for name, value in fields.items() if name not in _OF_CHAT}


def switch_off(body: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server's fields with these, of `OFF_FIELDS`, instead of those that were tried before."""
    template = {name: value for name, value in body.get(TEMPLATE, {}).items() if name not in _SWITCHES}
    merged = {name: value for name, value in body.items() if name != TEMPLATE}
    merged |= {TEMPLATE: template} if template else {}
    for name, value in fields.items():
        merged[name] = {**merged.get(name, {}), **value} if isinstance(value, dict) else value
    return merged


def still_thinks(model: str) -> EngineError:
    """Build the error for a model that thinks although it shall not."""
    tried = ", ".join(name for fields in OFF_FIELDS for name in fields)
    return EngineError(
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
    effort = {} if spec.reasoning_effort is None else {"reasoning_effort": spec.reasoning_effort}
    return effort | ({} if spec.thinking is None else dict.fromkeys(_SWITCHES, spec.thinking != "off"))


def list_switches(
    spec: ModelSpec, model: str, *, may_reason: bool
) -> Iterator[tuple[dict[str, Any], dict[str, Any], EngineError]]:
    """Yield what a chat template is told for a key of a spec, the same turned the other way, and the error to raise if
    it writes the same for both: it has no such switch then.

    `may_reason`: whether the model may think, as far as its template tells.
    """
    for name, other in (("reasoning_effort", "thinking"), ("thinking", "reasoning_effort")):
        value = getattr(spec, name)
        if value is None or (name == "thinking" and may_reason != (value == "off")):
            continue
        settings = template_settings(spec.model_copy(update={other: None}))
        effort = "low" if value == "high" else "high"
        turned = {key: effort if isinstance(told, str) else not told for key, told in settings.items()}
        yield settings, turned, EngineError(f"{model}: its chat template does not take model.{name}: leave it out")
