"""Which runs a report sets against each other, and the answers that flip between them."""

import re

import medexam

ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
REASONING, LIKELIHOOD = {"kind": "chain_of_thought"}, {"kind": "likelihood"}
RETRIEVING = {"kind": "retrieve_then_answer"}


def compared(paths, tmp_path) -> dict[str, list[str]]:
    """Baseline -> the programs that its table compares with it."""
    medexam.report(*paths, markdown=tmp_path / "report.md")
    tables = re.findall(r"(?m)^## Against (.+?) · .*\n\n.*\n.*\n((?:\|.*\n)+)", (tmp_path / "report.md").read_text())
    return {name: [row.split(" | ")[0].strip("| ") for row in rows.splitlines()] for name, rows in tables}


def test_a_run_is_compared_with_the_program_that_asks_alike(make_run, passages, tmp_path) -> None:
    plain = [make_run(program, "rw") for program in (ZERO_SHOT, GUIDED, REASONING, LIKELIHOOD)]
    with_passages = [
        make_run(program, "r", extra=passages)
        for program in (
            RETRIEVING,
            RETRIEVING | {"k": 3},
            RETRIEVING | {"answer_format": "guided"},
            RETRIEVING | {"then": "chain_of_thought"},
            LIKELIHOOD | {"context": "retrieved"},
        )
    ]
    assert compared([*with_passages, *plain], tmp_path) == {
        "zero_shot": ["retrieve_then_answer-medcpt", "retrieve_then_answer-medcpt-k3"],
        "zero_shot-guided": ["retrieve_then_answer-guided-medcpt"],
        "chain_of_thought": ["retrieve_then_answer-chain_of_thought-medcpt"],
        "likelihood-option_text": ["likelihood-option_text-medcpt"],
    }


def test_where_none_asks_alike_every_run_of_the_model_is_a_baseline(make_run, passages, tmp_path) -> None:
    runs = [make_run(GUIDED, "rw"), make_run(REASONING, "rw"), make_run(RETRIEVING, "r", extra=passages)]
    assert compared(runs, tmp_path) == {
        "zero_shot-guided": ["retrieve_then_answer-medcpt"],
        "chain_of_thought": ["retrieve_then_answer-medcpt"],
    }


def test_another_model_or_language_a_control_and_mixed_models_are_no_baseline(make_run, passages, tmp_path) -> None:
    models = iter((["org/A"] * 15 + ["org/B"] * 5) * 2)
    runs = [
        make_run(ZERO_SHOT, "r", model={"name": "some/other"}),
        make_run(ZERO_SHOT, "r", language="es"),
        make_run({"kind": "random"}, "r"),
        make_run(REASONING, "r", extra=lambda _: {"model": next(models)}),
        make_run(RETRIEVING, "r", extra=passages),
        make_run(RETRIEVING, "r", extra=lambda question: {"model": next(models), **passages(question)}),
    ]
    assert compared(runs, tmp_path) == {}


def test_flips_are_counted_over_the_questions_that_both_runs_scored(make_run, passages, tmp_path) -> None:
    plain = make_run(ZERO_SHOT, "rrwuf", years=[2013])
    retrieving = make_run(RETRIEVING, "rwrwr", extra=passages)
    medexam.report(plain, retrieving, markdown=tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    # Of ten questions that both were asked, two failed in one; 2013's others: right twice, lost, gained, wrong twice.
    assert "| retrieve_then_answer-medcpt | 8 | 2 | 2 | 2 | 2 | 1.000 |" in text
    assert "missing in either run: 2." in text
    lost, gained = re.findall(r"(?m)^### .*: (right to wrong|wrong to right) \((.*)\)\n\n.*\n.*\n(.*)\n", text)
    assert lost == ("right to wrong", "2", "| `headqa-v1/2013/biology/2` | `wiki/2`, `wiki/0` |")
    assert gained == ("wrong to right", "2", "| `headqa-v1/2013/biology/3` | `books/3`, `wiki/0` |")


def test_ten_questions_of_each_flip_are_named(make_run, passages, tmp_path) -> None:
    medexam.report(make_run(ZERO_SHOT, "r"), make_run(RETRIEVING, "w", extra=passages), markdown=tmp_path / "report.md")
    _, _, lost = (tmp_path / "report.md").read_text().partition("right to wrong (first 10 of 20)\n\n")
    assert lost.partition("\n\n")[0].count("\n| `") == 10
