"""GPUs out of a `nvidia-smi` that is a script, the sum of the memory, and who gets which card."""

from collections.abc import Callable
from pathlib import Path

import pytest

from medexam.companions.serving.launch.gpus import Gpu, find_gpus
from medexam.companions.serving.launch.memory_fit import check_fit, choose_layout, estimate_memory, fit_lowered
from medexam.companions.serving.launch.placement import place_profile, place_without_profile
from medexam.companions.serving.launch.profile import load_profile
from medexam.companions.serving.launch.settings import ServerSettings
from medexam.errors import EngineError

A100_MIB, H100_MIB = 40_960, 81_559


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a `nvidia-smi` on the PATH that tells of cards of these MiB; `used` are taken by others."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def put(*sizes: int, used: dict[int, int] | None = None, name: str = "NVIDIA A100") -> None:
        taken = used or {}
        rows = [f"{i}, GPU-{i}aaa, {name}, {mib}, {mib - taken.get(i, 3)}" for i, mib in enumerate(sizes)]
        script = tmp_path / "nvidia-smi"
        script.write_text("#!/bin/sh\ncat <<END\n" + "\n".join(rows) + "\nEND\n", encoding="utf-8")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return put


@pytest.fixture
def no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def a100(count: int, gb: float = 42.9) -> list[Gpu]:
    return [Gpu(index, "A100", gb, gb) for index in range(count)]


def test_the_cards_of_this_machine(cards: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    cards(A100_MIB, A100_MIB, used={1: 30_000})
    first, second = find_gpus()
    assert (first.index, first.name, round(first.total_gb, 1)) == (0, "NVIDIA A100", 42.9)
    assert str(second) == "GPU 1 (NVIDIA A100, 11.5 of 42.9 GB free)"


@pytest.mark.parametrize(
    ("visible", "indices"),
    [("2,0", [2, 0]), ("GPU-1a", [1]), ("", []), ("1,9,0", [1]), ("-1", []), ("1,1", [1]), ("MIG-x", [])],
)
def test_cuda_visible_devices(
    cards: Callable[..., None], monkeypatch: pytest.MonkeyPatch, visible: str, indices: list[int]
) -> None:
    cards(A100_MIB, A100_MIB, A100_MIB)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [card.index for card in find_gpus()] == indices


@pytest.mark.parametrize("says", ["exit 9", "echo 'NVIDIA-SMI has failed'", "echo '0, GPU-0, GB10, [N/A], [N/A]'"])
def test_a_driver_that_fails(cards: Callable[..., None], tmp_path: Path, says: str) -> None:
    cards(A100_MIB)
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    assert find_gpus() == ()


@pytest.mark.usefixtures("no_driver")
def test_no_driver() -> None:
    assert find_gpus() == ()
    with pytest.raises(EngineError, match=r"needs a GPU.*--slurm.*--print.*smollm2-cpu"):
        place_profile("qwen3-8b", load_profile("qwen3-8b"))


def test_the_sum() -> None:
    profile = load_profile("llama-3.1-70b")
    found = estimate_memory(profile, profile.layouts[0], 40)
    assert found.weights == pytest.approx(141.1 / 4)
    assert found.context == pytest.approx(2 * 80 * 8 / 4 * 128 * 2 * 8192 / 1e9)
    assert found.activations == pytest.approx(256 * 128_256 * 40 / 1e9)
    assert found.graphs == pytest.approx(0.8)
    rest = 38 - 141.1 / 4 - 256 * 128_256 * 40 / 1e9 - 0.8 - 1.0 - 0.02 * 40
    assert found.contexts == pytest.approx(max(rest, 0) / found.context)
    copied = estimate_memory(profile, profile.layouts[0].model_copy(update={"tensor_parallel": 16}), 40)
    assert estimate_memory(profile, profile.layouts[0], 85.5).sequences == 1024
    assert copied.context == pytest.approx(2 * 80 * 1 * 128 * 2 * 8192 / 1e9), "a head is not cut"


@pytest.mark.parametrize(
    ("name", "found", "replicas", "expected"),
    [
        ("llama-3.1-70b", a100(4), 1, (40, 4, 4)),
        ("llama-3.1-70b", a100(8), 2, (40, 4, 8)),
        ("llama-3.1-70b", a100(4, 85.5), 1, (80, 4, 4)),
        ("llama-3.1-70b", a100(4, 85.5), 2, (80, 2, 4)),
        ("llama-3.1-70b", a100(3, 150.7), 1, (141, 2, 2)),
        ("llama-3.1-8b", a100(1, 34.0), 1, (24, 1, 1)),
        ("medgemma-4b", a100(1, 17.1), 1, (24, 1, 1)),  # smaller than every layout's card, and it fits all the same
    ],
)
def test_the_layout_for_what_is_here(
    name: str, found: list[Gpu], replicas: int, expected: tuple[float, int, int]
) -> None:
    profile = load_profile(name)
    layout, chosen = choose_layout(name, profile, found, replicas=replicas)
    assert (layout.gpu_gb, layout.tensor_parallel, len(chosen)) == expected
    assert check_fit(name, profile, layout, found[0].total_gb).fits


def test_too_few_cards_are_told_with_the_sum_and_the_ways_out() -> None:
    with pytest.raises(EngineError) as caught:
        choose_layout("llama-3.1-70b", load_profile("llama-3.1-70b"), a100(2))
    text = str(caught.value)
    assert text.startswith("llama-3.1-70b wants 4 GPUs of 40 GB or 8 GPUs of 24 GB, and here are GPU 0 (A100, 42.9 of")
    assert "141.1 GB of weights over 2 GPUs = 70.5 GB each: 70.5 GB of weights + 1.3 GB to compute 256" in text
    assert "= 75.9 GB > 40.8 GB (95% of 42.9 GB): use 4 GPUs of that size (-- --tensor-parallel-size 4), or" in text
    assert "\n" not in text


def test_a_context_too_long() -> None:
    profile = load_profile("llama-3.1-70b")
    long = profile.layouts[0].model_copy(update={"max_context": 131_072})
    with pytest.raises(
        EngineError, match=r"use a context of at most \d+ tokens \(--max-model-len (\d+)\), or 8 GPUs"
    ) as told:
        check_fit("llama-3.1-70b", profile, long, 42.9, context_given=True)
    tokens = int(str(told.value).partition("--max-model-len ")[2].partition(")")[0])
    shorter = long.model_copy(update={"max_context": tokens})
    assert estimate_memory(profile, shorter, 42.9).fits
    assert not estimate_memory(profile, shorter.model_copy(update={"max_context": tokens + 512}), 42.9).fits


def test_what_fits_by_a_hair_is_lowered_or_refused() -> None:
    profile = load_profile("llama-3.1-70b")
    layout = profile.layouts[0]
    expected = {42.4: (None, 8192), 41.5: (128, 8192), 41.0: (64, 8192), 40.5: (64, 3072), 39.9: (None, 8192)}
    for gb, lowered in expected.items():
        found = fit_lowered(profile, layout, gb)
        assert (found.layout.sequences, found.layout.max_context) == lowered
        assert found.fits == (gb > 40)
        taken = found.weights + found.activations + found.graphs + found.libraries + found.context
        assert (taken <= 0.95 * gb - 0.02 * gb) == found.fits
    with pytest.raises(EngineError, match=r"0\.8 GB of margin = 39\.9 GB > 38\.5 GB"):
        check_fit("llama-3.1-70b", profile, layout, 40.5, context_given=True)
    assert not fit_lowered(profile, layout.model_copy(update={"sequences": 256}), 41.0, context_given=True).fits


def test_no_layout_for_so_many_nodes() -> None:
    with pytest.raises(EngineError, match="no layout for 5 nodes, only for 1, 2; add one"):
        choose_layout("llama-3.1-70b", load_profile("llama-3.1-70b"), a100(8), nodes=5)


def test_each_replica_has_cards_of_its_own(cards: Callable[..., None]) -> None:
    cards(*[A100_MIB] * 3, used={0: 30_000})
    placed = place_profile("llama-3.1-8b", load_profile("llama-3.1-8b"), ServerSettings(replicas=2))
    assert placed.gpus == ((1,), (2,)), "another process has most of card 0"
    assert "the cache holds 4.9 whole contexts at once" in placed.notes[0]
    assert place_profile("llama-3.1-8b", load_profile("llama-3.1-8b"), ServerSettings(gpus=(2,))).gpus == ((2,),)
    with pytest.raises(EngineError, match=r"no GPU 7 here; there are GPU 0 .*--gpus"):
        place_profile("llama-3.1-8b", load_profile("llama-3.1-8b"), ServerSettings(gpus=(7,)))
    with pytest.raises(EngineError, match=r"with 92% of each free, and here are GPU 0 .*: stop what else runs"):
        place_profile("llama-3.1-8b", load_profile("llama-3.1-8b"), ServerSettings(gpus=(0,)))


def test_flags_change_the_layout(cards: Callable[..., None]) -> None:
    cards(*[H100_MIB] * 8)
    profile = load_profile("llama-3.1-70b")
    placed = place_profile(
        "llama-3.1-70b", profile, flags=["--tensor-parallel-size=8", "--gpu_memory_utilization", "0.9"]
    )
    assert placed.gpus == (tuple(range(8)),)
    assert placed.layout is not None
    assert (placed.layout.memory_share, placed.layout.max_context) == (0.9, 32768)
    with pytest.raises(EngineError, match="takes at most 131072 tokens, not 200000"):
        place_profile("llama-3.1-70b", profile, ServerSettings(max_context=200_000))
    with pytest.raises(EngineError, match="--tensor-parallel-size many: not a number"):
        place_profile("llama-3.1-70b", profile, flags=["-tp", "many"])


@pytest.mark.usefixtures("no_driver")
def test_printing_needs_no_card() -> None:
    placed = place_profile("llama-3.1-70b", load_profile("llama-3.1-70b"), ServerSettings(replicas=2), printing=True)
    assert placed.gpus == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert placed.notes[0].startswith("no GPU here; so this is the layout for 4 x 40 GB, per GPU: 35.3 GB of weights")
    assert place_profile(
        "llama-3.1-70b", load_profile("llama-3.1-70b"), ServerSettings(gpus=(4, 5)), printing=True
    ).gpus == ((4, 5),)
    with pytest.raises(EngineError, match=r"llama-3\.1-8b has no layout for 2 nodes, only for 1; add one"):
        place_profile("llama-3.1-8b", load_profile("llama-3.1-8b"), nodes=2, printing=True)
    with pytest.raises(EngineError, match="no layout for the GPUs that --gpus names; name more of them"):
        place_profile("llama-3.1-70b", load_profile("llama-3.1-70b"), ServerSettings(gpus=(4,)), printing=True)


def test_a_model_without_a_profile(cards: Callable[..., None]) -> None:
    cards(A100_MIB, A100_MIB)
    assert place_without_profile(1, None, []).gpus == (None,)
    assert place_without_profile(2, None, []).gpus == ((0,), (1,))
    assert place_without_profile(1, [1, 0], []).gpus == ((1, 0),)
    with pytest.raises(EngineError, match="2 replicas need 4 GPUs, and this machine has 2"):
        place_without_profile(2, None, ["-tp", "2"])
    with pytest.raises(EngineError, match="3 GPUs cannot be divided evenly among 2 replicas"):
        place_without_profile(2, [0, 1, 2], [])
