"""What a run really ran on: versions, commit, machine; written to `environment.json`.

No environment variable is read here, so no key can reach a run folder.
"""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import medexam

PACKAGES = ("dspy", "litellm", "transformers", "torch", "mlflow", "datasets", "pydantic", "numpy", "scipy")


def describe_environment() -> dict[str, Any]:
    """Versions and machine, as JSON-ready data; a package that is not installed is None."""
    return {
        "medexam": medexam.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git_commit": _git_commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """The commit of the working directory, with `+changes` where files differ from it; None outside a repository."""
    try:
        commit = _git("rev-parse", "HEAD")
        return commit + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603
