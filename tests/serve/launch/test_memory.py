"""The sum of the memory, and who gets which card, out of a `nvidia-smi` that is a script."""

import re
from pathlib import Path

import pytest

from medexam.errors import EngineError
from medexam.serve import Launch, load_profile, plan_server, profile_names
from table_cases import read_table

A100, H100, H200 = 40.0, 79.65, 140.4
"""GiB, as `nvidia-smi` says: 42.9, 85.5 and 150.7 GB."""


def value(launch: Launch, flag: str) -> str | None:
    """What follows a flag on the command line; None if it is not there."""
    return launch.command[launch.command.index(flag) + 1] if flag in launch.command else None


@pytest.mark.parametrize(*read_table("visible_cards"))
def test_cuda_visible_devices(cards, monkeypatch, visible: str, gpus: list[int] | None) -> None:
    cards(A100, A100, A100)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if gpus is None:
        with pytest.raises(EngineError, match=r"needs a GPU|here are"):
            plan_server("qwen3-32b")
    else:
        launch = plan_server("qwen3-32b", flags=["-tp", "2", "--max-model-len", "16384"], printing=True)
        assert [*launch.gpus] == gpus


@pytest.mark.parametrize("says", ["exit 9", "echo 'NVIDIA-SMI has failed'", "echo '0, GPU-0, GB10, [N/A], [N/A]'"])
def test_a_driver_that_fails_is_no_card(cards, tmp_path: Path, says: str) -> None:
    cards(A100)
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    with pytest.raises(EngineError, match=r"needs a GPU.*--slurm.*--print.*smollm2-cpu"):
        plan_server("qwen3-8b")


PER_GPU = re.compile(
    r"([\d.]+) GB of weights \+ ([\d.]+) GB to compute \+ ([\d.]+) GB of cache for one context of (\d+) tokens \+ "
    r"([\d.]+) GB of margin = ([\d.]+) GB <= ([\d.]+) GB .* holds ([\d.]+) whole contexts"
)


def memory(launch: Launch) -> list[float]:
    """The figures of a launch's sum."""
    (note,) = (note for note in launch.notes if "of weights" in note)
    figures = PER_GPU.search(note)
    assert figures is not None, note
    return [float(figure) for figure in figures.groups()]


def test_the_sum(cards) -> None:
    cards(*[A100] * 4)
    weights, computing, context, tokens, margin, needed, usable, contexts = memory(plan_server("llama-3.1-70b"))
    gb = A100 * 2**30 / 1e9
    expected = (141.1 / 4, 256 * 128_256 * 40 / 1e9 + 0.8 + 1.0, 2 * 80 * 8 / 4 * 128 * 2 * 8192 / 1e9, 0.02 * gb)
    assert (weights, computing, context, margin) == pytest.approx(expected, abs=0.051)
    assert (tokens, needed) == (8192, pytest.approx(sum(expected), abs=0.051))
    assert usable == pytest.approx(0.95 * gb, abs=0.051)
    assert contexts == pytest.approx((0.95 * gb - sum(expected)) / expected[2] + 1, abs=0.051)
    cards(*[H100] * 4)
    many = memory(plan_server("llama-3.1-70b", flags=["-tp", "4", "--max-model-len", "8192"]))
    assert many[1] == pytest.approx(1024 * 128_256 * 40 / 1e9 + 1.8, abs=0.051), "vLLM computes more on large cards"
    cards(*[A100] * 16)
    copied = memory(plan_server("llama-3.1-70b", flags=["-tp", "16", "--max-model-len", "8192"]))
    assert copied[2] == pytest.approx(2 * 80 * 1 * 128 * 2 * 8192 / 1e9, abs=0.051), "a head is not cut"


@pytest.mark.parametrize(("gib", "fits"), [(39.5, True), (39.3, True), (39.0, False), (37.2, False)])
def test_what_fits_by_a_hair(cards, gib: float, fits: bool) -> None:
    cards(*[gib] * 4)
    if fits:
        assert plan_server("llama-3.1-70b").gpus == (0, 1, 2, 3)
    else:
        with pytest.raises(EngineError, match=r"llama-3\.1-70b takes 8 x 24 GB"):
            plan_server("llama-3.1-70b")


@pytest.mark.parametrize(*read_table("layouts_of_cards"))
def test_the_layout_for_what_is_here(
    cards, name: str, sizes: list[float], copies: int, parallel: int, context: int
) -> None:
    cards(*sizes)
    launch = plan_server(name, flags=["-dp", str(copies)], printing=True)
    assert launch.gpus == tuple(range(copies * parallel))
    assert value(launch, "--max-model-len") == str(context)
    assert (value(launch, "--tensor-parallel-size") or "1") == str(parallel)


@pytest.mark.parametrize("name", profile_names())
def test_every_shipped_profile_has_a_layout_on_cards_of_each_size(cards, name: str) -> None:
    for gib in (22.5, A100, H100, H200):
        cards(*[gib] * 8)
        launch = plan_server(name, printing=True)
        assert launch.gpus or load_profile(name).size is None


def test_too_few_cards_are_told_in_one_line(cards) -> None:
    cards(A100, A100)
    with pytest.raises(EngineError) as caught:
        plan_server("llama-3.1-70b")
    text = str(caught.value)
    assert text.startswith("llama-3.1-70b takes 8 x 24 GB or 4 x 40 GB or 2 x 80 GB or 2 x 141 GB, free")
    assert "here are GPU 0 (NVIDIA A100, 42.9 of 42.9 GB free), GPU 1" in text
    assert "\n" not in text


def test_a_context_that_does_not_fit_is_refused_with_the_cards_that_it_takes(cards) -> None:
    cards(*[A100] * 4)
    message = r"takes 8 x 40 GB or 4 x 80 GB or 2 x 141 GB, .* ask for a shorter context with -- --max-model-len N"
    with pytest.raises(EngineError, match=message):
        plan_server("llama-3.1-70b", flags=["--max-model-len", "131072"])
    launch = plan_server("llama-3.1-70b", flags=["--max-model-len", "16000"])
    assert launch.command[-2:] == ("--max-model-len", "16000")


def test_cards_that_others_use_are_left_alone(cards, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(*[A100] * 3, used={0: 30_000})
    launch = plan_server("llama-3.1-8b")
    assert launch.gpus == (1,)
    assert memory(launch)[-1] == 2.5
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(EngineError, match=r"free of other programs, and here are GPU 0 .*: stop what else runs"):
        plan_server("llama-3.1-8b")


def test_flags_change_the_layout(cards) -> None:
    cards(*[H100] * 8)
    flags = ["--tensor-parallel-size=8", "--gpu_memory_utilization", "0.9"]
    launch = plan_server("llama-3.1-70b", flags=flags, printing=True)
    assert launch.gpus == tuple(range(8))
    assert launch.command[launch.command.index("--max-model-len") + 1] == "131072"
    with pytest.raises(EngineError, match=r"needs a number: .*many"):
        plan_server("llama-3.1-70b", flags=["-tp", "many"])


@pytest.mark.usefixtures("site")
def test_printing_needs_no_card() -> None:
    launch = plan_server("llama-3.1-70b", printing=True)
    assert launch.gpus == (0, 1, 2, 3)
    assert any("llama-3.1-70b on 4 x 40 GB, per GPU: 35.3" in note for note in launch.notes)


def test_a_model_of_unknown_size_is_left_to_vllm(cards) -> None:
    cards(A100, A100)
    assert plan_server("Org/Model", printing=True).gpus == ()
