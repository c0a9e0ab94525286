"""What is read out of replies, of true/false and of multiple choice: the strict reading and the kind one."""

import pytest

from medexam.companions.cliniqlink.measures.closed import (
    Match,
    forgiven_choice,
    forgiven_verdict,
    gold_option,
    match_gold,
    read_verdict,
    verdict_is_right,
)
from medexam.companions.cliniqlink.measures.texts import drop_assistant, is_echo, normalise_answer, reply_text
from medexam.text import option_letters


@pytest.mark.parametrize(
    ("text", "norm"),
    [
        ("1.5 mg", "15 mg"),
        ("<5%", "5%"),
        (">5%", "5%"),
        ("½", "12"),
        ("10²", "102"),
        ("nefropatía", "nefropatia"),
        ("a + b = c | 3° $", "a b c 3"),
        ("3% - 30%", "3% 30%"),
        ("A, B: C", "a, b: c"),
        ("mL/kg [x] {y} (z)_w;v\\u", "ml kg x y z w v u"),
        ("en\u2013dash em\u2014dash", "en dash em dash"),
        ("  two\n\tlines ", "two lines"),
        ("STRASSE ß", "strasse ss"),
        ("+", ""),
    ],
)
def test_normalised_texts(text: str, norm: str) -> None:
    assert normalise_answer(text) == norm


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (" True ", "True"),
        (["a", "b"], "a b"),
        ([], ""),
        ({"generated_text": "g", "text": "t"}, "g"),
        ({"text": " t "}, "t"),
        ({}, ""),
        ([{"generated_text": "True"}], "True"),
        ([{"text": "True "}, "because"], "True because"),
        ([[{"generated_text": "<think>b</think> False"}]], "False"),
        ("<think>a\nb</think> x <THINK>c</Think>", "x"),
        ("<think>never ends. True", "<think>never ends. True"),
        ("<think>a</think><think>b", "<think>b"),
    ],
)
def test_reply_texts(reply, text: str) -> None:
    assert reply_text(reply) == text


@pytest.mark.parametrize("reply", [None, 3, b"True"])
def test_other_replies_are_refused(reply) -> None:
    with pytest.raises(TypeError, match=type(reply).__name__):
        reply_text(reply)


def test_small_rules_of_texts() -> None:
    assert drop_assistant("Assistant\nTrue, my assistants") == "True, my assistants"
    assert is_echo("What is it?", " what is IT? ")
    assert not is_echo("What is it?", "what is it")
    assert option_letters(["x"] * 29)[-4:] == ["Z", "[", "\\", "]"]


@pytest.mark.parametrize(
    ("text", "said", "trailing", "forgiven"),
    [
        ("True", "true", False, True),
        (" false", "false", False, False),
        ("TRUE.", "true", True, True),
        ("Truely not", "true", True, True),
        ("True or False", "true", True, True),
        ("False, because", "false", True, False),
        ("The answer is True", None, False, True),
        ("The correct answer is: **True**.", None, False, True),
        ("Final Answer: False", None, False, False),
        ("Answer: False. No, the answer is true", None, False, True),
        ("The statement is true.", None, False, True),
        ("**True**", None, False, True),
        ('"False"', None, False, False),
        ("Yes", None, False, True),
        ("No.", None, False, False),
        ("T", None, False, True),
        ("F", None, False, False),
        ("T-cells are not", None, False, True),
        ("Truth is hard", None, False, None),
        ("Fetal tones are heard", None, False, None),
        ("Nobody knows", None, False, None),
        ("", None, False, None),
    ],
)
def test_verdicts(make_item, text: str, said: str | None, trailing: bool, forgiven: bool | None) -> None:
    verdict = read_verdict(text)
    assert (verdict.word, verdict.trailing) == (said, trailing)
    yes, no = make_item("true_false", " True "), make_item("true_false", "false")
    assert verdict_is_right(yes, verdict.word) == (said == "true")
    assert (forgiven_verdict(yes, text), forgiven_verdict(no, text)) == (forgiven is True, forgiven is False)


OPTIONS = ["10% - 40%", "Gestational Age", "Chest X-ray", "Type of study (ordered)"]


@pytest.mark.parametrize(
    ("gold", "text", "match", "forgiven"),
    [
        ("Chest X-ray", "chest x ray", Match.FULL, True),
        ("C", "Chest X-ray.", Match.FULL, True),
        ("c", "Chest X-ray", Match.FULL, True),
        ("Chest X-ray", "C", Match.LETTER, True),
        ("Chest X-ray", "c.", Match.LETTER, True),
        ("Chest X-ray", "(C)", Match.LETTER, True),
        ("Gestational Age", "B: Gestational Age", Match.MIXED, True),
        ("Chest X-ray", "C: Chest X-ray", Match.NONE, True),
        ("Gestational Age", "B. Gestational Age", Match.NONE, True),
        ("Gestational Age", "B) gestational age", Match.NONE, True),
        ("Gestational Age", "**Gestational Age**", Match.FULL, True),
        ("Gestational Age", "The answer is B", Match.NONE, True),
        ("Gestational Age", "The correct answer is: Gestational Age.", Match.NONE, True),
        ("Gestational Age", "Because of it.\nFinal answer: **B**", Match.NONE, True),
        ("Gestational Age", "Gestational Age\n\nIt is known.", Match.NONE, True),
        ("Gestational Age", "C: Gestational Age", Match.NONE, True),
        ("Gestational Age", "The answer is C", Match.NONE, False),
        ("Gestational Age", "A", Match.NONE, False),
        ("Gestational Age", "E", Match.NONE, False),
        ("Gestational Age", "A gestational matter", Match.NONE, False),
        ("Gestational Age", "", Match.NONE, False),
        ("E", "e", Match.FULL, True),
    ],
)
def test_choices(make_item, gold: str, text: str, match: Match, forgiven: bool) -> None:
    item = make_item("multiple_choice", gold, OPTIONS)
    assert match_gold(item, text) is match
    assert forgiven_choice(item, text) is forgiven


def test_a_gold_letter_stands_for_its_option_even_where_an_option_is_that_letter(make_item) -> None:
    assert gold_option(make_item("multiple_choice", "B", ["B", "A"])) == "A"
    assert gold_option(make_item("multiple_choice", "[", [str(n) for n in range(30)])) == "26"
