"""How far apart positions are in a GGUF file whose model was trained to read longer texts than at first.

transformers leaves this out of most architectures. The file says it in its metadata, or for Llama 3 as a tensor of one
divisor for each frequency, which is compared with Llama 3's own rule.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medexam.errors import EngineError

ROPE_TENSOR = "rope_freqs.weight"
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
_CLOSE = 1e-3


def rope_parameters(file: Path, fields: dict[str, Any], tensors: Sequence[Any], config: Any) -> None:
    """Set the positions of `config` as the file says; raises `EngineError` for a rule that is not known."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters or parameters.get("rope_type", "default") != "default":
        return
    if scaling := _divisors(file, tensors, float(parameters["rope_theta"])) or _scaling(file, fields):
        config.rope_parameters = {**parameters, **scaling}


def _scaling(file: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Read what the metadata says, by transformers' names; empty if nothing."""
    prefix = f"{fields['general.architecture'].contents()}.rope.scaling."
    settings = {
        name.removeprefix(prefix): field.contents() for name, field in fields.items() if name.startswith(prefix)
    }
    kind = settings.pop("type", "none")
    settings.pop("finetuned", None)
    match kind, settings:
        case "none", _:
            return {}
        case "linear", {"factor": factor}:
            return {"rope_type": "linear", "factor": float(factor)}
        case "yarn", {"factor": factor, "original_context_length": context, **others} if not others:
            return {"rope_type": "yarn", "factor": float(factor), "original_max_position_embeddings": int(context)}
    raise EngineError(
        f"{file}: its positions are scaled in a way that is not supported ({kind}: {', '.join(sorted(settings))}); "
        "serve it with llama.cpp, and ask the server by engine litellm or vllm"
    )


def _divisors(file: Path, tensors: Sequence[Any], base: float) -> dict[str, Any]:
    """Recognise Llama 3's rule, if the file's divisors are its own; empty if there are none, or all are 1."""
    data = next((tensor.data for tensor in tensors if tensor.name == ROPE_TENSOR), None)
    if data is None or all(abs(float(value) - 1) < _CLOSE for value in data):
        return {}
    divisors = [float(value) for value in data]
    rule = {"rope_type": "llama3", "factor": round(max(divisors), 4), **_LLAMA3}
    expected = [_llama3(index, len(divisors), base, rule) for index in range(len(divisors))]
    if not all(math.isclose(*pair, rel_tol=_CLOSE) for pair in zip(divisors, expected, strict=True)):
        raise EngineError(
            f"{file}: its {ROPE_TENSOR} is not Llama 3's; serve it with llama.cpp, and ask the server by engine "
            "litellm or vllm"
        )
    return rule


def _llama3(index: int, count: int, base: float, rule: dict[str, Any]) -> float:
    """Compute Llama 3's divisor of one frequency: long waves are stretched by the whole factor, short ones not."""
    wave = 2 * math.pi * base ** (index / count)
    turns = rule["original_max_position_embeddings"] / wave
    low, high = rule["low_freq_factor"], rule["high_freq_factor"]
    share = min(max((turns - low) / (high - low), 0.0), 1.0)
    return float(1 / ((1 - share) / rule["factor"] + share))
