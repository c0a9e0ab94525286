"""What a run really ran on, written to `environment.json`, and what it took: tokens, seconds and, with a price, money.

No environment variable is read here, so no key can reach a run folder.
"""

import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

from medexam.measures.results import Metrics
from medexam.plugins import __version__
from medexam.serve import EngineInfo
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.specs import ModelSpec

PACKAGES = ("dspy", "litellm", "transformers", "torch", "mlflow", "datasets", "pydantic", "numpy")


def build_environment(
    models: Mapping[str | None, ModelSpec],
    infos: Mapping[str | None, EngineInfo | None],
    before: Mapping[str, Any],
    machine: Mapping[str, Any],
    asked_s: float = 0.0,
    asked: int = 0,
    tokens: Mapping[str | None, tuple[int, int]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Build `environment.json` of a run, `before` being that of its earlier invocations; empty at the first.

    `models` are the cell's own, as None, and the further ones by name; none of a control. `infos` are what answers as
    each, None where nobody was reached, and `machine` what `describe_environment` says. This invocation asked for
    `asked_s` seconds, and took these tokens of prompts and replies.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    parts: dict[str | None, dict[str, Any]] = {}
    for name, model in models.items():
        info, earlier, used = infos[name], (before.get("models") or {}).get(name) or {}, tokens.get(name, (0, 0))
        parts[name] = {
            "name": model.label,
            "engine": info.model_dump(mode="json", exclude={"identity"}) if info else earlier.get("engine"),
            "prices": list_prices(model) if info or name else None,
            "prompt_tokens": earlier.get("prompt_tokens", 0) + used[0],
            "completion_tokens": earlier.get("completion_tokens", 0) + used[1],
        }
    own = parts.pop(None, {"engine": None, "prices": None})
    return {
        "started_at": before.get("started_at", now),
        "ended_at": now,
        "asked_s": round(before.get("asked_s", 0.0) + asked_s, 3),
        "asked": before.get("asked", 0) + asked,
        "engine": own["engine"],
        "prices": own["prices"],
        **machine,
        **({"models": parts} if parts else {}),
    }


def describe_environment() -> dict[str, Any]:
    """Describe versions and machine as JSON-ready data; a package that is not installed is None.

    The commit is the working directory's, with `+changes` where files differ from it; None outside a repository.
    """
    versions: dict[str, str | None] = dict.fromkeys(PACKAGES)
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    command = ("git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes")
    commit = None
    with suppress(OSError, subprocess.SubprocessError):
        commit = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603
    return {
        "medexam": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions,
        "git_commit": commit,
    }


def list_prices(model: ModelSpec) -> dict[str, float] | None:
    """List US dollars a token, as `prompt_usd` and `completion_usd`, by the spec or litellm's own price list; None
    without.

    In the list only what a provider bills has a price: a model of the `litellm` engine without an endpoint of its own,
    and one of an engine that says so.
    """
    if model.price is not None:
        return dict(zip(("prompt_usd", "completion_usd"), (dollars / 1e6 for dollars in model.price), strict=True))
    if not model.is_billed:
        return None
    try:
        info = get_litellm().get_model_info(model.name)
    except Exception:  # litellm raises nothing more special for a model that its list lacks
        return None
    prices = (info["input_cost_per_token"], info["output_cost_per_token"])
    if not all(prices):
        return None
    prompt_usd, completion_usd = model.ask_engine("list_prices", info) or prices
    return {"prompt_usd": prompt_usd, "completion_usd": completion_usd}


def compute_costs(metrics: Metrics, environment: Mapping[str, Any]) -> dict[str, Any]:
    """Compute what a run took, JSON-ready: `total`, `per_question` and `per_right` of each thing, None if unknown.

    Tokens and money are those of the scored questions whose tokens the server reported; `counted` is their number,
    there only if the server reported no tokens of other replies. Time is that of all invocations, retries and failures
    included, without starting the engine and without scoring; a question's is the mean of all that were asked.
    `environment` may be empty.
    """

    def cost(total: float | None, counted: int | None) -> dict[str, float | None] | None:
        if total is None or not metrics.n:
            return None
        scored_total = total * metrics.n / counted if counted else total
        per_right = scored_total / metrics.right if metrics.right else None
        return {"total": total, "per_question": scored_total / metrics.n, "per_right": per_right}

    prompts, completions = metrics.prompt_tokens_counted, metrics.completion_tokens_counted
    counted = min((count for count in (prompts, completions) if count is not None), default=None)
    thinking = cost(metrics.thinking_tokens or None, completions)
    return {
        "prompt_tokens": cost(metrics.prompt_tokens, prompts),
        "completion_tokens": cost(metrics.completion_tokens, completions),
        **({"thinking_tokens": thinking} if thinking else {}),
        "seconds": cost(environment.get("asked_s") or None, environment.get("asked")),
        "usd": cost(_count_usd(metrics, environment), counted),
        **({} if counted is None else {"counted": counted}),
    }


def _count_usd(metrics: Metrics, environment: Mapping[str, Any]) -> float | None:
    """Count the dollars of all models; None where one that took tokens has no price, and where none has one.

    What the provider counted is the cost.
    """
    if metrics.reported_usd is not None:
        return metrics.reported_usd
    own = {"prices": environment.get("prices")}
    models = [own, *(environment.get("models") or {}).values()]
    usd = []
    for name in ("prompt", "completion"):
        if (total := getattr(metrics, f"{name}_tokens")) is None:
            return None
        own[f"{name}_tokens"] = max(0, total - sum(model[f"{name}_tokens"] for model in models[1:]))
        if any(model[f"{name}_tokens"] and not model["prices"] for model in models):
            return None
        usd += [model[f"{name}_tokens"] * model["prices"][f"{name}_usd"] for model in models if model["prices"]]
    return sum(usd) if usd else None
