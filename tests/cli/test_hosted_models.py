"""`--model`: what a user types for a model is understood, asked on every provider's wire, and kept as a spec."""

import json
import re
import shlex
import sys

import pytest
import yaml
from other_servers import TGI, LlamaServer, Ollama
from provider_wire import ProviderWire, serve_provider
from provider_wires import GPT5, Anthropic, Bedrock, Gemini
from wire_server import Wire, serving

from medexam.specs import build_cells, load_document
from table_cases import read_table

COMMAND = ("run", "headqa_sample", "--limit", 2, "--model")


@pytest.mark.parametrize(*read_table("model_words"))
def test_a_word_says_which_model_and_which_engine(word, fields) -> None:
    _, (cell,) = build_cells({"name": "s", "dataset": "headqa_sample"}, {"model": word})
    model = cell.model.model_dump(mode="json")
    assert {name: model[name] for name in fields} == fields


def test_a_word_sets_another_model_and_keeps_how_it_is_sampled() -> None:
    model = {"engine": "litellm", "name": "openai/a", "endpoints": ["http://h/v1"], "temperature": 0.7, "seed": 3}
    document = {"name": "s", "dataset": "headqa_sample", "model": model}
    _, (cell,) = build_cells(document, {"model": "anthropic/b"})
    found = cell.model
    assert (found.name, found.endpoints, found.temperature, found.seed) == ("anthropic/b", (), 0.7, 3)
    _, cells = build_cells(load_document("quickstart"), {"model": ["hf:a/b", "./c"], "program": "zero_shot"})
    assert [cell.model.label for cell in cells] == ["b", "c"]


@pytest.mark.parametrize("kind", [Anthropic, Bedrock, Gemini, GPT5], ids=lambda kind: kind.name)
def test_each_provider_is_asked_by_one_flag(kind: type[ProviderWire], medexam) -> None:
    with serve_provider(kind()) as wire:
        fits = ("--set", "model.temperature=1") if kind is GPT5 else ()
        code, table, said = medexam(*COMMAND, wire.model_name, *fits)
    assert (code, "zero_shot  2" in table) == (0, True), said
    assert f"model: {{engine: litellm, name: {wire.model_name}" in " ".join(said.split()).replace("'", "")


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (GPT5(), "medexam: openai/gpt-5 takes no temperature of 0: set model.temperature: 1"),
        (Anthropic(fault="key"), f"medexam: {Anthropic.model_name} takes no request: "),
    ],
)
def test_what_a_provider_refuses_is_one_line(server, said, medexam) -> None:
    with serve_provider(server) as wire:
        code, out, err = medexam(*COMMAND, wire.model_name)
    assert (code, out, err.splitlines()[-1].startswith(said)) == (2, "", True), err


def test_doctor_shows_what_a_hosted_model_takes_and_how_to_ask_it(medexam, monkeypatch) -> None:
    with serve_provider(GPT5()) as wire:
        code, table, said = medexam("doctor", wire.model_name)
        assert code == 0, said
        command = shlex.split(table.splitlines()[-1])
        assert medexam(*command[1:])[0] == 0
        (model,) = json.loads(medexam("doctor", wire.model_name, "--json")[1])["models"]
    assert (model["guided_by"], model["fault"]) == ("json_schema", None)
    rows = dict(re.split(r"  +", line.strip(), maxsplit=1) for line in table.splitlines() if "  " in line.strip())
    assert (rows["guided by"], rows["fixed temperature"], rows["sees"]) == ("json_schema", "1.0", "yes")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    code, table, said = medexam("doctor", Anthropic.model_name)
    assert (code, "by litellm's tables alone" in table, bool(re.search(r"seeds +no", table))) == (2, True, True)
    assert "set ANTHROPIC_API_KEY" in said.splitlines()[-1]


def test_doctor_without_a_server_says_what_this_machine_has_and_shows_no_key(medexam, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-shown")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    code, out, said = medexam("doctor", "--json")
    assert code == 0, said
    machine = json.loads(out)["machine"]
    assert {"GPU", "keys", "data sets", "versions", "extra bm25"} <= set(machine)
    assert machine["keys"]["here"] == "OPENAI_API_KEY"
    assert "headqa_study" in machine["data sets"]["here"]
    assert "not-to-be-shown" not in out + medexam("doctor")[1]


@pytest.mark.parametrize("server", [Wire(), Ollama(), LlamaServer(), TGI()])
def test_any_server_is_asked_by_its_address(server, medexam) -> None:
    with serving(server) as wire:
        code, out, said = medexam(*COMMAND, wire.address, "--json")
        assert (code, "engine: vllm" in said) == (0, True), said
        (run,) = json.loads(out)
        (same,) = json.loads(medexam(*COMMAND[:-1], "--set", f"model={wire.address}", "--json")[1])
    assert same["run_id"] == run["run_id"]


def plan(medexam, *words: object) -> list[dict]:
    return json.loads(medexam("plan", *words, "--json")[1])


def test_repeated_flags_are_a_matrix_and_the_kept_spec_asks_the_same(medexam, tmp_path) -> None:
    flags = ("--program", "zero_shot,chain_of_thought", "--language", "en", "--language", "es", "--years", "2016,2017")
    more = ("--model", "openai/gpt-4o-mini", "--set", "model.temperature=[0.5,0.7]", "--set", "program.samples=4")
    cells = plan(medexam, "headqa_sample", *flags, *more, "--limit", 3, "--save", "mine.yaml")
    assert (len(cells), {cell["language"] for cell in cells}) == (8, {"en", "es"})
    assert plan(medexam, "mine.yaml") == cells
    kept = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    assert kept["model"] == {"engine": "litellm", "name": "openai/gpt-4o-mini"}
    assert kept["matrix"]["dataset.language"] == ["en", "es"]


def test_years_of_one_flag_are_one_run_and_a_kind_is_that_of_the_file(medexam) -> None:
    controls = ("headqa_sample", "--program", "longest", "--years", "2013-2015")
    assert [cell["questions"] for cell in plan(medexam, *controls)] == [72]
    assert [cell["questions"] for cell in plan(medexam, *controls, "--years", 2016)] == [72, 24]
    cells = plan(medexam, "quickstart", "--program", "zero_shot,few_shot-free")
    assert [cell["program"] for cell in cells] == ["zero_shot-guided", "few_shot"]


def test_a_misspelt_name_is_told_in_a_plan_and_a_missing_key_before_litellm_is_loaded(medexam, monkeypatch) -> None:
    assert "did you mean gpt-4o-mini" in medexam("plan", "quickstart", "--model", "openai/gpt-4o-mnii")[1]
    monkeypatch.setenv("OPENAI_API_KEY", "")
    monkeypatch.setitem(sys.modules, "litellm", None)
    code, _, err = medexam(
        "run",
        "headqa_sample",
        "--set",
        "models={judge: {engine: litellm, name: openai/gpt-4o-mini}}",
        "--set",
        "program={steps: [{use: zero_shot, model: judge}]}",
    )
    assert (code, "needs a key: set OPENAI_API_KEY" in err) == (2, True)
