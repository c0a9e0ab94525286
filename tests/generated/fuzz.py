"""Many drawn inputs for every boundary, under a seed that is printed."""

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack, chdir
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings

from generated.boundaries import BOUNDARIES

FREE = settings(derandomize=False, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def search(name: str, number: int, examples: int) -> None:
    """Try drawn inputs of a boundary in a folder of its own; raises the smallest failure."""
    with tempfile.TemporaryDirectory() as place, chdir(place), ExitStack() as closing:
        # Runs are sent to no store: that takes longer than their questions.
        closing.enter_context(pytest.MonkeyPatch.context()).setitem(sys.modules, "mlflow", None)
        inputs, trial = BOUNDARIES[name](Path(place), closing)
        bounded = settings(FREE, max_examples=examples)
        seed(number)(bounded(given(inputs)(trial)))()


def main() -> None:
    """Print a line for each boundary, and what failed; exit code 1 if anything did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=int(os.environ.get("MEDEXAM_EXAMPLES", "1000")))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("boundaries", nargs="*", default=list(BOUNDARIES))
    chosen = parser.parse_args()
    failed = False
    for name in chosen.boundaries:
        began, said = time.monotonic(), "holds"
        try:
            search(name, chosen.seed, chosen.examples)
        except Exception as error:
            failed, said = True, "\n".join(["fails", str(error), *getattr(error, "__notes__", ())])
        sys.stdout.write(f"seed {chosen.seed}, {name}, {time.monotonic() - began:.0f} s: {said}\n")
        sys.stdout.flush()
    sys.exit(failed)


if __name__ == "__main__":
    main()
