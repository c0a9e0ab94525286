"""What the predictions of a run report of tokens and time, whatever was asked."""

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from medexam.predictions import Prediction, Status


def count_costs(keys: Iterable[str], predictions: Mapping[str, Prediction]) -> dict[str, Any]:
    """`prompt_tokens`, `completion_tokens`, `latency_p50_s` and `latency_p95_s` over the predictions of `keys`.

    Each None where no prediction reports it; failed ones have no latency.
    """
    prompt = completion = None
    latencies = array("d")
    for key in keys:
        prediction = predictions.get(key)
        if prediction is None:
            continue
        prompt = _plus(prompt, prediction.prompt_tokens)
        completion = _plus(completion, prediction.completion_tokens)
        if prediction.latency_s is not None and prediction.status is not Status.FAILED:
            latencies.append(prediction.latency_s)
    p50, p95 = (float(value) for value in np.percentile(latencies, (50, 95))) if latencies else (None, None)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "latency_p50_s": p50,
        "latency_p95_s": p95,
    }


def _plus(total: int | None, more: int | None) -> int | None:
    """The sum of what is known; None where nothing is."""
    return total if more is None else (total or 0) + more
