"""The prompts of programs in MLflow's registry are those that the model reads."""

import pytest

from medexam.experiments.track.prompts import program_prompts
from medexam.specs import build_cells

FALLBACK = {
    "name": "fallback",
    "steps": [
        {"use": "zero_shot"},
        {"unless": "answer", "do": [{"ask": "question, options -> answer: int", "by": "chain_of_thought"}]},
    ],
}
SEARCHING = {
    "name": "searching",
    "retriever": {"kind": "bm25"},
    "steps": [{"retrieve": "question"}, {"ask": "question, passages -> answer: int"}],
}


def prompts(program) -> dict:
    document = {"name": "x", "dataset": {"name": "headqa_sample"}, "program": program}
    _, (cell,) = build_cells(document, {"model.temperature": 0.7})
    prefix = f"x-{cell.program.label}-en"
    return {name.removeprefix(prefix): turns for name, turns in program_prompts(cell, cell.program.label).items()}


def test_a_used_program_has_its_own_prompt() -> None:
    found = prompts(FALLBACK)
    assert list(found) == ["-zero_shot", "-answer.predict"]
    assert found["-zero_shot"] == prompts("zero_shot")[""]
    assert "[[ ## options ## ]]\n{{options}}" in found["-answer.predict"][-1]["content"]


@pytest.mark.parametrize("settings", [{}, {"reader": "some/reader"}])
def test_a_question_behind_passages_has_the_prompt_that_it_is_asked_in(settings) -> None:
    (turns,) = prompts({"kind": "retrieve_verify", **settings}).values()
    assert turns == prompts("retrieve_then_answer")[""]


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (SEARCHING, ["-answer"]),
        ({"kind": "iterative_retrieval"}, ["-answer"]),
        ({"kind": "chain_of_thought", "answer_after_budget": True}, [""]),
        ({"kind": "retrieve_then_answer", "cite": True, "answer_format": "guided"}, ["-respond", "-cite"]),
        ({"kind": "likelihood", "read": "label", "orders": "cyclic"}, [""]),
        ({"kind": "likelihood", "read": "label", "norm": "pmi"}, ["-weigh_alone", "-weigh"]),
        ({"kind": "zero_shot", "samples": 3, "orders": "cyclic"}, [""]),
    ],
)
def test_each_predictor_of_the_question_has_a_prompt(program, names) -> None:
    found = prompts(program)
    assert list(found) == names
    assert all("Prediction(" not in str(turns) for turns in found.values())
