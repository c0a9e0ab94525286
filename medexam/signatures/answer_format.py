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

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " "}
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_OTHER_FORMS = re.compile("[\uff01-\uff5e\u3000\u00ad\u200b-\u200d\u2060\ufeff]|\\\\(?=[{}<>\\[\\]])")

_FILLER = r"(?:\s+(?:the|an?|option|answer|be|el|la|opci\u00f3n|respuesta|die|der|das|la|le|il|o|a)){0,2}[\s\"'`*(]*\Z"
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|than|instead\s+of|nunca|tampoco|non|nicht|kein|keine|pas|n\u00e3o|nem|ni)"
    rf"|n't|\bno\s+es|\bno){_FILLER}",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\W{0,3}(?:is|are|was|would\s+be|es|est|ist|\u00e8|\u00e9|\s)(?:\s+(?:clearly|definitely|certainly))?"
    r"(?:n't\b|\s*\b(?:not|no|nicht|pas|wrong|incorrect|false|incorrect[ao]|fals[ao]|err\u00f3ne[ao]|falsch|faux|fausse"
    r"|incorrecte|sbagliat[ao]|errat[ao]|errad[ao]|\u043d\u0435\u0432\u0435\u0440\w*|\u043d\u0435\u043f\u0440\u0430\u0432\u0438\u043b\u044c\w*)\b)"
    r"|\W{0,3}(?:\u3067\u306f\u306a|\u3058\u3083\u306a|\u306f\u8aa4\u308a|\u304c\u8aa4\u308a|\u4e0d\u6b63\u786e|\u4e0d\u5bf9|\u9519\u8bef|\u662f\u9519|\u4e0d\u662f)",
    re.IGNORECASE,
)
_EXAMPLE_BEFORE = re.compile(
    r"(?:\b(?:for\s+example|for\s+instance|such\s+as|por\s+ejemplo|par\s+exemple|zum\s+beispiel|(?:per|ad)\s+esempio"
    r"|por\s+exemplo)|\b[ei]\.\s?g\.|\bz\.\s?b\.|\blook\w*\s+like(?:\s+this)?"
    r"|(?:\A|\n)\W*(?:example|format|ejemplo|formato|exemple|beispiel|esempio|exemplo)\s*:)\W*\Z",
    re.IGNORECASE,
)
_INSTRUCTION_BEFORE = re.compile(
    r"(?:\A|[.!?\n]\s*|\b(?:please|must|should|you|por\s+favor|bitte|per\s+favore|s'il\s+vous\s+pla\u00eet)\W+)"
    r"(?:answer|respond|reply|write|give|return|use|provide|output|format|end|finish|conclude|respond[ae]|contest[ae]"
    r"|escrib[ae]|r\u00e9pondez|antworten?|antworte|rispond[ai]|responda)\b[^.!?\n:]*"
    r"\b(?:form\w*|as|like|with|using|such|como|con|mit|im|avec|com)\b[^.!?\n]*\Z",
    re.IGNORECASE,
)
_ENDS = " \t\r\n.,;:!*_`\"'#"
"""What may stand around an answer that begins or ends a reply."""
_CONTEXT = 160
"""Characters before an answer that may deny it, or show it as an example."""


def render_answer(number: int | str, form: AnswerForm = "braces") -> str:
    """Write `{Answer: 3}` or `<Answer: 3>`. A string stands for the number in instructions, such as `[number]`."""
    return f"{answer_opening(form)}{number}{answer_closing(form)}"


def answer_opening(form: AnswerForm) -> str:
    """Return the text before the number: `{Answer: `.

    It ends with the space. Tokenizers that split digits off (Llama 3's, SmolLM2's, the sentencepiece ones) then write
    the number as one token after it; engines check this for the tokenizer at hand.
    """
    return f"{_BRACKETS[form][0]}Answer: "


def answer_closing(form: AnswerForm) -> str:
    """Return the text after the number: `}`."""
    return _BRACKETS[form][1]


def parse_answer(reply: str, options: Collection[int], *, reasoned: bool = False) -> int | None:
    """Return the option that a reply chooses, or None.

    Spacing, case, quotes, punctuation, full-width forms and the kind of brackets may vary (`{Answer: 3}`,
    `<Answer: 3>`, `{"answer": 3}`, `[Answer: 3]`). None for a number that is no option, for two different answers, and
    for prose with a stray digit. `reasoned`: the reply reasons first, and its last answer counts.
    """
    numbers = [number for _, _, number in find_answers(reply)]
    if not numbers or (not reasoned and len(set(numbers)) > 1):
        return None
    return numbers[-1] if numbers[-1] in options else None


def cut_answers(reply: str, *, reasoned: bool) -> str:
    """Return what counts of a reply that was cut at its budget: all of it where an answer ends it, else nothing.

    A reply that does not reason may also begin with its answer, for it was asked for that alone.
    """
    text = plain_forms(reply)
    answers = find_answers(reply)
    if not answers:
        return ""
    ends = not text[answers[-1][1] :].strip(_ENDS)
    begins = not reasoned and not text[: answers[0][0]].strip(_ENDS)
    return reply if ends or begins else ""


def find_answers(reply: str) -> list[tuple[int, int, int]]:
    """Return every answer that `plain_forms(reply)` states as (start, end, number), in reading order.

    The numbers need not be legal options. An answer that is denied ("not {Answer: 1}") is none, nor is one that shows
    the format ("Please answer in the form {Answer: 1}").
    """
    text = plain_forms(reply)
    numbers = ((m.start(), m.end(), int(next(n for n in m.groups() if n is not None))) for m in _MARK.finditer(text))
    return [(start, end, number) for start, end, number in numbers if is_stated(text, start, end)]


def plain_forms(text: str) -> str:
    """Return a text with full-width characters as plain ones, and without invisible ones and escaped brackets."""
    if text.isascii() and "\\" not in text:
        return text
    return _OTHER_FORMS.sub(lambda match: match[0].translate(_FULL_WIDTH | _INVISIBLE).replace("\\", ""), text)


def is_stated(text: str, start: int, end: int) -> bool:
    """Return whether what stands at a place of a text is neither denied, an example nor an instruction."""
    before = text[max(start - _CONTEXT, 0) : start]
    if _DENIED_AFTER.match(text, end) is not None:
        return False
    return before.isspace() or not any(
        pattern.search(before) for pattern in (_DENIED_BEFORE, _EXAMPLE_BEFORE, _INSTRUCTION_BEFORE)
    )
