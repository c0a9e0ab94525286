"""A model's own files as facts: of real configurations, in a folder and in a cache of the hub's layout."""

import json
from pathlib import Path
from typing import Any

import pytest

from medexam.companions.serving.launch.memory_fit import card_memory, estimate_memory
from medexam.companions.serving.launch.model_facts import find_snapshot, profile_of
from medexam.companions.serving.launch.profile import load_profile
from medexam.companions.serving.launch.settings import ServerSettings
from medexam.companions.serving.launch.vllm_command import plan_servers

LLAMA_70B = {
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "hidden_size": 8192,
    "vocab_size": 128_256,
    "max_position_embeddings": 131_072,
    "torch_dtype": "bfloat16",
}


def write_model(folder: Path, config: dict[str, Any], *sizes: int, indexed: bool = False) -> Path:
    """A model folder whose weight files have these sizes, as holes."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    names = [f"model-{number}.safetensors" for number in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        with (folder / name).open("wb") as stream:
            stream.truncate(size)
    if indexed:
        (folder / "consolidated.safetensors").write_bytes(b"the same weights once more")
        index = {"weight_map": {f"layer.{name}": name for name in names}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


@pytest.mark.parametrize("indexed", [True, False])
def test_the_facts_are_those_of_the_profile(tmp_path: Path, indexed: bool) -> None:
    folder = write_model(tmp_path / "llama", LLAMA_70B, *[47_033_333_333] * 3, indexed=indexed)
    found, shipped = profile_of("llama", folder), load_profile("llama-3.1-70b")
    assert found is not None
    for field in ("layers", "kv_heads", "head_dim", "vocabulary", "context_limit"):
        assert getattr(found, field) == getattr(shipped, field)
    assert found.weights_gb == pytest.approx(141.1, abs=0.01)
    assert [(one.gpu_gb, one.tensor_parallel) for one in found.layouts] == [(80, 2), (40, 4), (24, 8), (141, 2)]
    for layout in found.layouts:
        assert estimate_memory(found, layout, card_memory(layout.gpu_gb)).fits
    two = profile_of("llama", folder, nodes=2)
    assert two is not None
    assert {(one.nodes, one.pipeline_parallel) for one in two.layouts} == {(2, 2)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"torch_dtype": "float32"}, {"weights_gb": 4.0}),
        ({"num_key_value_heads": None}, {"kv_heads": 64}),
        ({"head_dim": 256}, {"head_dim": 256}),
        ({"max_position_embeddings": 4096}, {"context_limit": 4096}),
    ],
)
def test_configurations_that_say_it_otherwise(tmp_path: Path, change: dict, expected: dict) -> None:
    found = profile_of("m", write_model(tmp_path / "m", {**LLAMA_70B, **change}, 8_000_000_000))
    assert found is not None
    assert {field: getattr(found, field) for field in expected} == expected
    nested = profile_of("n", write_model(tmp_path / "n", {"text_config": {**LLAMA_70B, **change}}, 8_000_000_000))
    assert nested is not None
    assert nested.layouts == found.layouts


@pytest.mark.parametrize("config", [{}, {"num_hidden_layers": "many"}, []])
def test_files_that_say_too_little(tmp_path: Path, config) -> None:
    assert profile_of("m", write_model(tmp_path / "m", config, 1000)) is None
    assert profile_of("n", tmp_path / "nowhere") is None
    assert profile_of("e", write_model(tmp_path / "e", LLAMA_70B)) is None


def test_a_model_of_the_hubs_cache_is_laid_out_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    stored = tmp_path / "hub" / "models--Org--Large"
    write_model(stored / "snapshots" / "abc", LLAMA_70B, 141_100_000_000)
    assert find_snapshot("Org/Large") is None
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("abc", encoding="ascii")
    assert find_snapshot("Org/Large") == find_snapshot("Org/Large", "abc") == stored / "snapshots" / "abc"
    assert find_snapshot("Org/Other") is None
    (launch,) = plan_servers("Org/Large", ServerSettings(), printing=True)
    assert launch.gpus == (0, 1)
    assert "--tensor-parallel-size 2" in str(launch)
    assert "GB of weights" in launch.notes[0]
