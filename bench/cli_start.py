"""How long the command line takes to show something: its help, a control's table, and the table of ten questions asked.

    python bench/cli_start.py [--rounds 5]

`--help` stands beside `python -c pass`. Of the runs, `table_s` is the time to the table on standard output, and `end_s`
that to the end of the command, which then has sent the run to MLflow. The questions are asked of a server that answers
at once (`instant_server.py`). `again` are the same commands with nothing left to ask. The first round is not counted:
it fills the page cache. Medians; on a busy machine `processor_s` tells what the commands themselves took. Prints JSON.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from client_capacity import instant_server

MEDEXAM = str(Path(sys.executable).with_name("medexam"))


class Times(NamedTuple):
    """Of one command, in seconds."""

    table_s: float
    """Until it wrote on its standard output."""
    end_s: float
    processor_s: float


def measure(command: list[str]) -> Times:
    """Run a command to its end."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.read(1)
    table_s = time.perf_counter() - begun
    process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Times(table_s, time.perf_counter() - begun, used.ru_utime + used.ru_stime)


def main() -> None:
    """Measure every row in turn, round after round."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    found: dict[str, list[Times]] = {}
    with instant_server(None) as server, tempfile.TemporaryDirectory() as scratch:
        asked = ["headqa_sample", "--limit", "10"]
        model = ["--set", "model.engine=vllm", "--set", f"model.endpoints=[{server.endpoint}]"]
        for one in range(rounds + 1):
            runs = ["--runs-dir", f"{scratch}/{one}"]
            control = [MEDEXAM, "run", *asked, "--set", "program.kind=random", *runs]
            guided = [MEDEXAM, "run", *asked, "--set", "program.answer_format=guided", *model, *runs]
            commands = {
                "bare_python": [sys.executable, "-c", "print()"],
                "help": [MEDEXAM, "--help"],
                "control": control,
                "control_again": control,
                "questions": guided,
                "questions_again": guided,
            }
            for name, command in commands.items():
                found.setdefault(name, []).append(measure(command))
    print(json.dumps({"rounds": rounds, "load_average": os.getloadavg()[0], **_medians(found)}, indent=1))


def _medians(found: dict[str, list[Times]]) -> dict[str, Any]:
    counted = {name: zip(*times[1:], strict=True) for name, times in found.items()}
    return {
        name: dict(zip(Times._fields, (round(statistics.median(column), 2) for column in columns), strict=True))
        for name, columns in counted.items()
    }


if __name__ == "__main__":
    main()
