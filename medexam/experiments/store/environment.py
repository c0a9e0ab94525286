"""What a run really ran on: versions, commit, machine, prices; written to `environment.json`.

No environment variable is read here, so no key can reach a run folder.
"""

import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

from medexam.plugins import __version__
from medexam.serve import EngineInfo
from medexam.serve.engines.litellm_calls import get_litellm
from medexam.specs import ModelSpec

PACKAGES = ("dspy", "litellm", "transformers", "torch", "mlflow", "datasets", "pydantic", "numpy")


def build_environment(
    models: Mapping[str | None, ModelSpec],
    infos: Mapping[str | None, EngineInfo | None],
    before: Mapping[str, Any],
    asked_s: float = 0.0,
    asked: int = 0,
    tokens: Mapping[str | None, tuple[int, int]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Build `environment.json` of a run, `before` being that of its earlier invocations; empty at the first.

    `models` are the cell's own, as None, and the further ones by name; `infos` what answers as each, None where nobody
    was reached. This invocation asked for `asked_s` seconds, and took these tokens of prompts and replies.
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
    own = parts.pop(None)
    return {
        "started_at": before.get("started_at", now),
        "ended_at": now,
        "asked_s": round(before.get("asked_s", 0.0) + asked_s, 3),
        "asked": before.get("asked", 0) + asked,
        "engine": own["engine"],
        "prices": own["prices"],
        **describe_environment(),
        **({"models": parts} if parts else {}),
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
    command = ("git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
