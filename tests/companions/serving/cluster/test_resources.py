"""What a job asks of a node, out of a `sinfo` that is a script."""

from pathlib import Path

import pytest

from medexam.companions.serving.cluster.resources import NodeKind, Share, find_nodes, share_of_node
from medexam.companions.serving.launch.profile import load_profile

A100S = NodeKind(128, 1_000_000, 8)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (["128|1000000|gpu:a100:8(S:0-3)"], (A100S,)),
        (["64+|500000+|gpu:4", "96|250000|(null)"], (NodeKind(64, 500_000, 4), NodeKind(96, 250_000, 0))),
        (["32|1000|gpu:a30:2,gpu:v100:2,shard:8"], (NodeKind(32, 1000, 4),)),
        (["slurm_load_partitions: Unable to contact"], ()),
    ],
)
def test_the_kinds_of_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], found: tuple[NodeKind, ...]
) -> None:
    script = tmp_path / "sinfo"
    script.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(rows) + "\nEND\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_nodes("gpu") == found


@pytest.mark.parametrize(
    ("kinds", "gpus", "profile", "share"),
    [
        ((A100S,), 4, "llama-3.1-70b", Share(64, 475_000)),
        ((A100S,), 8, "llama-3.1-70b", Share(128, 950_000)),
        ((A100S, NodeKind(32, 256_000, 4), NodeKind(16, 64_000, 1)), 2, "llama-3.1-8b", Share(16, 121_600)),
        ((NodeKind(16, 64_000, 1),), 4, "llama-3.1-70b", Share(20, 80_000)),
        ((), 4, "llama-3.1-70b", Share(20, 80_000)),
        ((NodeKind(8, 32_000, 0),), 0, "smollm2-cpu", Share(8, 30_400)),
        ((), 0, "smollm2-cpu", Share(4, 16_000)),
    ],
)
def test_the_share_that_the_gpus_are_of_a_node(
    kinds: tuple[NodeKind, ...], gpus: int, profile: str, share: Share
) -> None:
    assert share_of_node(kinds, gpus, load_profile(profile)) == share
