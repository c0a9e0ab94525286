"""A Python whose vllm is not the real one, a model folder, and a `nvidia-smi` that tells of cards."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_vllm import write_model_folder

OURS = ("VLLM_", "HF_", "NCCL_", "GLOO_", "CUDA_", "MEDEXAM_VLLM")


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`python(cpu=True)`: a Python that says it has the CPU build of vllm. No other program is on the PATH."""
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tmp_path))
    script = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(script))

    def put(*, cpu: bool) -> None:
        script.write_text(f'#!/bin/sh\necho \'{{"found": true, "cpu": {str(cpu).lower()}}}\'\n', encoding="utf-8")
        script.chmod(0o755)

    return put


@pytest.fixture
def site(python: Callable[..., None]) -> None:
    """A Python that has a vllm, no card, and no variable of the user's."""
    python(cpu=False)


@pytest.fixture
def model(site: None, tmp_path: Path) -> Path:
    """A model folder."""
    return write_model_folder(tmp_path)


@pytest.fixture
def cpu_build(model: Path, python: Callable[..., None]) -> Path:
    """The same, with a vllm that was installed as its CPU build."""
    python(cpu=True)
    return model


@pytest.fixture
def cards(site: None, tmp_path: Path) -> Callable[..., None]:
    """`cards(40.0, 40.0)`: a `nvidia-smi` that tells of cards of so many GiB; `used` are taken by others."""

    def put(*sizes: float, used: dict[int, int] | None = None, name: str = "NVIDIA A100") -> None:
        mib = [round(1024 * size) for size in sizes]
        taken = used or {}
        rows = "\n".join(f"{i}, GPU-{i}aaa, {name}, {all_}, {all_ - taken.get(i, 3)}" for i, all_ in enumerate(mib))
        script = tmp_path / "nvidia-smi"
        script.write_text(f"#!/bin/sh\necho '{rows}'\n", encoding="utf-8")
        script.chmod(0o755)

    return put
