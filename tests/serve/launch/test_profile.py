"""Profiles: the shipped ones hold together, and a wrong one says in one line what is wrong where."""

import re
from pathlib import Path

import pytest

from medexam.errors import SpecError
from medexam.serve import load_profile, plan_server, profile_names, with_profile
from medexam.specs import ModelSpec
from table_cases import read_table

OF_THE_PAPER = {"llama-3.1-8b": 1, "llama-3.1-70b": 4, "mistral-7b-v0.3": 1, "mixtral-8x7b": 4}
"""GPUs of 40 GB that the HEAD-QA v2 paper ran each model on."""

GOOD = """
model: Org/Tiny
revision: abc
size: {weights_gb: 2, layers: 2, kv_heads: 2, head_dim: 8, context_limit: 4096}
flags: {--dtype: float16}
"""


def test_the_shipped_names() -> None:
    assert {*OF_THE_PAPER, "qwen3-8b", "gemma-3-27b", "gpt-oss-120b", "medgemma-4b", "smollm2-cpu"} <= {
        *profile_names()
    }
    for name in profile_names():
        profile = load_profile(name)
        pinned = re.fullmatch(r"[0-9a-f]{40}", profile.revision or "")
        assert pinned or profile.size is None or "--dtype" not in profile.flags


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_the_papers_models_take_the_papers_cards(cards, name: str) -> None:
    cards(*[40.0] * 4)
    assert len(plan_server(name).gpus) == OF_THE_PAPER[name]


@pytest.mark.parametrize(*read_table("refused_profiles"))
def test_a_file_that_says_something_else(tmp_path: Path, change: list[str], message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace(*change), encoding="utf-8")
    with pytest.raises(SpecError, match=message) as caught:
        load_profile(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_spec_takes_name_and_revision_of_its_profile(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD, encoding="utf-8")
    filled = with_profile(ModelSpec(engine="vllm", profile=str(path)))
    assert (filled.name, filled.revision) == ("Org/Tiny", "abc")
    labels = [ModelSpec(engine="vllm", profile=name).label for name in (str(path), "llama-3.1-8b")]
    assert labels == ["mine", "llama-3.1-8b"]
    kept = with_profile(ModelSpec(engine="vllm", profile=str(path), name="mine", revision="main"))
    assert (kept.name, kept.revision) == ("mine", "main")
    plain = ModelSpec(engine="vllm", name="other")
    assert with_profile(plain) is plain
    assert with_profile(ModelSpec(engine="vllm", profile="smollm2-cpu")).name == "SmolLM2-135M-Instruct"


PARAMETERS = {
    "llama-3.1-8b": (8.03e9, 2 * 128_256 * 4096),
    "llama-3.1-70b": (70.55e9, 2 * 128_256 * 8192),
    "qwen3-8b": (8.19e9, 2 * 151_936 * 4096),
    "qwen3-32b": (32.76e9, 2 * 151_936 * 5120),
}
"""Parameters of a model, and those of its two embeddings, which quantisation leaves in 16 bits."""
BYTES = {"fp8": 1.0, "awq": 0.52}
"""Bytes of a quantised weight; those of 4 bits have a scale and a zero for every 128."""


@pytest.mark.parametrize("base", PARAMETERS)
@pytest.mark.parametrize("variant", BYTES)
def test_quantised_weights_take_less(base: str, variant: str) -> None:
    whole, quantised = load_profile(base), load_profile(f"{base}-{variant}")
    parameters, embeddings = PARAMETERS[base]
    weights_gb = ((parameters - embeddings) * BYTES[variant] + 2 * embeddings) / 1e9
    assert quantised.size.weights_gb == pytest.approx(weights_gb, rel=0.02)
    assert (quantised.size.layers, quantised.size.kv_heads) == (whole.size.layers, whole.size.kv_heads)
    assert quantised.name == quantised.model != whole.model
