"""The answer format: how it is asked for and how it is read, side by side so that they cannot drift.

The paper asks for `{Answer: n}` and counts minor variations as answers (section 3.2.1). Everything here is a pure
function of text; which options are legal comes from the question.
"""

import re
from collections.abc import Collection

from medexam.specs.programs.needs import AnswerForm

_BRACKETS: dict[AnswerForm, tuple[str, str]] = {"braces": ("{", "}"), "angles": ("<", ">")}

_QUOTES = "[\"'`*\u2018\u2019\u201c\u201d\u00ab\u00bb]*"
"""Straight, curly and angle quotes, and the marks of Markdown."""


def _mark(opening: str, closing: str) -> str:
    word = rf"{_QUOTES}\s*answer\s*{_QUOTES}\s*[:=]?"
    number = rf"{_QUOTES}\s*\[?\s*{_QUOTES}([0-9]{{1,3}}){_QUOTES}\s*\]?\s*{_QUOTES}"
    return rf"{re.escape(opening)}\s*{word}\s*{number}\s*[.,;]?\s*{re.escape(closing)}"


_MARK = re.compile("|".join(_mark(*pair) for pair in ("{}", "<>", "[]")), re.IGNORECASE)


def render_answer(number: int | str, form: AnswerForm = "braces") -> str:
    """`{Answer: 3}` or `<Answer: 3>`; a string stands for the number in instructions, such as `[number]`."""
    return f"{answer_opening(form)}{number}{answer_closing(form)}"


def answer_opening(form: AnswerForm) -> str:
    """What stands before the number: `{Answer: `.

    It ends with the space. Tokenizers that split digits off (Llama 3's, SmolLM2's, the sentencepiece ones) then write
    the number as one token after it; engines check this for the tokenizer at hand.
    """
    return f"{_BRACKETS[form][0]}Answer: "


def answer_closing(form: AnswerForm) -> str:
    """What stands after the number: `}`."""
    return _BRACKETS[form][1]


def parse_answer(reply: str, options: Collection[int], *, reasoned: bool = False) -> int | None:
    """The option that a reply chooses, or None.

    Spacing, case, quotes, punctuation and the kind of brackets may vary (`{Answer: 3}`, `<Answer: 3>`,
    `{"answer": 3}`, `[Answer: 3]`). None for a number that is no option, for two different answers, and for prose with
    a stray digit. `reasoned`: the reply reasons first, and its last answer counts.
    """
    numbers = [number for _, _, number in find_answers(reply)]
    if not numbers or (not reasoned and len(set(numbers)) > 1):
        return None
    return numbers[-1] if numbers[-1] in options else None


def find_answers(reply: str) -> list[tuple[int, int, int]]:
    """Every answer in a text as (start, end, number), in reading order; the numbers need not be legal options."""
    return [(m.start(), m.end(), int(next(n for n in m.groups() if n is not None))) for m in _MARK.finditer(reply)]
