# ruff: noqa: RUF001 - the languages' own letters
"""A small grammar that builds replies from answers that are known: an independent marker for the readers.

It knows what it states, so nothing needs to be read to say what a reply means.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

_STATED = {
    "en": ["The answer is {0}.", "The correct answer is {0}", "Answer: {0}", "Final answer: {0}", "I choose {0}."],
    "es": ["La respuesta correcta es la {0}.", "Respuesta: {0}", "La respuesta es {0}"],
    "fr": ["La bonne réponse est la {0}.", "Réponse : {0}"],
    "it": ["La risposta corretta è la {0}.", "Risposta: {0}"],
    "gl": ["A resposta correcta é a {0}.", "Resposta: {0}"],
    "de": ["Die richtige Antwort ist {0}.", "Antwort: {0}"],
    "ru": ["Правильный ответ: {0}.", "Ответ: {0}"],
    "zh": ["答案是{0}。", "答案：{0}"],
    "ja": ["正解は{0}です。", "答え：{0}"],
}
_STRICT = ["{{Answer: {0}}}", "<Answer: {0}>", '{{"answer": {0}}}', "[Answer: {0}]", "{{ answer : {0} }}."]
_DENIED = {
    "en": ["The answer is not {0}.", "Option {0} is incorrect.", "It cannot be {0}.", "{0} is not the correct answer."],
    "es": ["La respuesta no es la {0}.", "La opción {0} es incorrecta.", "No puede ser la {0}."],
    "fr": ["La réponse n'est pas {0}.", "L'option {0} est fausse."],
    "it": ["La risposta non è la {0}.", "L'opzione {0} è errata."],
    "gl": ["A resposta non é a {0}.", "A opción {0} é incorrecta."],
    "de": ["Die Antwort ist nicht {0}.", "Option {0} ist falsch."],
    "ru": ["Ответ не {0}.", "Вариант {0} неверен."],
    "zh": ["答案不是{0}。", "选项{0}不正确。"],
    "ja": ["答えは{0}ではない。", "選択肢{0}は誤りです。"],
}
_NOT_MEANT = [
    *(
        "I would not pick {0}.",
        "{0} (incorrect)",
        "Is it {0}?",
        "~~{0}~~",
        "For example, {0}",
        "You should answer with {0}",
    ),
    *("Descarto {0}.", "Non è {0}.", "Не {0}.", "If the patient were a child, {0}", "Students often pick {0}"),
]
_PROSE = [
    "Of 20 patients, 3 recovered within 2 days.",
    "A dose of 4 mg is usual; grade 2 needs more.",
    "Type 1 is common, and vitamin B is not involved.",
    "Let us look at each option in turn.",
    "See chapter 3, table 4.",
    "Hepatitis C and blood group A do not matter here.",
]
_WORDS = {
    "en": ["one", "two", "three", "four", "five"],
    "es": ["uno", "dos", "tres", "cuatro", "cinco"],
}


@dataclass(frozen=True)
class Built:
    """A reply and what it states."""

    reply: str
    strict: int | None
    """What is stated in the format that was asked for; None where nothing is."""
    stated: int | None
    """What is stated in any form; None where nothing is."""
    reasoned: bool


def build_reply(draw: random.Random, options: Mapping[int, str]) -> Built:
    """A reply in one of nine languages that states one option, or none."""
    language = draw.choice(list(_STATED))
    reasoned = draw.random() < 0.5
    gold = draw.choice(list(options))
    other = draw.choice([number for number in options if number != gold])
    argument = _argument(draw, language, options, other) if reasoned else []
    strict = stated = None
    match draw.randrange(11):
        case 0 | 1:
            strict = stated = gold
            said = draw.choice(_STRICT).format(gold)
        case 2 | 3 | 4 | 5:
            stated = gold
            said = draw.choice(_STATED[language]).format(_sign(draw, options, gold, language))
        case 6:
            stated = gold
            said = draw.choice(["{0}", "({0})", "**{0}**", "{0}.", "\\boxed{{{0}}}"]).format(gold)
        case 7:
            stated = gold
            said = options[gold]
        case 8:
            said = draw.choice(_DENIED[language]).format(_sign(draw, options, other, language))
        case 9:
            said = draw.choice(_NOT_MEANT).format(draw.choice(_STRICT[:4]).format(other))
        case _:
            two = draw.choice(["{0} or {1}", "{0}, {1}", "{0} and {1}"]).format(gold, other)
            said = draw.choice(_STATED["en"]).format(two)
    return Built("\n\n".join([" ".join(argument), said] if argument else [said]), strict, stated, reasoned)


def _argument(draw: random.Random, language: str, options: Mapping[int, str], other: int) -> list[str]:
    """Sentences that mention options and numbers and state none."""
    sentences = [draw.choice(_PROSE)]
    sentences += [draw.choice(_DENIED[language]).format(other)] if draw.random() < 0.5 else []
    sentences += [f"Option {other} says: {options[other].rstrip('.')}, which is not so."] if draw.random() < 0.5 else []
    draw.shuffle(sentences)
    return sentences


def _sign(draw: random.Random, options: Mapping[int, str], number: int, language: str) -> str:
    """A sign of an option; no letter where options themselves are signs."""
    if any(len(text.strip(".")) == 1 for text in options.values()):
        return f"({number})"
    letter = "ABCDE"[number - 1]
    forms = [str(number), f"({number})", letter, f"({letter})", f"**{number}**", f"{number})"]
    if language in _WORDS:
        forms.append(_WORDS[language][number - 1])
    return draw.choice(forms)
