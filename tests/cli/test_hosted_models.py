"""`medexam run --model PROVIDER/MODEL` on every provider's wire: a table, or one line that says what to type."""

import json

import pytest
from provider_wire import ProviderWire, serve_provider
from provider_wires import GPT5, WIRES, Anthropic, Bedrock, Gemini

COMMAND = ("run", "headqa_sample", "--limit", 5, "--model")


def fits(wire: ProviderWire) -> list[str]:
    return ["--set", "model.temperature=1"] if isinstance(wire, GPT5) else []


@pytest.mark.parametrize("kind", WIRES, ids=lambda kind: kind.model_name)
def test_a_run_of_five_questions_ends_in_a_table(kind: type[ProviderWire], medexam) -> None:
    with serve_provider(kind()) as wire:
        code, table, said = medexam(*COMMAND, wire.model_name, *fits(wire))
    assert code == 0, said
    assert "zero_shot  5" in table
    assert "Traceback" not in said


@pytest.mark.parametrize("kind", [Anthropic, GPT5, Gemini])
def test_guided_reasoning(kind: type[ProviderWire], medexam) -> None:
    guided = ("--set", "program.answer_format=guided", "--set", "program.kind=chain_of_thought")
    with serve_provider(kind()) as wire:
        code, _, said = medexam(*COMMAND, wire.model_name, *guided, *fits(wire), "--set", "model.max_tokens=2048")
    assert code == 0, said


def test_a_temperature_that_gpt5_refuses_is_one_line(medexam) -> None:
    with serve_provider(GPT5()) as wire:
        code, _, said = medexam(*COMMAND, wire.model_name)
    assert code == 2
    assert "takes no temperature of 0: set model.temperature: 1" in said.splitlines()[-1]


@pytest.mark.parametrize("fault", ["key", "quota"])
def test_a_wrong_key_and_an_empty_account_are_one_line(fault: str, medexam) -> None:
    with serve_provider(Anthropic(fault=fault)) as wire:
        code, _, said = medexam(*COMMAND, wire.model_name)
    assert code == 2
    assert said.splitlines()[-1].startswith(f"medexam: {wire.model_name} takes no request: ")


def test_the_run_keeps_the_record_and_its_protocol_says_not_seeded(medexam, tmp_path) -> None:
    with serve_provider(Anthropic()) as wire:
        code, _, said = medexam(*COMMAND, wire.model_name, "--set", "model.temperature=0.5")
    assert code == 0, said
    (folder,) = [one.parent for one in (tmp_path / "runs").glob("*/environment.json")]
    record = json.loads((folder / "environment.json").read_text())["engine"]["details"]["capabilities"]
    assert (record["provider"], record["probed"], record["seeds"]) == ("anthropic", True, False)
    (lines,) = (tmp_path / "runs").glob("*/predictions*.jsonl")
    assert not any("seed" in json.loads(line) for line in lines.read_text().splitlines())
    (run,) = json.loads(medexam("report", tmp_path / "runs", "--protocol", "--json")[1])
    assert "seed none, not seeded" in run["protocol"]["decoding"]


def test_doctor_shows_what_a_hosted_model_takes_and_how_to_ask_it(medexam) -> None:
    with serve_provider(GPT5()) as wire:
        code, table, said = medexam("doctor", wire.model_name)
        assert code == 0, said
        command = table.splitlines()[-1].split()
        assert medexam(*command[1:])[0] == 0
    rows = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in table.splitlines() if "│" in line}
    assert (rows["guided"], rows["temperature"], rows["pictures"]) == ("by json_schema", "1 alone", "yes")
    assert rows["price"].startswith("$")


def test_doctor_reads_the_tables_without_a_key(medexam, monkeypatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    code, table, said = medexam("doctor", Anthropic.model_name)
    assert code == 2
    assert "by litellm's tables alone" in table
    assert "not seeded" in table
    assert "set ANTHROPIC_API_KEY" in said.splitlines()[-1]


def test_doctor_as_json(medexam) -> None:
    with serve_provider(Bedrock()) as wire:
        code, document, said = medexam("doctor", wire.model_name, "--json")
    assert code == 0, said
    (model,) = json.loads(document)["models"]
    assert (model["seeds"], model["guided_by"], model["fault"]) == (False, "json_schema", None)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("http://127.0.0.1:1/v1", Anthropic.model_name), "one kind at a time"),
        ((Anthropic.model_name, "--burst", "3"), "--burst"),
        ((Anthropic.model_name, "--identify"), "--identify"),
    ],
)
def test_doctor_takes_no_servers_options_for_a_hosted_model(arguments: tuple[str, ...], told: str, medexam) -> None:
    code, _, said = medexam("doctor", *arguments)
    assert code == 2
    assert told in said


def test_a_plan_says_what_the_tables_know(medexam) -> None:
    code, text, said = medexam("plan", "headqa_sample", "--limit", 5, "--model", Anthropic.model_name)
    assert code == 0, said
    cells = json.loads(medexam("plan", "headqa_sample", "--model", Anthropic.model_name, "--json")[1])
    assert [cell["capabilities"]["seeds"] for cell in cells] == [False]
    assert "anthropic/claude-sonnet-4-5, by litellm's tables: guided: by json_schema; seeds: not seeded" in " ".join(
        text.split()
    )
