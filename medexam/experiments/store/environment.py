"""What a run really ran on: versions, commit, machine, prices; written to `environment.json`.

No environment variable is read here, so no key can reach a run folder.
"""

import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from medexam.plugins import __version__
from medexam.serve import EngineInfo
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.specs import ModelSpec

PACKAGES = ("dspy", "litellm", "transformers", "torch", "mlflow", "datasets", "pydantic", "numpy")


@dataclass
class Invocation:
    """What one invocation of a run took while it asked."""

    seconds: float = 0.0
    questions: int = 0
    """Questions, failed ones included."""
    further_tokens: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name of each further model -> the tokens of its prompts and of its replies, as far as they are reported."""


def build_environment(
    model: ModelSpec, info: EngineInfo | None, before: Mapping[str, Any], invocation: Invocation
) -> dict[str, Any]:
    """Build `environment.json` of a run, `before` being that of its earlier invocations; empty at the first.

    `info` None stands for a run that asks no model.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {
        "started_at": before.get("started_at", now),
        "ended_at": now,
        "asked_s": round(before.get("asked_s", 0.0) + invocation.seconds, 3),
        "asked": before.get("asked", 0) + invocation.questions,
        "engine": info.model_dump(mode="json", exclude={"identity"}) if info else None,
        "prices": list_prices(model) if info else None,
        **describe_environment(),
    }


def describe_further(
    model: ModelSpec, info: EngineInfo | None, before: Mapping[str, Any] | None, tokens: tuple[int, int]
) -> dict[str, Any]:
    """Describe a further model as JSON-ready data: what answered, its prices, and its tokens in all invocations.

    `before` is what earlier invocations wrote, `tokens` those of prompts and of replies in this one.
    """
    earlier = before or {}
    return {
        "name": model.label,
        "engine": info.model_dump(mode="json", exclude={"identity"}) if info else earlier.get("engine"),
        "prices": list_prices(model),
        "prompt_tokens": earlier.get("prompt_tokens", 0) + tokens[0],
        "completion_tokens": earlier.get("completion_tokens", 0) + tokens[1],
    }


def describe_environment() -> dict[str, Any]:
    """Describe versions and machine as JSON-ready data; a package that is not installed is None."""
    return {
        "medexam": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git_commit": _git_commit(),
    }


def list_prices(model: ModelSpec) -> dict[str, float] | None:
    """List US dollars a token, as `prompt_usd` and `completion_usd`, by the spec or litellm's own price list; None
    without.

    In the list only what a provider bills has a price: a model of the `litellm` engine without an endpoint of its own,
    and one of an engine that says so.
    """
    if model.price is not None:
        prompt_usd, completion_usd = (dollars / 1e6 for dollars in model.price)
        return {"prompt_usd": prompt_usd, "completion_usd": completion_usd}
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


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """Read the working directory's commit, with `+changes` where files differ from it; None outside a repository."""
    try:
        commit = _git("rev-parse", "HEAD")
        return commit + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603
