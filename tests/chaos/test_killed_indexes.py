"""Builds of an index that are killed: what comes out is what an undisturbed build makes."""

import hashlib
import subprocess
import sys
from pathlib import Path

BUILDS = Path(__file__).with_name("killed_builds.py")


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if not path.name.endswith(".lock"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_killed_build_ends_in_the_bytes_of_an_undisturbed_one(tmp_path: Path) -> None:
    command = [sys.executable, str(BUILDS), str(tmp_path), "1", "4", "7"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "750"), done.stderr
    assert hashes(tmp_path / "killed") == hashes(tmp_path / "whole")
