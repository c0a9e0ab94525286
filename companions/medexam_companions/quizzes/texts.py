"""Reads the text files of quiz tools: Moodle's GIFT, Aiken, which several tools write, and Anki's notes.

A row has `question`, `options` by letters, and `answer`, a list if several are right. What has no options is named.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from medexam.datasets import Cells, RawTable, cut_lines, name_rows

_GIFT_HEAD = re.compile(r"\s*(?:::(.*?)::)?\s*(?:\[\w+\])?(.*)", re.DOTALL)
_GIFT_QUESTION = re.compile(r"([^{]*)\{([^}]*)\}(?:([^\n{]*)(?=\n))?")
"""What stands before the braces, between them, and behind them in the same line."""
_GIFT_OPTION = re.compile(r"([=~])\s*(?:%(-?[\d.]+)%)?([^=~#]*)(?:#[^=~]*)?")
_IS_GIFT = re.compile(r"(?:^|[\s?.:])\{\s*(?:[=~]|(?:T|TRUE|F|FALSE)\s*[}#])")
_SIGNS = "~=#{}:%\\"
_HIDDEN = {sign: chr(0xE000 + place) for place, sign in enumerate(_SIGNS)}
"""A sign that stands behind a backslash in GIFT, and means itself -> what stands for it while the others are read."""
_AIKEN_OPTION = re.compile(r"\s*\(?([A-Za-z])[.):]\s+(.*)")
_AIKEN_ANSWER = re.compile(
    r"(?i)\s*(?:correct )?(?:answer|ans|respuesta|resposta|risposta|réponse|antwort|gabarito)(?: correcta)?\s*:\s*"
    r"\(?([A-Z](?:\s*,\s*[A-Z])*)(?:[.)].*)?\s*"
)
_AIKEN_REASON = re.compile(r"(?i)\s*(?:explanation|rationale|feedback|explicación|comment\w*)\s*:\s*(.*)")


def make_row(question: str, options: Sequence[tuple[str, float]], **extra_cells: str | None) -> Cells:
    """Make a row from options with the percentage of the points that each gives.

    Those with all of the points are right; if none has, as where several must be ticked, those with any.
    """
    letters = ascii_uppercase if len(options) <= len(ascii_uppercase) else [str(n + 1) for n in range(len(options))]
    labelled = dict(zip(letters, options, strict=False))
    least = 100 if any(points >= 100 for _, points in options) else 1e-9
    right = [letter for letter, (_, points) in labelled.items() if points >= least]
    texts = {letter: text.strip() for letter, (text, _) in labelled.items()}
    return _row(question, texts, right) | {name: text for name, text in extra_cells.items() if text}


def _row(question: str, options: Mapping[str, str], right: Sequence[str]) -> dict[str, Any]:
    return {"question": question, "options": options, "answer": right[0] if len(right) == 1 else right}


def read_text(text: str) -> RawTable | None:
    """Read the questions of a text, by what it holds: lines of Anki's settings, Aiken's answers, or GIFT's braces."""
    if _ANKI_LINE.match(text):
        return read_anki(text)
    if any(map(_AIKEN_ANSWER.fullmatch, lines := text.splitlines())):
        return RawTable("Aiken", (), read_aiken(lines))
    return RawTable("GIFT", (), read_gift(text)) if _IS_GIFT.search(text) else None


def read_aiken(lines: Iterable[str]) -> list[tuple[str, Cells]]:
    """Read the questions of a file in Aiken's form, or one with small letters or a reason behind the answer.

    Each has the line of its answer.
    """
    rows: list[tuple[str, Any]] = []
    stem: list[str] = []
    options: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        option = _AIKEN_OPTION.fullmatch(line)
        if answer := _AIKEN_ANSWER.fullmatch(line):
            right = re.findall("[A-Z]", answer[1].upper())
            rows.append((f"line {number}", _row("\n".join(stem), options, right)))
            stem, options = [], {}
        elif option and stem and option[1].upper() == ascii_uppercase[len(options) % 26]:
            options[option[1].upper()] = option[2].strip()
        elif options:
            options[next(reversed(options))] += f"\n{line.strip()}" if line.strip() else ""
        elif rows and not stem and (reason := _AIKEN_REASON.fullmatch(line)):
            rows[-1][1]["explanation"] = reason[1]
        elif line.strip():
            stem.append(line.strip())
    if stem:
        rows.append((f"line {number}", f"has no line ANSWER: for the question {' '.join(stem)!r:.60}"))
    return rows


def read_gift(text: str) -> Iterator[tuple[str, Cells]]:
    """Yield the questions of a file in GIFT, each with the line at which its answers begin."""
    text = re.sub(r"\\([~=#{}:%\\])", lambda match: _HIDDEN[match[1]], text.replace("\r\n", "\n"))
    text = re.sub(r"(?m)^[ \t]*//.*$", "", text) + "\n"
    category, line, position, end = "", 1, 0, 0
    for question_match in _GIFT_QUESTION.finditer(text):
        head, answers, tail = (part.strip() for part in question_match.groups(""))
        line += text.count("\n", position, question_match.start(2))
        position, end = question_match.start(2), question_match.end()
        category = [category, *re.findall(r"(?m)^\$CATEGORY:(.*)", head)][-1]
        *before, stem = re.split(r"\n\s*\n", re.sub(r"(?m)^\$CATEGORY:.*", "", head).strip())
        yield from ((f"line {line}", f"has no answers between braces: {_show(part)!r:.60}") for part in before)
        # What stands behind the braces in their line belongs to the question, whose gap they fill.
        yield f"line {line}", _gift_row(f"{stem} _____ {tail}" if tail else stem, answers, category)
    if remainder := text[end:].strip():
        line += text.count("\n", position, end)
        yield f"line {line}", f"has no answers between braces: {_show(remainder)!r:.60}"


def _gift_row(head: str, answers: str, category: str) -> Cells:
    title, stem = map(_show, _GIFT_HEAD.findall(head)[0])
    extra_cells = {name: text for name, text in (("title", title), ("category", _show(category))) if text}
    if truth := re.match(r"(T|TRUE|F|FALSE)\s*(?:#|$)", answers):
        is_true = truth[1][0] == "T"
        return make_row(stem, [("True", 100.0 * is_true), ("False", 100.0 * (not is_true))], **extra_cells)
    raw_options = _GIFT_OPTION.findall(answers)
    options = [(_show(text), read_number(points, 100.0 * (sign == "="))) for sign, points, text in raw_options]
    is_written = all(sign == "=" for sign, *_ in raw_options)
    if not options or answers.startswith("#") or (is_written and all("->" in text for text, _ in options)):
        return f"is a question in writing, in numbers or of pairs, which has no options: {stem!r:.60}"
    if is_written:
        return {"question": stem, "answer": [text for text, _ in options], **extra_cells}
    return make_row(stem, options, **extra_cells)


def _show(text: str) -> str:
    """Show a text with the signs that stood behind backslashes."""
    text = text.replace("\\n", "\n").strip()
    return re.sub("[\ue000-\ue007]", lambda match: _SIGNS[ord(match[0]) - 0xE000], text)


def read_number(text: str | None, otherwise: float = 0.0) -> float:
    """Read the number that a text holds; `otherwise` if it holds none."""
    try:
        return float(text or otherwise)
    except ValueError:
        return otherwise


_ANKI_LINE = re.compile(r"(?i)#((?:separator|html|columns|tags|deck|notetype|guid|if matches)(?: column)?):(.*)\r?\n")
_ANKI_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "colon": ":", "space": " "}


def read_anki(text: str) -> RawTable:
    """Read the notes that Anki exports as text, below lines such as `#separator:tab`."""
    settings: dict[str, str] = {}
    while setting := _ANKI_LINE.match(text):
        settings[setting[1].lower()] = setting[2].rstrip("\r")
        text = text[setting.end() :]
    separator = settings.get("separator", "tab")
    delimiter = _ANKI_DELIMITERS.get(separator.lower(), separator)[:1] or "\t"
    rows = [(line + len(settings), cells) for line, cells in cut_lines(io.StringIO(text, newline=""), delimiter)]
    names = [str(place) for place in range(1, max((len(cells) for _, cells in rows), default=0) + 1)]
    if "columns" in settings:
        names = settings["columns"].split(delimiter)
    for kind in ("guid", "notetype", "deck", "tags"):
        place = settings.get(f"{kind} column", "")
        if place.isdecimal() and 1 <= int(place) <= len(names):
            names[int(place) - 1] = kind
    fields = [place for place, name in enumerate(names) if name.isdecimal()]
    if len(fields) == 2:
        names[fields[0]], names[fields[1]] = "question", "answer"
    return RawTable("Anki", tuple(names), name_rows(rows, names))
