"""Interpreters of their own for peers, since their requirements are not medexam's; made once, in medexam's cache."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from medexam.files import cache_dir

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
"""Pins what a peer and medexam both need."""

LM_EVAL = ("torch==2.13.0", "transformers==5.23.0", "lm-eval[api,hf]==0.4.13")
"""Installed in this order: torch first, so that no other package's range brings in a build for another device."""
INSPECT = ("openai==3.54.0", "inspect-ai==0.3.285")


def find_python(pins: Sequence[str], given: Path | None, *, constrained: bool = True) -> Path:
    """The interpreter that has these packages: the one given, or that of an environment made for them in the cache.

    `constrained` keeps what medexam needs too at medexam's versions. Raises `RuntimeError` where the environment cannot
    be made.
    """
    if given is not None:
        return given
    package, _, version = pins[-1].partition("==")
    folder = cache_dir() / package.partition("[")[0] / version
    python, finished, log_file = folder / "bin" / "python", folder / ".finished", folder.parent / f"{version}.log"
    if finished.is_file() and finished.read_text(encoding="utf-8").split() == list(pins):
        return python
    print(f"installing {pins[-1]} into {folder}", file=sys.stderr)
    install = [str(python), "-m", "pip", "install", "--no-compile"]
    steps = [[sys.executable, "-m", "venv", "--clear", str(folder)], [*install, "--upgrade", "pip"]]
    steps += [[*install, *(["-c", str(CONSTRAINTS)] if constrained else []), pin] for pin in pins]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("w", encoding="utf-8") as log:
        for step in steps:
            if subprocess.run(step, stdout=log, stderr=log).returncode:
                raise RuntimeError(f"{' '.join(step)} failed, see {log_file}")
    finished.write_text("\n".join(pins), encoding="utf-8")
    return python
