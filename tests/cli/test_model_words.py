"""`--model` and its sisters: what a user types for a model is understood, shown as a spec, and kept as one."""

import json

import pytest
import yaml
from other_servers import TGI, LlamaServer, Ollama
from provider_wire import ProviderWire, serve_provider
from provider_wires import GPT5, WIRES
from wire_server import Wire, serving

from medexam.errors import SpecError
from medexam.specs import build_cells, load_document
from medexam.specs.model_words import read_model

PROVIDERS = tuple({kind.name: kind for kind in WIRES}.values())
"""A model of each provider that is recorded."""
WORDS = {
    "embedded": {"engine": "embedded"},
    "openai/gpt-4o-mini": {"engine": "litellm", "name": "openai/gpt-4o-mini"},
    "ollama/llama3.2:3b": {"engine": "litellm", "name": "ollama/llama3.2:3b"},
    "together_ai/meta-llama/Llama-3.3-70B": {"engine": "litellm", "name": "together_ai/meta-llama/Llama-3.3-70B"},
    "bedrock/anthropic.claude-v1:0": {"engine": "litellm", "name": "bedrock/anthropic.claude-v1:0"},
    "hf:Qwen/Qwen3-0.6B": {"engine": "embedded", "name": "Qwen/Qwen3-0.6B"},
    "./folder": {"engine": "embedded", "path": "./folder"},
    "~/models/a": {"engine": "embedded", "path": "~/models/a"},
    "model.gguf": {"engine": "embedded", "path": "model.gguf"},
    "models/Q4.GGUF": {"engine": "embedded", "path": "models/Q4.GGUF"},
    "http://127.0.0.1:8000/v1": {"engine": "vllm", "endpoints": ["http://127.0.0.1:8000/v1"]},
    "https://gpu:8000/v1#a/b": {"engine": "vllm", "endpoints": ["https://gpu:8000/v1"], "name": "a/b"},
    "registry:~/servers.json": {"engine": "vllm", "endpoints": ["registry:~/servers.json"]},
    "llama-3.1-8b": {"engine": "vllm", "profile": "llama-3.1-8b"},
    "mine.yaml": {"engine": "vllm", "profile": "mine.yaml"},
    "my_engines:Echo": {"engine": "my_engines:Echo"},
    "./engines.py:Echo": {"engine": "./engines.py:Echo"},
}


@pytest.mark.parametrize(("word", "fields"), WORDS.items(), ids=list(WORDS))
def test_a_word_says_which_model_and_which_engine(word, fields) -> None:
    assert read_model(word) == fields


def test_no_word_that_means_nothing_is_a_model() -> None:
    with pytest.raises(SpecError, match=r"did you mean vllm\? give PROVIDER/MODEL"):
        read_model("vlm")


@pytest.mark.parametrize("kind", PROVIDERS, ids=lambda kind: kind.name)
def test_each_provider_is_asked_by_one_flag(kind: type[ProviderWire], medexam, tmp_path) -> None:
    with serve_provider(kind()) as wire:
        fits = ("--temperature", 1) if isinstance(wire, GPT5) else ()
        code, table, said = medexam("run", "headqa_sample", "--limit", 2, "--model", wire.model_name, *fits)
    assert code == 0, said
    assert "zero_shot  2" in table
    assert f"model: {{engine: litellm, name: {wire.model_name}" in " ".join(said.split()).replace("'", "")


@pytest.mark.parametrize(
    ("server", "engine"), [(Wire(), "vllm"), (Ollama(), "litellm"), (LlamaServer(), "litellm"), (TGI(), "litellm")]
)
def test_the_engine_follows_from_what_answers_at_an_address(server, engine, medexam, tmp_path) -> None:
    with serving(server) as wire:
        address = wire.address
        code, out, said = medexam("run", "headqa_sample", "--limit", 2, "--model", address, "--json")
        assert code == 0, said
        (run,) = json.loads(out)
        (same,) = json.loads(medexam("run", "headqa_sample", "--limit", 2, "--set", f"model={address}", "--json")[1])
    assert same["run_id"] == run["run_id"]
    assert f"engine: {engine}" in said


def test_several_models_at_an_address_are_told_apart_by_name(medexam) -> None:
    with serving(Wire(models=("one", "two"))) as wire:
        code, _, said = medexam("run", "headqa_sample", "--limit", 2, "--model", wire.address)
        assert (code, "serves 2 models (one, two)" in said) == (2, True)
        code, _, said = medexam("run", "headqa_sample", "--limit", 2, "--model", f"{wire.address}#two")
    assert code == 0, said


def test_repeated_flags_are_a_matrix_and_the_kept_spec_asks_the_same(medexam, tmp_path) -> None:
    flags = ("--program", "zero_shot,chain_of_thought", "--language", "en", "--language", "es", "--years", "2016,2017")
    more = ("--model", "openai/gpt-4o-mini", "--temperature", "0.5,0.7", "--samples", 4, "--limit", 3)
    code, out, said = medexam("plan", "headqa_sample", *flags, *more, "--save", "mine.yaml", "--json")
    assert code == 0, said
    cells = json.loads(out)
    assert len(cells) == 8
    assert {cell["language"] for cell in cells} == {"en", "es"}
    assert json.loads(medexam("plan", "mine.yaml", "--json")[1]) == cells
    kept = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    assert kept["model"] == {"engine": "litellm", "name": "openai/gpt-4o-mini"}
    assert kept["matrix"]["dataset.language"] == ["en", "es"]
    assert "as a spec (kept as mine.yaml):\n  name: headqa_sample\n" in said


def test_years_of_one_flag_are_one_run_and_of_two_are_two(medexam) -> None:
    together = json.loads(medexam("plan", "headqa_sample", "--program", "longest", "--years", "2013-2015", "--json")[1])
    assert [cell["questions"] for cell in together] == [72]
    apart = ("--years", "2013-2015", "--years", 2016)
    cells = json.loads(medexam("plan", "headqa_sample", "--program", "longest", *apart, "--json")[1])
    assert [cell["questions"] for cell in cells] == [72, 24]


def test_a_kind_takes_the_program_of_that_kind_in_the_file(medexam) -> None:
    one = json.loads(medexam("plan", "quickstart", "--program", "zero_shot", "--json")[1])
    two = json.loads(medexam("plan", "quickstart", "--program", "zero_shot,few_shot-free", "--json")[1])
    assert [cell["program"] for cell in one] == ["zero_shot-guided"]
    assert [cell["program"] for cell in two] == ["zero_shot-guided", "few_shot"]


def test_a_text_sets_another_model_and_keeps_how_it_is_sampled() -> None:
    document = {
        "name": "s",
        "dataset": "headqa_sample",
        "model": {"engine": "litellm", "name": "openai/a", "endpoints": ["http://h/v1"], "temperature": 0.7, "seed": 3},
    }
    _, (cell,) = build_cells(document, {"model": "anthropic/b"})
    model = cell.model
    assert (model.name, model.endpoints, model.temperature, model.seed) == ("anthropic/b", (), 0.7, 3)
    _, (cell,) = build_cells(document, {"model": "litellm"})
    assert cell.model.endpoints == ("http://h/v1",)
    _, cells = build_cells(load_document("quickstart"), {"model": ["hf:a/b", "./c"], "program": "zero_shot"})
    assert [cell.model.label for cell in cells] == ["b", "c"]


def test_a_table_of_ones_own_stands_where_a_spec_does(medexam, tmp_path) -> None:
    lines = ["question,A,B,C,answer", *(f"Which is {n}?,one {n},two {n},three {n},{'ABC'[n % 3]}" for n in range(12))]
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    code, table, said = medexam("run", "mine.csv", "--program", "longest")
    assert code == 0, said
    assert "longest  12" in table


def test_a_plan_says_which_key_is_missing(medexam, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, out, _ = medexam("plan", "headqa_sample", "--limit", 2, "--model", "openai/gpt-4o-mini")
    assert (code, "needs a key: set OPENAI_API_KEY" in " ".join(out.split())) == (0, True)
