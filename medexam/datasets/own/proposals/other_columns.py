"""Which columns hold what stands beside question, options and answer, and which only have such a name."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from medexam.datasets.own.choice import NO_PICTURE, parse_choice
from medexam.datasets.own.columns import STANDARD, parse_split
from medexam.datasets.own.names import find_named, plain_name
from medexam.datasets.own.proposals.cells import MOST
from medexam.datasets.own.proposals.drafts import Proposal, make_spec
from medexam.datasets.own.tables import value_of
from medexam.datasets.rows import Row, parse_whole_number
from medexam.errors import DatasetError

_SAYS_SO = re.compile(
    r"answer|correct|right|respuesta|resposta|correta|réponse|antwort|richtig|risposta|corretta|gabarito|答案|正解",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[A-J]|\d")
_FEW_WORDS = 5
"""Words of a context on average; a column of fewer is what a question belongs to."""
_TOPIC_WORDS = 6
"""Words of a topic on average, at most."""
_FEW = 0.1
"""The share of contexts that may hold the right answer by chance."""
_FLAGS = {"true": 1, "1": 1, "yes": 1, "1.0": 1, **dict.fromkeys(NO_PICTURE, 0)}


def propose_others(draft: Proposal) -> None:
    """Put the columns of the other fields, and switch off those that only have a field's name."""
    fields = ("context", "explanation", "image", "subject", "year", "exam", "id", "split")
    if draft.kind != "choice":
        fields = ("context", "subject", "id", "split", *(("start",) if draft.kind == "spans" else ()))
    for name in fields:
        for column in filter(draft.sample.filled, find_named(name, draft.unused())):
            is_checked = name in _CHECKS and (draft.kind == "choice" or name in ("id", "split"))
            wrong = _CHECKS[name](draft, column) if is_checked else None
            if wrong is None:
                draft.columns.setdefault(name, column)
                break
            draft.notes.append(f"{name}: not column {column}, {wrong}")
            draft.agreeing += [column] if wrong.startswith("which names the right answer") else []
            if column in STANDARD[name]:
                draft.columns[name] = None


def _check_context(draft: Proposal, column: str) -> str | None:
    """Return why a column is not shown before the question; ask if it may give the answer away."""
    texts = [
        " ".join(map(str, content)) if isinstance(content, (list, tuple)) else str(content)
        for content in draft.sample.filled(column)
    ]
    words = sum(len(text.split()) if text.isascii() else len(text) for text in texts)
    if words < _FEW_WORDS * len(texts) and plain_name(column) not in ("context", "contexts", "passage"):
        return f"which holds a few words, such as {texts[0]!r:.40}"
    rows = _parse(draft)
    contexts = {row.number: value_of(row.record, column) for row in draft.sample.table.rows}
    pairs = [(str(text), row) for row in rows if (text := contexts.get(row.question.number)) is not None]
    giveaway_count = sum(_gives_away(text, row) for text, row in pairs)
    if pairs and giveaway_count >= MOST * len(pairs):
        return f"which names the right answer, as {pairs[0][0]!r:.40} does"
    only_count = 0 if draft.columns.get("choices") else sum(_holds_only(text, row) for text, row in pairs)
    doubts = (
        ("names the right answer", giveaway_count, _FEW),
        ("holds the right option and no other", only_count, MOST),
    )
    for doubt, count, least in doubts:
        if count > 1 and count >= least * len(pairs):
            draft.ask("context", f"{column} if it is to be shown: it {doubt} in {count:,} of {len(pairs):,} rows")
            break
    return None


def _parse(draft: Proposal) -> Sequence[Row]:
    """Parse the sample's questions with a right answer, as far as the draft reads them."""
    table = draft.sample.table
    with suppress(DatasetError):
        if not draft.open:
            reading = parse_choice(table, make_spec(table, "choice", draft.columns)).reading
            return [row for row in reading.rows if row.gold]
    return ()


def _gives_away(text: str, row: Row) -> bool:
    """Return whether a text says which option is right, such as `The answer is B`, whatever the order in which it
    counts.
    """
    right = next(option.text for option in row.question.options if option.number == row.gold).casefold()
    behind = [text[match.end() : match.end() + len(right) + 20] for match in _SAYS_SO.finditer(text)]
    return any(
        right in passage.casefold() or any(map(_LABEL.fullmatch, re.findall(r"\w+", passage)[:4])) for passage in behind
    )


def _holds_only(text: str, row: Row) -> bool:
    """Return whether the right option stands in a text, and none of the others does."""
    return [option.number for option in row.question.options if option.text.casefold() in text.casefold()] == [row.gold]


def _check_image(draft: Proposal, column: str) -> str | None:
    values = [value for value in draft.sample.filled(column) if value not in ([], ())]
    flags = [_FLAGS.get(str(value).strip().casefold()) for value in values]
    if None not in flags or 1 in flags:
        return f"which names no picture and marks {sum(map(bool, flags)):,} of {len(draft.sample.table.rows):,} rows"
    lists = sum(isinstance(value, (list, tuple)) for value in values)
    return f"which holds a list of pictures in {lists:,} rows: none is shown" if lists else None


def _check_subject(draft: Proposal, column: str) -> str | None:
    texts = [str(value) for value in draft.sample.filled(column)]
    words = sum(len(text.split()) for text in texts)
    return f"which holds sentences, such as {texts[0]!r:.40}" if words > _TOPIC_WORDS * len(texts) else None


def _check_id(draft: Proposal, column: str) -> str | None:
    values = [str(value) for value in draft.full_sample.filled(column)]
    rows = sum(not isinstance(row.record, str) for row in draft.table.rows)
    if len(values) < rows:
        return f"which is empty in {rows - len(values):,} rows"
    twice = len(values) - len(set(values))
    return f"which has repeated values in {twice:,} rows" if twice else None


def _check_all(parse: Callable[[Any], object], reason: str, draft: Proposal, column: str) -> str | None:
    bad = next((value for value in draft.full_sample.filled(column) if parse(value) is None), None)
    return None if bad is None else f"which holds {bad!r:.40}, {reason}"


_CHECKS: Mapping[str, Callable[[Proposal, str], str | None]] = {
    "context": _check_context,
    "image": _check_image,
    "year": partial(_check_all, parse_whole_number, "no year"),
    "split": partial(_check_all, lambda value: parse_split(str(value)), "not train, dev or test"),
    "id": _check_id,
    "subject": _check_subject,
}
"""Field -> what says why a column of its name is not read; None if it is."""
