"""Many generated inputs for every boundary: `make fuzz` prints a table of inputs and failures.

Hypothesis makes the inputs under a seed that is printed; a failure is counted by its place, and the search goes on.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, chdir
from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings

from generated.boundaries import BOUNDARIES
from generated.boundary import Boundary
from generated.commands import EndError

QUIET = settings(
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
    report_multiple_bugs=False,
)


def fuzz(boundary: Boundary, examples: int, number: int) -> tuple[int, Counter[str], dict[str, str]]:
    """How many inputs were tried, how often each failure came, and an example of each."""
    tried, failures, shown = 0, Counter[str](), dict[str, str]()

    @seed(number)
    @settings(QUIET, max_examples=examples)
    @given(boundary.inputs)
    def search(one: object) -> None:
        nonlocal tried
        tried += 1
        try:
            boundary.trial(one)
        except EndError as error:
            failures[error.kind] += 1
            shown.setdefault(error.kind, f"{one!r:.1500}\n{error}")

    try:
        search()
    except Exception as error:  # the search itself broke off
        failures["the search"] += 1
        shown["the search"] = str(error)
    return tried, failures, shown


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Print the table; exit code 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=int(os.environ.get("MEDEXAM_EXAMPLES", "1000")))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("boundaries", nargs="*", default=list(BOUNDARIES))
    chosen = parser.parse_args()
    all_failures: dict[str, str] = {}
    say(f"seed {chosen.seed}\n\n| boundary | inputs | failures | seconds |\n|---|---|---|---|")
    with patch("medexam.experiments.track.store.send_to_store"):
        for name in chosen.boundaries:
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as place, chdir(place), ExitStack() as closing:
                boundary = BOUNDARIES[name](Path(place), closing)
                tried, failures, shown = fuzz(boundary, chosen.examples, chosen.seed)
            say(f"| {name} | {tried:,} | {failures.total()} | {time.monotonic() - began:.0f} |")
            all_failures |= {f"{name}: {kind} ({failures[kind]})": example for kind, example in shown.items()}
    for kind, example in all_failures.items():
        say(f"\n=== {kind}\n{example[-4000:]}")
    sys.exit(bool(all_failures))


if __name__ == "__main__":
    main()
