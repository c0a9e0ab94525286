"""Reads the text files of quiz tools: Moodle's GIFT, and Aiken, which several tools write.

A row has the columns `question`, `options` by their letters, and `answer`; a list of letters if several are right. What
has no options has its answers as texts, and what has no answer is named.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from string import ascii_uppercase
from typing import Any

from medexam.datasets.own.grids import Cells

_ESCAPED = "~=#{}:%"
_HIDE = {ord(sign): chr(0xE000 + place) for place, sign in enumerate(_ESCAPED)}
_SHOW = {ord(hidden): chr(sign) for sign, hidden in _HIDE.items()}
"""What stands behind a backslash in GIFT means itself; it is hidden while the signs are read."""
_GIFT_ENTRY = re.compile(r"([=~])\s*(?:%(-?[\d.]+)%)?([^=~#]*)(?:#[^=~]*)?")
_GIFT_HEAD = re.compile(r"\s*(?:::(.*?)::)?\s*(?:\[\w+\])?(.*)", re.DOTALL)
_IS_GIFT = re.compile(r"(?:^|[\s?.:])\{\s*(?:[=~]|(?:T|TRUE|F|FALSE)\s*[}#])")
_AIKEN_OPTION = re.compile(r"\s*([A-Z])[.)]\s+(.*)")
_AIKEN_ANSWER = re.compile(r"(?m)^\s*ANSWER:\s*([A-Z](?:\s*,\s*[A-Z])*)\s*$")


def make_row(question: str, options: Sequence[tuple[str, float]], **more: Any) -> Cells:
    """A row from options with the percentage of the points that each gives.

    Those with all of the points are right; if none has, as where several must be ticked, those with any.
    """
    labels = (
        list(ascii_uppercase) if len(options) <= len(ascii_uppercase) else list(map(str, range(1, len(options) + 1)))
    )
    most = 100 if any(points >= 100 for _, points in options) else 1e-9
    right = [label for label, (_, points) in zip(labels, options, strict=False) if points >= most]
    texts = {label: text.strip() for label, (text, _) in zip(labels, options, strict=False)}
    answer = right[0] if len(right) == 1 else right
    return {
        "question": question,
        "options": texts,
        "answer": answer,
        **{name: each for name, each in more.items() if each},
    }


def is_gift(text: str) -> bool:
    """Whether a text holds answers between braces, as GIFT has them."""
    return _IS_GIFT.search(text) is not None


def is_aiken(text: str) -> bool:
    """Whether a text holds lines such as `ANSWER: B`."""
    return _AIKEN_ANSWER.search(text) is not None


def read_aiken(lines: Iterable[str]) -> Iterator[tuple[str, Cells]]:
    """The questions of a file in Aiken's form, each with the line of its answer."""
    stem: list[str] = []
    options: dict[str, str] = {}
    number = 0
    for number, line in enumerate(lines, start=1):
        option = _AIKEN_OPTION.fullmatch(line.rstrip())
        if answer := _AIKEN_ANSWER.fullmatch(line.rstrip()):
            letters = re.findall("[A-Z]", answer[1])
            row = {
                "question": "\n".join(stem),
                "options": options,
                "answer": letters[0] if len(letters) == 1 else letters,
            }
            yield f"line {number}", row
            stem, options = [], {}
        elif option and option[1] == ascii_uppercase[len(options) % len(ascii_uppercase)] and stem:
            options[option[1]] = option[2]
        elif line.strip() and options:
            options[next(reversed(options))] += f"\n{line.strip()}"
        elif line.strip():
            stem.append(line.strip())
    if stem:
        yield f"line {number}", f"has no line ANSWER: for the question {' '.join(stem)!r:.60}"


def read_gift(text: str) -> Iterator[tuple[str, Cells]]:
    """The questions of a file in GIFT, each with the line at which its answers begin."""
    text = re.sub(rf"\\([{_ESCAPED}])", lambda found: _HIDE[ord(found[1])], text.replace("\r\n", "\n"))
    text = re.sub(r"(?m)^[ \t]*//.*$", "", text)
    category, line, end = "", 1, 0
    while (start := text.find("{", end)) >= 0 and (close := text.find("}", start)) >= 0:
        head, body = text[end:start], text[start + 1 : close]
        # What stands behind the braces in their line belongs to the question, whose gap they fill.
        tail = text[close + 1 :].partition("\n")[0] if text.find("{", close, text.find("\n", close)) < 0 else ""
        line += head.count("\n")
        paragraphs = []
        for paragraph in re.split(r"\n\s*\n", head.strip()):
            lines = paragraph.splitlines()
            category = next(
                (each.partition(":")[2].strip() for each in lines if each.startswith("$CATEGORY:")), category
            )
            paragraphs.append("\n".join(each for each in lines if not each.startswith("$CATEGORY:")))
        *before, stem = paragraphs
        for each in filter(str.strip, before):
            yield f"line {line}", f"has no answers between braces: {_show(each)!r:.60}"
        yield f"line {line}", _gift_row(stem, tail, body.strip(), category)
        end = close + 1 + len(tail)
        line += text.count("\n", start, end)
    if rest := text[end:].strip():
        yield f"line {line}", f"has no answers between braces: {_show(rest)!r:.60}"


def _gift_row(head: str, tail: str, answers: str, category: str) -> Cells:
    title, stem = _GIFT_HEAD.findall(head)[0]
    stem = _show(f"{stem.strip()} _____ {tail.strip()}" if tail.strip() else stem)
    more = {name: _show(text) for name, text in (("title", title), ("category", category)) if text.strip()}
    truth = re.fullmatch(r"(T|TRUE|F|FALSE)\s*(?:#.*)?", answers, re.DOTALL)
    if truth:
        points = 100.0 if truth[1].startswith("T") else 0.0
        return make_row(stem, [("True", points), ("False", 100 - points)], **more)
    entries = [(sign, points, _show(option)) for sign, points, option in _GIFT_ENTRY.findall(answers)]
    if not entries or answers.startswith("#") or any("->" in option for *_, option in entries):
        return f"is a question in writing, in numbers or of pairs, which has no options: {stem!r:.60}"
    if all(sign == "=" for sign, *_ in entries):
        return {"question": stem, "answer": [option for *_, option in entries], **more}
    return make_row(stem, [(option, number(points, 100.0 * (sign == "="))) for sign, points, option in entries], **more)


def number(text: str | None, otherwise: float = 0.0) -> float:
    """The number that a text holds; `otherwise` if it holds none."""
    try:
        return float(text or otherwise)
    except ValueError:
        return otherwise


def _show(text: str) -> str:
    """A text with what stood behind backslashes."""
    return text.translate(_SHOW).replace("\\n", "\n").strip()
