"""The answer format: how it is asked for and how it is read, side by side so that they cannot drift.

The paper asks for `{Answer: n}` and counts minor variations as answers (section 3.2.1). Everything here is a pure
function of text; which options are legal comes from the question.
"""

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

from medexam.signatures.reply_words import names, pattern, pattern_of, roles, word_pattern, write_out
from medexam.specs.programs.needs import AnswerForm

_BRACKETS: dict[AnswerForm, tuple[str, str]] = {"braces": ("{", "}"), "angles": ("<", ">")}

_MARK = re.compile(
    "|".join(
        rf"{opening}_Qanswer_Q[:=]?_Q\[?_Q([0-9]{{1,3}})Q_\]?_Q[.,;]?_{closing}".replace("_", r"\s{0,9}").replace(
            "Q", "[\"'`*\u2018\u2019\u201c\u201d\u00ab\u00bb]{0,4}"
        )
        for opening, closing in (("\\{", "}"), "<>", ("\\[", "]"))
    ),
    re.IGNORECASE,
)
_ENDS = " \t\r\n.,;:!*_`\"'#"  # What may stand around an answer that begins or ends a reply.
_CONTEXT = 200  # Characters around an answer that may deny it, or show it as an example.


def render_answer(number: int | str, form: AnswerForm = "braces") -> str:
    """Write `{Answer: 3}` or `<Answer: 3>`. A string stands for the number in instructions, such as `[number]`."""
    return f"{answer_opening(form)}{number}{answer_closing(form)}"


def answer_opening(form: AnswerForm) -> str:
    """Return the text before the number: `{Answer: `.

    It ends with the space, so that tokenizers that split digits off write the number as one token after it.
    """
    return f"{_BRACKETS[form][0]}Answer: "


def answer_closing(form: AnswerForm) -> str:
    """Return the text after the number: `}`."""
    return _BRACKETS[form][1]


def parse_answer(reply: str, options: Collection[int], *, reasoned: bool = False, cut: bool = False) -> int | None:
    """Return the option that a reply chooses, or None.

    Spacing, case, quotes, punctuation, full-width forms and the kind of brackets may vary (`{Answer: 3}`,
    `<Answer: 3>`, `{"answer": 3}`, `[Answer: 3]`). None for a number that is no option, for two different answers and
    for one that is taken back. `reasoned`: the reply reasons first, and its last answer counts. `cut`: it ended at its
    budget, so an answer counts that ends it, or that begins one that does not reason.
    """
    text, answers = plain_forms(reply), find_answers(reply)
    if not answers or (not reasoned and len({number for _, _, number in answers}) > 1):
        return None
    _, end, number = answers[-1]
    if cut and text[end:].strip(_ENDS) and (reasoned or text[: answers[0][0]].strip(_ENDS)):
        return None
    return number if number in options and not is_taken_back(text[end : end + _CONTEXT // 2]) else None


def find_answers(reply: str) -> list[tuple[int, int, int]]:
    """Return every answer that `plain_forms(reply)` states as (start, end, number), in reading order.

    The numbers need not be legal options. What its sentence denies, doubts, asks, strikes out or exemplifies is none.
    """
    text = drop_struck(plain_forms(reply))
    matches = [*_MARK.finditer(text)]
    answers: list[tuple[int, int, int]] = []
    is_stated, last_end = False, 0
    for match, end in zip(matches, [*(match.start() for match in matches[1:]), len(text)], strict=False):
        before = text[max(last_end, match.start() - _CONTEXT) : match.start()]
        number = match[match.lastindex or 0]
        behind = text[match.end() : min(end, match.end() + _CONTEXT)]
        is_linked = last_end > 0 and pattern("linked").fullmatch(before) is not None
        follows_denied = last_end > 0 and not is_stated and not re.search(r"[.!?\n]", before)
        is_own = _is_stated("" if is_linked else before, behind, number)
        if is_linked and is_stated and not is_own:
            answers.pop()
        is_stated = is_own and not (follows_denied and (is_linked or pattern("described").match(behind)))
        if is_stated:
            answers.append((match.start(), match.end(), int(number)))
        last_end = match.end()
    return answers


@lru_cache(maxsize=16)
def plain_forms(text: str) -> str:
    """Return a text with full-width characters as plain ones, and without invisible ones and escaped brackets."""
    if text.isascii() and "\\" not in text:
        return text
    return pattern("other_form").sub(lambda match: unicodedata.normalize("NFKC", match[1] or ""), text)


def drop_struck(text: str) -> str:
    """Return a text of the same length with `~` for what is crossed out."""
    return pattern("struck").sub(lambda match: "~" * len(match[0]), text)


def drop_idioms(text: str) -> str:
    """Return a text of small letters without words of denial and doubt that deny and doubt nothing."""
    return pattern("interjection").sub("", pattern("in_format").sub("", pattern_of("idiom").sub("", text)))


def is_taken_back(remainder: str) -> bool:
    """Return whether what follows an answer takes it back."""
    remainder = remainder.lower()
    if (about := pattern("of_it").match(remainder)) and _denies(about[0]):
        return True
    return names(remainder, "retraction") or pattern("taken_back").match(remainder) is not None


def _is_stated(before: str, after: str, number: str) -> bool:
    """Return whether neither side of an answer, within its sentence, makes it something else."""
    before = pattern("sentence").split(write_out(before))[-1].lower()
    end = pattern("sentence").search(after)
    behind = after[: end.start() if end else None].lower()
    if any(map(str.isalpha, behind)) or not behind.isascii():
        first, *later = pattern("clause").split(pattern_of("because").split(drop_idioms(behind), maxsplit=1)[0])
        start = " ".join(first.split()[:4])
        is_sentence = after.lstrip()[:1].isupper() and not names(start.split(" ")[0], "denial")
        denials = () if is_sentence and not names(start, "correct") else ("denial",)
        if names(start, "wrong", "example", "doubt", *denials) or any(map(_denies, later)):
            return False
    has_words = any(map(str.isalpha, before))
    if end and end[0] in "?\uff1f" and (has_words or names(" ".join(after[end.end() :].split()[:1]), "denial")):
        return False
    # "Anything but" sets nothing against it.
    context = re.split(rf"(?<!thing\s)(?<!\ball\s)(?:{pattern_of('so', 'against').pattern})", drop_idioms(before))[-1]
    if names(context, "doubt", "example") or pattern("another_case").match(context):
        return False
    own = pattern("clause").split(context)[-1]
    if re.search(rf"\b{number}\b", own):
        return True
    if pattern("named").search(own):  # "The option that is not correct is": a question may ask for that one.
        return not names(pattern("relative").sub("", own), "denial")
    is_heading = not pattern("in_format").search(before) and own.rstrip(" \t\r\n.*_`").endswith((":", ">", '"', "("))
    # The number of a passage in brackets is no word.
    words = word_pattern().findall(re.sub(r"[:,~`]|\[\d+\]", " ", own))
    is_statement = is_heading or all(word in roles() or names(word, "leads") for word in words)
    return is_statement and not names(own, "denial", "wrong")


def _denies(clause: str) -> bool:
    """Return whether a clause of a few words, or one that begins so, denies the answer before it."""
    is_about = pattern("about_it").match(clause) is not None
    if any(map(str.isdigit, clause)) or not (is_about or len(clause.split()) < 4):
        return False
    is_right = names(clause, "correct") or (is_about and names(clause[-6:], "denial"))
    return names(clause, "wrong") or (names(clause, "denial") and is_right)
