"""How long `medexam --help` takes, beside `python -c pass` in the same run. Prints JSON.

python bench/cli_start.py
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15


def median_s(command: list[str]) -> float:
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main() -> None:
    command = str(Path(sys.executable).with_name("medexam"))
    bare = median_s([sys.executable, "-c", "pass"])
    shown = median_s([command, "--help"])
    print(json.dumps({"help_s": round(shown, 3), "bare_python_s": round(bare, 3), "runs": RUNS}))


if __name__ == "__main__":
    main()
