"""vLLM's flags that nobody may give: they run foreign code, show a key, or move a server that clients look for.

vLLM's parser takes underscores for dashes, and any beginning of a flag that no other flag shares.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "--trust-remote-code": "would run code from the model's repository; take trust-remote-code out",
        "--api-key": "shows the key to everyone on this machine; take it out, and put the key into the environment "
        "variable VLLM_API_KEY",
        "--hf-token": "shows the token to everyone on this machine; take it out, and put it into the environment "
        "variable HF_TOKEN",
        "--config": "names a file that may hold flags that are refused; write the flags themselves",
        "--host": "is set by `medexam serve MODEL --host ADDRESS`; write it so, before any `--`",
        "--port": "is set by `medexam serve MODEL --port N`; write it so, before any `--`",
    }
)
"""Flag -> why it is refused, and the way out."""
_SHORTEST = len("--x")


def refused_flag(flags: Sequence[str]) -> str | None:
    """Return what to tell a user who gave a flag, or a beginning of one, that is refused; None where none is."""
    for word in flags:
        prefix = word.partition("=")[0].replace("_", "-")
        if prefix.startswith("--") and len(prefix) >= _SHORTEST:
            for flag, reason in _REFUSED.items():
                if flag.startswith(prefix):
                    return f"{flag if prefix == flag else f'{prefix}, short for {flag},'} {reason}"
    return None
