"""Extraction: an answer is always a literal part of its context, or there is none."""

import pytest

import medexam
from medexam.errors import SpecError
from medexam.predictions import Reason, Status

CONTEXT = "Asthma wheezes.  He has no fever. So a cold is likely!"
SPANS = {"dataset": {"kind": "spans"}}


@pytest.fixture
def quote(ask):
    """`quote(reply)` -> what came of a question about a text, with the answer taken from it."""

    def call(reply, context=CONTEXT, language="en", **program):
        row = {"context": context, "question": "A man coughs. What is it?", "answer": context.split()[0]}
        return ask({"kind": "quote", **program}, {"*": reply}, row=row, language=language, **SPANS)

    return call


@pytest.mark.parametrize(
    ("reply", "text", "alignment"),
    [
        ("He has no fever.", "He has no fever", "literal"),
        ("«He has no fever»", "He has no fever", "literal"),
        ("he has no FEVER, so a cold is likely", "He has no fever. So a cold is likely", "aligned"),
        ("<think>Asthma wheezes.</think>So a cold is likely!", "So a cold is likely!", "literal"),
        ({"text": "He has no fever. So a co", "finish_reason": "length"}, "He has no fever. So a", "aligned"),
    ],
)
def test_a_quotation_is_found_in_the_context(quote, reply, text, alignment) -> None:
    asked = quote(reply)
    assert (asked.said.status, asked.said.text, asked.said.alignment) == (Status.ANSWERED, text, alignment)
    (dialogue,), (turn,) = asked.dialogues, asked.turns
    assert (dialogue.sampling["max_tokens"], dialogue.choices) == (512, None)
    start, end = asked.said.span
    assert (turn.split("Text:\n")[1])[start:end] == text
    assert "Question:\nA man coughs. What is it?\n" in turn


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("It is influenza, I believe.", Reason.NOT_IN_CONTEXT),
        ("", Reason.EMPTY),
        ({"text": "The physician argues that the", "finish_reason": "length"}, Reason.TRUNCATED),
    ],
)
def test_a_reply_that_quotes_nothing_is_no_answer(quote, reply, reason) -> None:
    said = quote(reply).said
    assert (said.status, said.reason, said.text, said.span, said.alignment) == (
        Status.UNANSWERED,
        reason,
        None,
        None,
        None,
    )


def test_guided_answers_are_whole_sentences(quote) -> None:
    asked = quote("[2 - 3", answer_format="guided")
    first, last = asked.dialogues
    assert "[1] Asthma wheezes.\n[2] He has no fever.\n[3] So a cold is likely!\n" in asked.turns[0]
    assert "from 1 to 3." in asked.turns[0]
    assert (first.opening, first.choices) == ("[", ("1", "2", "3"))
    assert (last.opening, last.choices) == ("[2 - ", ("2", "3")), "the last does not stand before the first"
    assert (asked.said.text, asked.said.alignment) == ("He has no fever. So a cold is likely!", "literal")
    assert asked.said.reply == "[2 - 3"


def test_a_guided_context_of_one_sentence_and_of_many(quote) -> None:
    one = quote("whatever", "It was hot.", answer_format="guided")
    assert ([each.choices for each in one.dialogues], one.said.text) == ([("1",), ("1",)], "It was hot.")
    context = " ".join(f"Sentence {number}." for number in range(1, 13)).replace(" S", "\nS")
    many = quote("[11 - 12", context, answer_format="guided")
    assert (many.said.text, many.dialogues[1].choices) == ("Sentence 11.\nSentence 12.", ("11", "12"))


def test_words_that_lack_a_way_of_asking_are_refused(tmp_path) -> None:
    (path := tmp_path / "words.yaml").write_text("en: {groups: {quote: '$context'}}")
    medexam.build_program("quote", prompt=str(path))
    with pytest.raises(SpecError, match="has no prompt for sentences"):
        medexam.build_program("quote", prompt=str(path), answer_format="guided")
