"""Run a command several times while every processor is busy with something else.

    PYTHONPATH=tests python -m suite.busy --times 5 -- python -m pytest tests/ray

Exits with the number of runs that failed.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SPIN = "while True: pass"


@contextmanager
def busy_processors() -> Iterator[None]:
    """Keep as many processes spinning as there are processors."""
    loops = [subprocess.Popen([sys.executable, "-S", "-c", SPIN]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main() -> int:
    """Run the command, and count the runs that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="how often the command is run")
    parser.add_argument("command", nargs="+", help="the command, behind --")
    options = parser.parse_args()
    failed = 0
    with busy_processors():
        for number in range(1, options.times + 1):
            code = subprocess.run(options.command, check=False).returncode
            failed += code != 0
            sys.stderr.write(f"run {number} of {options.times}: {'failed' if code else 'passed'}\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
