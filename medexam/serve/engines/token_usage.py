"""What a server's `usage` says of the tokens of one reply; what it does not say stays unknown, and is never zero.

Some servers leave `usage` out, fill it with nulls or zeros, or give a total alone; litellm writes zeros for what is
missing. A prompt has at least one token, and so has a reply with words, so that zeros there are no counts.
"""

from collections.abc import Mapping
from typing import Any

from medexam.serve.discovery.requests import is_count


def read_usage(usage: Any, *, wrote: bool) -> dict[str, Any]:
    """Return the counts in an OpenAI `usage` that can be true; empty if it tells nothing.

    `wrote` says whether the reply has words or thoughts. A part that is missing follows from the total and the other.
    """
    if not isinstance(usage, Mapping):
        return {}
    nested = {key: read_usage(value, wrote=False) for key, value in usage.items() if isinstance(value, Mapping)}
    counts = nested | {key: value for key, value in usage.items() if is_count(value)}
    prompt = counts.get("prompt_tokens") or None
    completion = counts.get("completion_tokens") or None
    total = counts.get("total_tokens") or 0
    if prompt is None and completion is not None and total > completion:
        prompt = total - completion
    elif completion is None and prompt is not None and total > prompt:
        completion = total - prompt
    elif completion is None and prompt is not None and not wrote and "completion_tokens" in counts:
        completion = 0
    totals = {"prompt_tokens": prompt, "completion_tokens": completion}
    details = {key: value for key, value in counts.items() if key not in (*totals, "total_tokens")}
    return {**details, **{key: value for key, value in totals.items() if value is not None}}
