"""Fields that a spec adds to each request: what they must not be.

A spec is stored with its runs, so no key may stand in it; and a field that the spec or a program sets elsewhere would
have two values.
"""

import re
from collections.abc import Mapping
from typing import Any

from medexam.specs.secret_values import looks_secret, walk

_ELSEWHERE = {
    **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "stop", "seed", "reasoning_effort")},
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "max_tokens"),
    **dict.fromkeys(("thinking", "thinking_token_budget", "enable_thinking"), "thinking"),
    **dict.fromkeys(("model",), "name"),
}
"""Field -> the key of `model` that sets it."""
_OURS = {
    *("messages", "prompt", "suffix", "n", "best_of", "use_beam_search", "stream", "stream_options", "echo"),
    *("logprobs", "top_logprobs", "prompt_logprobs", "logprob_token_ids", "return_token_ids"),
    *("return_tokens_as_token_ids", "allowed_token_ids", "structured_outputs", "response_format", "guided_choice"),
    *("tools", "tool_choice", "functions", "add_generation_prompt", "continue_final_message", "add_special_tokens"),
    *("extra_headers", "headers", "api_base", "base_url", "timeout", "num_retries", "max_retries", "cache"),
}
"""Fields that programs and engines set, and those that decide where a request goes."""
_SECRET_NAME = re.compile(
    r"(^|[_-])(api[_-]?key|key|secret|password|passwd|authorization|bearer|credentials?|(?<!eos_)(?<!bos_)(?<!pad_)token)$",
    re.IGNORECASE,
)
"""Names that look like keys; three that end in `token` are of a tokenizer."""


def check_extra_body(fields: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a field that is set elsewhere, and for one that looks like a key."""
    for path, value in walk(fields):
        name = path.rpartition(".")[2]
        if _SECRET_NAME.search(name) or looks_secret(value):
            raise ValueError(
                f"extra_body.{path} looks like a key, and specs are stored: name the variable that holds it in "
                "api_key_env, or the file in api_key_file"
            )
    inner = fields.get("chat_template_kwargs")
    for name in (*fields, *(inner if isinstance(inner, Mapping) else ())):
        if name in _ELSEWHERE:
            raise ValueError(f"extra_body.{name}: set model.{_ELSEWHERE[name]} instead")
    for name in fields:
        if name in _OURS:
            raise ValueError(f"extra_body.{name} is set by programs and engines: leave it out")
