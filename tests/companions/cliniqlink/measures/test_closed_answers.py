"""What is read out of true/false and multiple choice: the strict reading and the kind one."""

import pytest

from medexam.companions.cliniqlink import Format, score_cliniqlink


def score(item, reply):
    return score_cliniqlink([item], {item.key: reply}).formats[item.format]


@pytest.mark.parametrize(
    ("text", "other"),
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
    ],
)
def test_texts_are_equal_but_for_signs_accents_and_spaces(make_item, text: str, other: str) -> None:
    item = make_item("multiple_choice", other, [other, "something else"])
    assert score(item, text).score == 1.0


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
def test_reply_texts(make_item, reply, text: str) -> None:
    item = make_item("multiple_choice", "x", ["x", "y"])
    assert score(item, reply) == score(item, text)
    told = make_item("multiple_choice", text or "nothing", [text or "nothing", "other words"])
    assert score(told, reply).score == float(bool(text))


VERDICTS = [
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
]
"""What is said, the word that it begins with, whether text follows that word, and the verdict of a kind reader."""


@pytest.mark.parametrize(("text", "said", "trailing", "forgiven"), VERDICTS)
def test_verdicts(make_item, text: str, said: str | None, trailing: bool, forgiven: bool | None) -> None:
    yes, no = (score(make_item("true_false", gold), text) for gold in (" True ", "false"))
    assert (yes.score, no.score) == (float(said == "true"), float(said == "false"))
    assert (yes.forgiving, no.forgiving) == (float(forgiven is True), float(forgiven is False))
    assert yes.malformed.get("trailing text", 0) == trailing
    assert yes.malformed.get("no verdict", 0) + yes.malformed.get("empty", 0) >= (said is None)


OPTIONS = ["10% - 40%", "Gestational Age", "Chest X-ray", "Type of study (ordered)"]


@pytest.mark.parametrize(
    ("gold", "text", "match", "forgiven"),
    [
        ("Chest X-ray", "chest x ray", "full", True),
        ("C", "Chest X-ray.", "full", True),
        ("c", "Chest X-ray", "full", True),
        ("Chest X-ray", "C", "letter", True),
        ("Chest X-ray", "c.", "letter", True),
        ("Chest X-ray", "(C)", "letter", True),
        ("Gestational Age", "B: Gestational Age", "mixed", True),
        ("Chest X-ray", "C: Chest X-ray", "none", True),
        ("Gestational Age", "B. Gestational Age", "none", True),
        ("Gestational Age", "B) gestational age", "none", True),
        ("Gestational Age", "**Gestational Age**", "full", True),
        ("Gestational Age", "The answer is B", "none", True),
        ("Gestational Age", "The correct answer is: Gestational Age.", "none", True),
        ("Gestational Age", "Because of it.\nFinal answer: **B**", "none", True),
        ("Gestational Age", "Gestational Age\n\nIt is known.", "none", True),
        ("Gestational Age", "C: Gestational Age", "none", True),
        ("Gestational Age", "The answer is C", "none", False),
        ("Gestational Age", "A", "none", False),
        ("Gestational Age", "E", "none", False),
        ("Gestational Age", "A gestational matter", "none", False),
        ("Gestational Age", "", "none", False),
        ("E", "e", "full", True),
    ],
)
def test_choices(make_item, gold: str, text: str, match: str, forgiven: bool) -> None:
    found = score(make_item("multiple_choice", gold, OPTIONS), text)
    assert (found.matches, found.score) == ({match: 1}, float(match == "full"))
    assert found.forgiving == float(forgiven)


def test_a_gold_letter_stands_for_its_option_even_where_an_option_is_that_letter(make_item) -> None:
    assert score(make_item("multiple_choice", "B", ["B", "A"]), "A").score == 1.0
    assert score(make_item("multiple_choice", "[", [str(n) for n in range(30)]), "26").score == 1.0


def test_an_echo_is_the_question_but_for_capitals_and_spaces(make_item, letters) -> None:
    item = make_item("short", "A bone.", question="What is it?")
    for reply, echo in ((" what is IT? ", 1), ("what is it", 0)):
        found = score_cliniqlink([item], {"k": reply}, letters).formats[Format.SHORT]
        assert found.malformed.get("echo", 0) == echo
