"""What a node finds wrong with itself and between it and another, each fault made for real or at the system's edge."""

import json
import socket
import sys
import threading
from pathlib import Path

import pytest

from medexam.errors import EngineError
from medexam.serve import TIMING, JobNode, ServerSettings, check_node

HERE = JobNode("7", "0", "1", 0, 1, "n1", ("n1",))
USUAL = ServerSettings()


def faults(folder: Path, model: str | None = None, servers: ServerSettings = USUAL) -> dict[str, str]:
    return {one.subject: one.fault for one in check_node(HERE, model, folder, servers) if one.fault is not None}


def put_nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, cards: int) -> None:
    rows = "\\n".join(f"{number}, GPU-{number}, NVIDIA A100, 40960, 40950" for number in range(cards))
    script = folder / "nvidia-smi"
    script.write_text(f'#!/bin/sh\nprintf "{rows}\\n"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "SLURM_GPUS_ON_NODE", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_node_without_faults(tmp_path: Path) -> None:
    assert faults(tmp_path) == {}
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_fewer_cards_than_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_nvidia_smi(tmp_path, monkeypatch, 2)
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "4")
    assert faults(tmp_path)["GPUs"].startswith("Slurm gave 4, nvidia-smi shows 2; ask")


def test_a_model_that_fits_over_all_nodes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_nvidia_smi(tmp_path, monkeypatch, 2)
    python = tmp_path / "python"
    python.write_text("""#!/bin/sh\necho '{"found": true, "cpu": false}'\n""", encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(TIMING, "meeting_s", 0.0)
    two = JobNode("7", "0", "1", 1, 2, "n2", ("n1", "n2"))
    (server,) = (one for one in check_node(two, "llama-3.1-70b", tmp_path, ServerSettings()) if one.subject == "server")
    assert server.fault is None
    assert server.observation.startswith("as one server over 2 nodes (--span): ")
    assert "35.3 GB of weights" in server.observation
    assert "llama-3.1-70b takes 8 x 24 GB or 4 x 40 GB" in faults(tmp_path, "llama-3.1-70b")["server"], (
        "on one node it does not fit"
    )


def test_a_node_without_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert faults(tmp_path, "Org/Missing")["model"].startswith("Org/Missing is not in the hub's cache here; fetch it")
    stored = tmp_path / "hub" / "models--Org--Half"
    snapshot = stored / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("abc", encoding="ascii")
    (snapshot / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "b.safetensors"}}))
    assert "b.safetensors: cannot be read: No such file or directory" in faults(tmp_path, "Org/Half")["model"]
    assert faults(tmp_path, "/nowhere/model")["model"].startswith("/nowhere/model: no such folder")


def test_a_port_that_is_taken_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    head = JobNode("7", "0", "2", 0, 2, "n1", ("n1", "n2"))
    first = head.meet(tmp_path)
    with socket.create_server(("127.0.0.1", first.port)):
        met = head.meet(tmp_path)
    assert met.port != first.port
    other = JobNode("7", "0", "2", 1, 2, "n2", ("n1", "n2")).meet(tmp_path)
    assert (other.head, other.port, other.rank, other.interface) == ("127.0.0.1", met.port, 1, "lo")


def test_a_folder_that_the_first_node_does_not_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "meeting_s", 0.3)
    with pytest.raises(
        EngineError, match=r"n2 does not see .*meeting\.json, which n1 writes, within 0 s; name a folder"
    ):
        JobNode("7", "0", "3", 1, 2, "n2", ("n1", "n2")).meet(tmp_path)


def between(node: JobNode, folder: Path) -> tuple[str | None, str]:
    """The fault that a node finds between it and the others, and what it saw."""
    (found,) = (one for one in check_node(node, None, folder, USUAL) if one.subject == "nodes")
    return found.fault, found.observation


def test_two_nodes_reach_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    first, second = (JobNode("7", "0", "1", rank, 2, f"n{rank}", ("n0", "n1")) for rank in (0, 1))
    theirs: list[tuple[str | None, str]] = []
    other = threading.Thread(target=lambda: theirs.append(between(second, tmp_path)))
    other.start()
    assert between(first, tmp_path) == (None, "reached at 127.0.0.1 (lo) by 127.0.0.1")
    other.join()
    assert theirs == [(None, "127.0.0.1 reached from 127.0.0.1 (lo)")]


def test_a_node_that_does_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    monkeypatch.setattr(TIMING, "nodes_s", 0.3)
    fault, _ = between(JobNode("7", "0", "1", 0, 2, "n1", ("n1", "n2")), tmp_path)
    assert (fault or "").startswith("0 of 1 other nodes reached 127.0.0.1 port ")
