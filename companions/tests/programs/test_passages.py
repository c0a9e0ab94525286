"""Programs that see passages: where these stand in a prompt, and what happens where they do not fit."""

from types import SimpleNamespace

from medexam.retrievers import Hit, Passage

LONG = "word " * 200 + "end."
FOUND = [("a", "Potentials", LONG, 5.0), ("b", "", "Short.", 4.0)]
BEFORE = f"Potentials\n{LONG}\n\nShort.\n\n"


def test_a_question_in_words_is_asked_behind_passages(ask_task, tasks) -> None:
    program = {"kind": "by_format"}
    plain = ask_task(program, tasks["list"], "Liver, Spleen")
    hits = [Hit(Passage(name, title, text, "test"), score, 1) for name, title, text, score in FOUND]
    found = SimpleNamespace(find=lambda _: hits)
    asked = ask_task({**program, "retriever": "bm25"}, tasks["list"], "Liver, Spleen", finder=found)
    assert len(asked.turns) == 1
    assert asked.turns == [BEFORE + turn for turn in plain.turns]
    assert [one.id for one in asked.said.passages] == ["a", "b"]
