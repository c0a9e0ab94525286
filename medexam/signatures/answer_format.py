"""The answer format: how it is asked for and how it is read, side by side so that they cannot drift.

The paper asks for `{Answer: n}` and counts minor variations as answers (section 3.2.1). Everything here is a pure
function of text; which options are legal comes from the question.
"""

import re
from collections.abc import Collection

from medexam.signatures.reply_words import names, pattern_of
from medexam.specs.programs.needs import AnswerForm

_BRACKETS: dict[AnswerForm, tuple[str, str]] = {"braces": ("{", "}"), "angles": ("<", ">")}

_QUOTES = "[\"'`*\u2018\u2019\u201c\u201d\u00ab\u00bb]{0,4}"
"""Straight, curly and angle quotes, and the marks of Markdown."""


def _mark(opening: str, closing: str) -> str:
    word = rf"{_QUOTES}\s{{0,9}}answer\s{{0,9}}{_QUOTES}\s{{0,9}}[:=]?"
    number = rf"\s{{0,9}}{_QUOTES}\s{{0,9}}\[?\s{{0,9}}{_QUOTES}([0-9]{{1,3}}){_QUOTES}\s{{0,9}}\]?\s{{0,9}}{_QUOTES}"
    return rf"{re.escape(opening)}\s{{0,9}}{word}{number}\s{{0,9}}[.,;]?\s{{0,9}}{re.escape(closing)}"


_MARK = re.compile("|".join(_mark(*pair) for pair in ("{}", "<>", "[]")), re.IGNORECASE)

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " "}
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_OTHER_FORMS = re.compile("[\uff01-\uff5e\u3000\u00ad\u200b-\u200d\u2060\ufeff]|\\\\(?=[{}<>\\[\\]])")

STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(del|strike)>[^<\n]{0,200}</\1>", re.IGNORECASE)
"""What is crossed out."""
IDIOM = re.compile(
    r"\b(?:(?:without|no|beyond|sin|sen|senza|без)\s(?:an?y?\s)?(?:doubt|question|duda|dúbida|dubbio|сомнени\w+)"
    r"|if\s(?:i\s(?:had|have)\sto|forced)|not\sonly"
    r"|in\sthe\s(?:requested|required|specified)\sformat)\b|\b(?:no|нет)[:,]\s",
    re.IGNORECASE,
)
"""Words of denial and doubt that deny and doubt nothing."""
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')\]*]|\Z)|[\u3002\uff1f\uff01]|(?<![:\n])\n")
_CLAUSE_END = re.compile(
    r"[,;\u2013\u2014]\s|\s-\s|\band\s(?=the|my)|\b(?:y|e)\s(?=la?\s(?:resp|risp|opc|opz)|a\s(?:resp|opc))|[\u3001\uff0c]"
)
_ABBREVIATION = re.compile(r"\b([eiz])\.\s?([gb])\.", re.IGNORECASE)
_OWN = re.compile(r"\b(?:here(?:'s|\sis)|my(?:\sfinal)?\sanswer)\b", re.IGNORECASE)
_INSTRUCTION = re.compile(
    r"\W*(?:please\W+)?(?:(?:write|give|return|use|provide|output|finish|repl[yi]\w*|respond\w*|rispond\w*|escrib\w*)\s"
    r"|answer\s(?:with|in|as|using|like)\b)",
    re.IGNORECASE,
)
_NOT_BEHIND = re.compile(
    r"\W*(?:(?:is|are|was|would\sbe|es|est|ist|\u00e8|\u00e9)(?:n['\u2019]t|(?:\s\w+)?\s(?:not|no|non|nicht|pas))\b"
    r"|(?:no|non|\u043d\u0435)\W*\Z|\u3067\u306f\u306a|\u3058\u3083\u306a|\u306f\u8aa4\u308a|\u304c\u8aa4\u308a|\u4e0d|\u662f\u9519)",
    re.IGNORECASE,
)
"""What denies an answer behind it, and would deny something else before it."""
_REFUSED = re.compile(r"\W*(?:no|non|\u043d\u0435\u0442)\b", re.IGNORECASE)
_LINKS = re.compile(
    r"\w\W+\w+\W+(?:is|es|\u00e8|\u00e9|est|ist|\u2014)[\s:]+(?:option\s|la\s|the\s|a\s)?\W*\Z", re.IGNORECASE
)
"""What names an answer right before it, such as "The incorrect option is"."""
_RELATIVE = re.compile(r"\b(?:that|which|que|che)\s(?:\w+\s)?(?:not|no|non)\b", re.IGNORECASE)
_ABOUT_IT = ("which", "that", "this", "it", "but", "though", "lo", "che", "\u0447\u0442\u043e")
"""What begins a clause about the answer before it."""
_LINKED = re.compile(r"\W*(?:and|or|nor|y|o|u|ni|e|ou|и|или|und|oder|et)\W*", re.IGNORECASE)
"""What gives an answer the lot of the one before it."""
_ENDS = " \t\r\n.,;:!*_`\"'#"
"""What may stand around an answer that begins or ends a reply."""
_CONTEXT = 200
"""Characters around an answer that may deny it, or show it as an example."""


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

    The numbers need not be legal options. An answer that its sentence denies, doubts, asks, strikes out or shows as an
    example is none.
    """
    text = plain_forms(reply)
    if "~~" in text or "</" in text:
        text = STRUCK.sub(lambda match: " " * len(match[0]), text)
    matches = [*_MARK.finditer(text)]
    answers: list[tuple[int, int, int]] = []
    is_stated = False
    edges = [0, *(match.end() for match in matches)], [*(match.start() for match in matches[1:]), len(text)]
    for match, start, end in zip(matches, *edges, strict=False):
        before = text[max(start, match.start() - _CONTEXT) : match.start()]
        if not (start and _LINKED.fullmatch(before)):
            behind = text[match.end() : min(end, match.end() + _CONTEXT)]
            is_stated = _is_stated(before, behind, next(filter(None, match.groups())))
        if is_stated:
            answers.append((match.start(), match.end(), int(next(filter(None, match.groups())))))
    return answers


def plain_forms(text: str) -> str:
    """Return a text with full-width characters as plain ones, and without invisible ones and escaped brackets."""
    if text.isascii() and "\\" not in text:
        return text
    return _OTHER_FORMS.sub(lambda match: match[0].translate(_FULL_WIDTH | _INVISIBLE).replace("\\", ""), text)


def _is_stated(before: str, after: str, number: str) -> bool:
    """Return whether neither side of an answer, within its sentence, makes it something else."""
    before = _SENTENCE_END.split(_ABBREVIATION.sub(r"\1\2", before))[-1]
    end = _SENTENCE_END.search(after)
    behind = after[: end.start() if end else None]
    if any(map(str.isalpha, behind)) or not behind.isascii():
        first, *later = _CLAUSE_END.split(pattern_of("because").split(behind, maxsplit=1)[0])
        words = first.split()
        if (
            names(" ".join(words[:4]), "wrong", "example")
            or names(" ".join(words[:2]), "doubt")
            or _NOT_BEHIND.match(first)
        ):
            return False
        if any(names(clause, "wrong") and _is_about(clause) for clause in later):
            return False
    if end and end[0] in "?\uff1f" and (any(map(str.isalpha, before)) or _REFUSED.match(after, end.end())):
        return False
    if not any(map(str.isalpha, before)):
        return True
    context = pattern_of("so", "against").split(IDIOM.sub("", before))[-1]
    if (
        names(context, "doubt")
        or (names(context, "example") and not _OWN.search(context))
        or _INSTRUCTION.match(context)
    ):
        return False
    own = _CLAUSE_END.split(context)[-1]
    if re.search(rf"\b{number}\b", own):
        return True
    if _LINKS.search(own):  # "The option that is not correct is": a question may ask for that one.
        return not names(_RELATIVE.sub("", own), "denial")
    stands_alone = (
        not any(map(str.isalpha, own))
        or own.lower().lstrip().startswith("i ")
        or names(own, "answer", "link", "correct")
    )
    return not names(own if stands_alone else context, "denial", "wrong")


def _is_about(clause: str) -> bool:
    """Return whether a later clause is about the answer before it: a word or two, or one that begins so."""
    words = clause.lower().split()
    return len(words) < 3 or (words[0] in _ABOUT_IT and not any(map(str.isdigit, clause)))
