"""`medexam run --model PROVIDER/MODEL` on every provider's wire: a table, or one line that says what to type."""

import pytest
from provider_wires import GPT5, WIRES, Anthropic, Gemini, ProviderWire, serve_provider

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
