"""Programs that see passages: where these stand in a prompt, and what happens where they do not fit."""

from types import SimpleNamespace

import pytest

from medexam.retrievers import Hit, Passage

LONG = "word " * 200 + "end."
FOUND = [("a", "Potentials", LONG, 5.0), ("b", "", "Short.", 4.0)]
BEFORE = f"Potentials\n{LONG}\n\nShort.\n\n"


@pytest.mark.parametrize(("form", "calls"), [("free", 1), ("guided", 3)])
def test_a_question_in_words_is_asked_behind_passages_in_every_call(ask_task, tasks, form, calls) -> None:
    program = {"kind": "by_format", "answer_format": form}
    plain = ask_task(program, tasks["list"], "Liver, Spleen")
    hits = [Hit(Passage(name, title, text, "test"), score, 1) for name, title, text, score in FOUND]
    found = SimpleNamespace(find=lambda _: hits)
    asked = ask_task({**program, "retriever": "bm25"}, tasks["list"], "Liver, Spleen", finder=found)
    assert len(asked.turns) == calls
    assert asked.turns == [BEFORE + turn for turn in plain.turns]
    assert [one.id for one in asked.said.passages] == ["a", "b"]
