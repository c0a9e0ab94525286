"""Builds of an index that are killed at drawn moments: what comes out is what an undisturbed build makes."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.chaos
BUILDS = Path(__file__).with_name("killed_builds.py")


def _build(folder: Path, kind: str, seed: int, kills: int) -> tuple[str, str]:
    command = [sys.executable, str(BUILDS), str(folder), kind, str(seed), str(kills)]
    killed, found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return killed, found


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if not path.name.endswith(".lock"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize(("kind", "seeds"), [("flat", 3), ("hnsw", 1)])
def test_a_killed_build_ends_in_the_bytes_of_an_undisturbed_one(tmp_path, kind, seeds) -> None:
    pytest.importorskip("faiss")
    assert _build(tmp_path / "whole", kind, 0, 0) == ("0", "750")
    whole = _hashes(tmp_path / "whole")
    for seed in range(seeds):
        killed, found = _build(tmp_path / f"killed-{seed}", kind, seed, 12)
        assert (int(killed) >= 3, found) == (True, "750")
        hashes = _hashes(tmp_path / f"killed-{seed}")
        assert hashes.keys() == whole.keys()
        # A graph is not the same twice; rows and their description are.
        differing = {name for name in whole if hashes[name] != whole[name]}
        assert differing <= ({"structure.faiss", "manifest.json"} if kind == "hnsw" else set())
