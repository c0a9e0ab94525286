"""Looks at a table of questions and proposes how a spec reads it: what `medexam init` writes.

Names say what a column may be, and the rows have to agree, as a run would read them. What is doubtful stands in the
spec as a line to fill in. A run never guesses: it reads what its spec says.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, get_args

from medexam.datasets.own.audit import Proposal, ask_of_rows, audit, tells_answer
from medexam.datasets.own.options import WAYS, OpenFieldError, read_options
from medexam.datasets.own.questions import (
    KEYED,
    NO_PICTURE,
    STANDARD,
    Columns,
    add_key,
    columns_in,
    describe_bad,
    parse_choice,
    parse_words,
    read_questions,
)
from medexam.datasets.own.tables import CellError, SourceTable, TableRow, read_file, split_faults, try_each, value_of
from medexam.datasets.own.texts import (
    find_groups,
    find_language,
    find_named,
    unpack,
)
from medexam.datasets.rows import Row
from medexam.errors import DatasetError
from medexam.process import gc_seldom
from medexam.questions import Language
from medexam.specs.dataset import ColumnsSpec, KeySpec, OwnKind

_MOST, _HALF = 0.9, 0.5
"""The share of rows that show what a column is, the others being bad; and the share that it may be."""
_ENOUGH_ROWS = 8
"""Rows of which only one answer is strange."""
_SLIPS = 0.2
"""The share of questions with several right answers below which these may be slips."""
_FEW_WORDS, _TOPIC_WORDS = 5, 6
"""Words of a context on average, at least; and of a topic, at most."""
_MARKS = re.compile(r"(?:[A-Ja-j]|\d)(?:[\s,;|/]+(?:[A-Ja-j]|\d))*|[A-J]{2,5}")
"""What names options, or marks them, and is no answer in words."""
_LONGEST_KEY = 60
"""Characters of a text that only says which option is right."""
_AGREES = "ignored: says what the answer says"
_NUMBERED = re.compile(r"[^\w?]*(?:[A-Za-z]*[^\w?]*_*\d{1,4}|[A-Za-z])[^\w?]*")
"""What numbers questions."""


class _Fit(NamedTuple):
    """How the questions read with some of `columns`."""

    columns: Mapping[str, Any]
    ways: Sequence[Mapping[int, Sequence[int | None] | None]] = ()
    """Number of a row -> its right options, for each way to read the answers."""
    share: float = 0
    """Of the rows, those that give a question."""
    asks: tuple[str, str] | None = None
    """The field that decides between several ways, and what is asked."""

    @property
    def answer(self) -> str:
        """The column of the answer for messages."""
        return ", ".join(columns_in(self.columns.get("answer")))


@gc_seldom()
def propose(path: Path, kind: OwnKind | None = None, answers: KeySpec | None = None) -> Proposal:
    """Propose how the questions in a file may be read, as those of `kind` or of the kind that they look like.

    `answers`: their key in another file. Raises `DatasetError` if a file cannot be read.
    """
    draft = Proposal(add_key(read_file(path), answers), answers, kind or "choice")
    draft.notes.append(f"{draft.table.format}, {draft.size:,} rows")
    stem = _find_stem(draft)
    if stem is None:
        draft.ask("stem", f"which column holds the question: {', '.join(draft.names)}")
    else:
        draft.columns["stem"] = stem
        if draft.kind == "choice":
            _propose_choice(draft)
        elif KEYED not in draft.names:
            filled = list(filter(draft.sample.filled, find_named("answer", draft.names)))
            draft.columns |= {"answer": filled[0]} if filled else {}
        if draft.kind == "spans" and not find_named("context", draft.names):
            draft.ask("context", f"which column holds the text: {', '.join(draft.names)}")
        _propose_others(draft)
    if not {"answer", "choices", "options"} & draft.columns.keys() and KEYED not in draft.names:
        _ask_answer(draft)
    names = (name for field in ("stem", "options", "context") for name in draft.read_from(field))
    language = find_language(str(value) for name in names for value in draft.sample.filled(name))
    note = "en, since the texts do not tell" if language is None else f"{language}, for which prompts are in English"
    if language in get_args(Language):
        draft.language = language  # type: ignore[assignment]
        note = f"{language}, recognised by its words; it decides prompts and retrieval"
    draft.notes.append(f"language: {note}")
    ask_of_rows(draft)
    # The rows are read as a run reads them; both at once would take much memory.
    draft.table = draft.sample
    _read(draft)
    audit(draft)
    draft.columns = {name: draft.columns[name] for name in ColumnsSpec.model_fields if name in draft.columns}
    return draft


def _share(is_so: Callable[[Any], object], values: Sequence[Any]) -> float:
    return sum(bool(is_so(value)) for value in values) / len(values) if values else 0.0


def _share_read(draft: Proposal, stem: str, columns: Any = None) -> float:
    """Return the share of the rows that have options in `columns`, or behind the text in the column `stem`."""
    spec = ColumnsSpec()

    def read(row: TableRow) -> bool:
        try:
            options = read_options(str(value_of(row.record, stem) or ""), columns, row, spec)
        except CellError:
            return False
        return len(options.texts) > 1

    filled = columns_in(columns) or [stem]
    rows = [row for row in draft.sample.rows if any(value_of(row.record, name) is not None for name in filled)]
    return _share(read, rows)


def _find_stem(draft: Proposal) -> str | None:
    """Find the column of the questions by its name, or the longest texts of a table without header."""
    cells = {name: [cell for cell in draft.sample.filled(name) if isinstance(cell, str)] for name in draft.names}
    texts = [name for name in cells if _share(_NUMBERED.fullmatch, cells[name] or "1") < _HALF]
    if candidates := find_named("stem", texts):
        return candidates[0]
    has_header = draft.names[:1] != ("1",)
    return None if has_header else max(texts, key=lambda name: sum(map(len, cells[name])), default=None)


def _propose_choice(draft: Proposal) -> None:
    """Put options and answer; ask for options if there seem to be none."""
    answer_columns = [KEYED] if KEYED in draft.table.columns else find_named("answer", draft.names)
    likely: list[_Fit] = []
    for options in _find_sources(draft):
        fits = _find_fits(draft, options, answer_columns)
        likely = likely or fits or [_Fit(options)]
        if any(fit.share >= _HALF for fit in fits):
            likely = fits
            break
    answer = next(filter(draft.sample.filled, answer_columns), None)
    if not likely and answer is not None:
        draft.columns |= {} if answer == KEYED else {"answer": answer}
        example, others = f"{draft.sample.filled(answer)[0]!s:.40}", ", ".join(draft.unused()) or "none is left"
        ways = "`between` says what stands between them; `choices: [...]` are those of every question"
        kinds = f"or set kind: short_answer or spans, if answers such as {example} are words"
        draft.ask("options", f"which column holds the options: {others}; {ways}; {kinds}")
    if not likely:
        return
    if "options" in draft.table.columns:
        draft.columns["options"] = None
    fits = [fit for fit in likely if fit.share >= _HALF] or likely[:1]
    if len(fits) > 1:
        fits = [_fit(draft, fit.columns, draft.table) for fit in fits]
        draft.accounts |= {name: _AGREES for fit in fits for name in columns_in(fit.columns.get("answer"))}
    best = next((fit for fit in fits if fit.asks is None and fit.ways), fits[0])
    draft.columns |= {name: value for name, value in best.columns.items() if value != KEYED}
    if best.asks is not None:
        draft.ask(*best.asks)
    elif not best.ways:
        _ask_answer(draft, f"{best.answer} names no option; " if best.answer else "")
    for fit in fits if best.ways else ():
        # All columns that look like the answer have to agree in every row.
        differing = [[n for n, gold in way.items() if gold and best.ways[0].get(n, gold) != gold] for way in fit.ways]
        if differing and all(differing):
            fewest = min(differing, key=len)
            facts = f"they contradict each other in {len(fewest):,} of {len(draft.table.rows):,} rows"
            place = f"{draft.table.rows[fewest[0] - 1].place}, where {best.answer} says {best.ways[0].get(fewest[0])}"
            draft.ask("answer", f"{' or '.join(each.answer for each in fits)}: {facts}, such as {place}")


def _find_sources(draft: Proposal) -> Iterator[Mapping[str, Any]]:
    """Find where the options may stand, the likeliest first."""
    stem, filled, columns = draft.columns["stem"], draft.sample.filled, draft.unused()
    in_one = (name for name in find_named("options", columns) if _share_read(draft, "", name) >= _MOST)
    yield from ({"options": name} for name in in_one)
    groups = [(group, kind) for group, kind in find_groups(columns) if _share_read(draft, "", group) >= _HALF]
    yield from ({"options": [*group]} for group, kind in groups if kind == "options")
    wrong = next((group for group, kind in groups if kind == "wrong"), tuple(find_named("wrong", columns)[:1]))
    right = [column for column in find_named("answer", columns) if column not in wrong]
    if wrong and right and not any(isinstance(unpack(value), (list, Mapping)) for value in filled(right[0])):
        yield {"options": [right[0], *wrong], "shuffled": True, "answer": right[0], "answer_as": "text"}
    if _share_read(draft, stem) >= _MOST:
        yield {}
    if stem.isdigit():
        # Without a header, one reading of all cells has to fit: options behind the stem, and the answer behind them.
        behind = draft.names[draft.names.index(stem) + 1 :]
        rows = [{"options": [*behind[:n]], "answer": behind[n]} for n in range(2, len(behind))]
        rows += [{"answer": name} for name in behind[:1]]
        fitting = [row for row in rows if _fit(draft, row).share == 1]
        if len(fitting) == 1 and fitting[0]["answer"] == behind[-1]:
            yield fitting[0]


def _find_fits(draft: Proposal, options: Mapping[str, Any], names: Sequence[str]) -> list[_Fit]:
    """Find how the questions may be answered, by columns of known names or by marks; the best fit first."""
    if "answer" in options:
        return [_fit(draft, options)]
    used = (draft.columns["stem"], *columns_in(options.get("options")))
    marks: list[Any] = [list(group) for group, _ in find_groups(name for name in draft.names if name not in used)]
    if isinstance(column := options.get("options"), str):
        records = [each for row in draft.sample.filled(column) if isinstance(row, list) for each in row]
        marks += [f"{column}.{name}" for name in {n: 0 for each in records if isinstance(each, Mapping) for n in each}]
    fits = [_fit(draft, {**options, "answer": name}) for name in names if name not in used]
    by_mark = (_fit(draft, {**options, "answer": mark, "answer_as": "one_hot"}) for mark in marks)
    return sorted([*fits, *(fit for fit in by_mark if fit.share >= _MOST)], key=lambda fit: -fit.share)


def _fit(draft: Proposal, columns: Mapping[str, Any], table: SourceTable | None = None) -> _Fit:
    """Read the sample, or a table, as a run with these columns would."""
    table = draft.sample if table is None else table
    tree = {**dict.fromkeys(STANDARD), "stem": draft.columns["stem"], **columns}
    if KEYED in table.columns:
        tree.pop("answer", None)
    try:
        rows = parse_choice(table, draft.spec(tree))[0].rows
    except OpenFieldError as error:
        if error.field == "marks":
            fit = _fit(draft, {**columns, "marks": "labels"}, table)
            return _Fit(fit.columns, fit.ways, fit.share, (error.field, error.detail))
        most = max(sum(gold is not None for gold in way.values()) for way in error.ways)
        return _Fit(columns, error.ways, most / len(table.rows), (error.field, error.detail))
    except DatasetError:
        return _Fit(columns)
    golds = {row.question.number: (row.gold, *row.others) for row in rows}
    return _Fit(columns, [golds] if golds else [], len(rows) / len(table.rows))


def _ask_answer(draft: Proposal, reason: str = "") -> None:
    names = ", ".join(draft.unused()) or "none is left"
    key = "or set dataset.answers: {path: key.csv, on: id}"
    draft.ask("answer", f"which column holds the right answer: {reason}{names}; {key}")


def _propose_others(draft: Proposal) -> None:
    """Put the columns of the other fields, and switch off those that only have a field's name."""
    fields = ["context", "explanation", "image", "subject", "year", "exam", "id", "split"]
    if draft.kind != "choice":
        fields = ["context", "subject", "id", "split"]
    for name in fields:
        for column in filter(draft.sample.filled, find_named(name, draft.unused())):
            wrong = _check(draft, name, column) if draft.kind == "choice" or name in ("id", "split") else ""
            if not wrong:
                draft.columns.setdefault(name, column)
                break
            draft.notes.append(f"{name}: not column {column}, which {wrong}")
            if column in STANDARD[name]:
                draft.columns[name] = None


def _check(draft: Proposal, field: str, column: str) -> str:
    """Return why a column of a field's name is not read as that field; empty if it is."""
    texts = [" ".join(map(str, columns_in(value))) or str(value) for value in draft.sample.filled(column)]
    words = sum(len(text.split()) if text.isascii() else len(text) for text in texts) / len(texts)
    if field in ("id", "year", "split"):
        columns = Columns(draft.spec({"stem": draft.columns["stem"], field: column}).columns, draft.table, ())
        read = columns.key if field == "id" else columns.exam
        _, faults = split_faults(try_each(lambda row: read(row.record), list(draft.table.rows)))
        return f"{faults[0].place} {faults[0].detail}" if faults else ""
    if field == "context":
        rows: Sequence[Row] = ()
        with suppress(DatasetError):
            spec = draft.spec({**draft.columns, "context": column})
            rows = () if draft.open else parse_choice(draft.sample, spec)[0].rows
        rows = [row for row in rows if row.question.context]
        telling = sum(map(tells_answer, rows))
        if 2 * telling > len(rows):
            is_key = 4 * telling >= 3 * len(rows) and max(map(len, texts)) <= _LONGEST_KEY
            draft.accounts |= {column: _AGREES} if is_key else {}
            return f"tells the right answer in {telling:,} of {len(rows):,} rows"
        is_other = words < _FEW_WORDS
    elif field == "image":
        lists = any(isinstance(value, (list, tuple)) for value in draft.sample.filled(column))
        is_other = lists or {text.strip().casefold() for text in texts} <= {*NO_PICTURE, "true", "1", "yes", "1.0"}
    else:
        is_other = field == "subject" and words > _TOPIC_WORDS
    return f"holds {texts[0]!r:.40}, no {field}" if is_other else ""


def _read(draft: Proposal) -> None:
    """Put the questions of the whole file as drafted, with what is seen of them; none if something is open."""
    columns = draft.columns
    if draft.kind == "choice" and not {"options", "choices"} & columns.keys() and "stem" in columns:
        draft.notes.append("options: at the end of the question")
    if draft.open.keys() - {"columns.leave_out", "columns.as_above"}:
        return
    spec = draft.spec(columns)
    answer = ", ".join(draft.read_from("answer")) or "the key"
    try:
        if draft.kind == "choice":
            reading, way = parse_choice(read_questions(spec), spec)
            draft.rows, faults = reading.rows, reading.faults
            draft.notes.append(f"answer: {answer}, read as {WAYS.get(way, 'nothing')}")
            _count(draft, reading.rows, answer)
        else:
            draft.rows, faults = parse_words(read_questions(spec), spec)
            draft.notes += [f"answer: {answer}", f"{len(draft.rows):,} questions"]
            if draft.rows and all(_MARKS.fullmatch(text) for row in draft.rows for text in row.gold.answers):
                draft.open["kind"] = f"choice, if answers such as {draft.rows[0].gold.answers[0]} name options"
    except OpenFieldError as error:
        draft.ask(error.field, error.detail)
        return
    except DatasetError as error:
        draft.ask("answer", str(error))
        return
    if faults:
        bad, advice = describe_bad(faults, draft.size)
        draft.notes.append(bad)
        draft.open["skip_bad" if draft.rows else "kind"] = f"{advice}: {bad}"


def _count(draft: Proposal, rows: Sequence[Row], answer: str) -> None:
    """Note how many options questions have and which are right; ask where that is strange."""
    counts = Counter(len(row.question.options) for row in rows).most_common()
    golds = Counter(row.gold for row in rows)
    draft.notes.append(", ".join(f"{n:,} rows of {options} options" for options, n in counts))
    draft.notes.append(
        f"right: {', '.join(f'option {n} {times:,} times' for n, times in sorted(golds.items(), key=str))}"
    )
    several = sum(bool(row.others) for row in rows)
    all_right = sum(1 < len(row.question.options) == len(row.others) + 1 for row in rows)
    facts = f"{several:,} of {len(rows):,} questions have several right answers, {all_right:,} of them all options"
    if several >= _SLIPS * len(rows) > 0 == all_right:
        draft.columns["several"] = "any"
        draft.notes.append(f"{facts}: one of them is enough, and `several: all` leaves these questions out")
    elif several:
        draft.ask("several", f"any, if one of them is enough, or all: {facts}")
    elif len(rows) >= _ENOUGH_ROWS and len(golds) == 1 and not draft.columns.get("shuffled"):
        draft.ask("answer", f"{answer}, if option {rows[0].gold} is right in all {len(rows):,} questions")
