"""Puts faults into the package, one at a time, and says which the tests find.

    PYTHONPATH=tests python -m faults --tree CLONE --python .venv/bin/python

CLONE is another clone of the repository, which is changed and put back; so an earlier commit can be asked the same.
With `--contexts .coverage`, a file that `pytest --cov --cov-context=test` wrote there, only tests that ran the faulty
lines are run; else all tests of the folders in `FOLDERS`.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path

FAULTS = Path(__file__).parent / "faults.toml"
FOLDERS = {
    "medexam/datasets": ("tests/datasets", "tests/cli"),
    "medexam/predictions": ("tests/programs", "tests/experiments/run"),
    "medexam/programs": ("tests/programs", "tests/signatures", "tests/experiments/run", "tests/experiments/api"),
    "medexam/serve": ("tests/serve", "tests/embedded"),
    "medexam/measures": ("tests/measures", "tests/experiments/compare"),
    "medexam/errors.py": ("tests/serve", "tests/experiments/store"),
    "medexam/experiments": ("tests/experiments", "tests/cli"),
    "companions/medexam_companions/casimedicos": ("companions/medexam_companions/casimedicos/tests",),
}
"""Folder -> where what it does is tested."""
MOST_TESTS = 400
"""Tests of a line that many ran; those that ran the fewest lines of the file are the likeliest to look at it."""


def main() -> None:
    """Try the faults, and print one line for each and the count."""
    parser = argparse.ArgumentParser(prog="faults", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--tree", type=Path, required=True, help="a clone that may be changed")
    parser.add_argument("--python", default=sys.executable, help="the Python whose medexam is that clone")
    parser.add_argument("--contexts", type=Path, help="which test ran which line, as coverage wrote it there")
    parser.add_argument("--faults", type=int, nargs="+", help="numbers of those to try, from 1")
    parser.add_argument("--json", type=Path, help="where to put what came out")
    options = parser.parse_args()
    results = {}
    for number, fault in enumerate(tomllib.loads(FAULTS.read_text(encoding="utf-8"))["fault"], start=1):
        if options.faults is None or number in options.faults:
            results[number] = found = try_fault(options.tree, options.python, fault, options.contexts)
            sys.stdout.write(f"{number:3} {'found by ' + found if found else 'NOT FOUND'}: {fault['file']}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{sum(map(bool, results.values()))} of {len(results)} faults found\n")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


def try_fault(tree: Path, python: str, fault: dict[str, str], contexts: Path | None) -> str:
    """The test that finds a fault; empty if none does. Raises `ValueError` where its place is not there once."""
    path = tree / fault["file"]
    text = path.read_text(encoding="utf-8")
    if text.count(fault["old"]) != 1:
        raise ValueError(f"{fault['file']} holds {text.count(fault['old'])} times: {fault['old']}")
    begin = text[: text.index(fault["old"])].count("\n") + 1
    lines = range(begin, begin + fault["old"].count("\n") + 1)
    folders = next(tests for folder, tests in FOLDERS.items() if fault["file"].startswith(folder))
    tests = covering(contexts, path, lines) if contexts else list(folders)
    if not tests:
        return ""
    path.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
    try:
        return run(tree, python, tests)
    finally:
        path.write_text(text, encoding="utf-8")


def run(tree: Path, python: str, tests: list[str]) -> str:
    """The first test that fails; empty if all pass."""
    command = [python, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no", "-rfE", *tests]
    path = f"{tree}{os.pathsep}{tree / 'companions'}"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}
    ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode in (0, 5):
        return ""
    if ended.returncode not in (1, 2):
        raise RuntimeError(ended.stdout[-2000:] + ended.stderr[-2000:])
    bad = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return bad[0].split(" ")[1] if bad else f"exit code {ended.returncode}"


def covering(contexts: Path, path: Path, lines: range) -> list[str]:
    """The tests that ran one of these lines."""
    from coverage.numbits import numbits_to_nums

    with sqlite3.connect(contexts) as database:
        rows = database.execute(
            "select context.context, line_bits.numbits from line_bits join file on file.id = file_id "
            "join context on context.id = context_id where file.path = ? and context.context != ''",
            (str(path.resolve()),),
        ).fetchall()
    ran = {
        context.rpartition("|")[0]: numbits_to_nums(bits)
        for context, bits in rows
        if set(numbits_to_nums(bits)) & set(lines)
    }
    return sorted(ran, key=lambda test: len(ran[test]))[:MOST_TESTS]


if __name__ == "__main__":
    main()
