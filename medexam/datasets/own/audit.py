"""A proposal of how a file is read, and the audit that accounts for each of its cells.

It knows rules of conservation: what no question shows is harmless by its name, repeats what is shown, or is asked for.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import yaml

from medexam.datasets.own.options import is_run, own_labels
from medexam.datasets.own.questions import KEYED, NO_PICTURE, STANDARD, columns_in
from medexam.datasets.own.tables import SourceTable, value_of
from medexam.datasets.own.texts import find_groups, in_order, pattern, plain_name, unpack, word_lists
from medexam.datasets.rows import Row, TaskRow
from medexam.questions import Language
from medexam.specs import DatasetSpec
from medexam.specs.dataset import NOT_READ, KeySpec, OwnKind

LOOKED_AT = 400
"""Rows, spread over the file, that show what its columns are; all rows are then read so."""


@dataclass
class Proposal:
    """How a file of questions may be read, as far as that is known, and what it gives."""

    table: SourceTable
    answers: KeySpec | None
    """The key in another file; None if there is none."""
    kind: OwnKind
    columns: dict[str, Any] = field(default_factory=dict)
    """As the spec has them; None reads a field from no column."""
    language: Language | None = None
    """None if it is not told, or none that ships."""
    notes: list[str] = field(default_factory=list)
    """What was recognised, a line each."""
    open: dict[str, str] = field(default_factory=dict)
    """Key of the `dataset` part of a spec -> what has to be decided before a run."""
    rows: Sequence[Row] | Sequence[TaskRow] = ()
    """The questions so read; empty if `columns` are open."""
    accounts: dict[str, str] = field(default_factory=dict)
    """Column -> why no field has to be read from it, where the rows say so."""

    def __post_init__(self) -> None:
        self.size = len(self.table.rows)
        self.sample = replace(self.table, rows=self.table.rows[:: max(1, self.size // LOOKED_AT)])
        """Rows that are spread over the table."""
        self.cells: defaultdict[str, list[tuple[int, list[Any]]]] = defaultdict(list)
        """Column, or field within it -> rows of the sample by their numbers, with the values there, and another."""
        for row in self.sample.rows:
            for column, cell in row.record.items() if isinstance(row.record, Mapping) else ():
                for path, values in _leaves(cell, column).items():
                    self.cells[path] += [(row.number, values)] if values else []
        for path, filled in self.cells.items():
            texts = {str(value) for _, values in filled for value in values}
            if len(texts) < 2 and len(self.sample.rows) < self.size:
                others = (value for cell in self.table.filled(path) for value in _leaves(cell, path).get(path, []))
                filled += [(0, [value]) for value in islice((each for each in others if str(each) not in texts), 1)]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns; instead of one that holds records, the fields of these."""
        return tuple(inner for column in self.table.columns for inner in self._within(column, 0))

    def ask(self, name: str, question: str) -> None:
        """Leave a field of `columns` open."""
        self.columns[name] = None
        self.open[f"columns.{name}"] = " ".join(question.split())

    def read_from(self, field: str) -> list[str]:
        """List the columns that a field is read from."""
        return columns_in(self.columns.get(field))

    def unused(self) -> list[str]:
        """List the columns that no field is read from."""
        used = {column for value in self.columns.values() for column in columns_in(value)}
        return [column for column in self.names if column not in used]

    def spec(self, columns: Mapping[str, Any]) -> DatasetSpec:
        """Make the spec that reads the table so; None as a column switches its field off, where a field can be."""
        stated = {name: NOT_READ if column is None else column for name, column in columns.items() if name in STANDARD}
        stated |= {name: column for name, column in columns.items() if column is not None}
        source = {"kind": self.kind, "path": Path(self.table.source), "answers": self.answers}
        return DatasetSpec.model_validate({**source, "columns": stated})

    def lines(self, path: Path) -> list[str]:
        """Write the `dataset` part of a spec that reads `path` as proposed; open lines end in `# decide:`."""

        def dump(key: str, value: Any) -> str:
            text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=float("inf"))
            text = "" if value is None else text.strip().removesuffix("...").strip()
            return f"{key.rpartition('.')[2]}: {text}" + (f"  # decide: {self.open[key]}" if key in self.open else "")

        answers = None if self.answers is None else self.answers.model_dump(mode="json", exclude_none=True)
        tree = {"kind": self.kind, "path": str(path), "language": self.language, "answers": answers}
        lines = [dump(name, value) for name, value in tree.items() if value is not None]
        lines += ["columns:", *(f"  {dump(f'columns.{name}', value)}" for name, value in self.columns.items())]
        return [*lines, *([dump("skip_bad", False)] if "skip_bad" in self.open else [])]

    def _within(self, column: str, depth: int) -> Iterator[str]:
        values = self.sample.filled(column)

        def is_record(value: Any) -> bool:
            """Return whether a value is a record, and no mapping of labels and texts."""
            if not isinstance(value, Mapping) or "answer_start" in value:
                return False
            lists = [isinstance(value.get(name), list) for name in ("text", "label")]
            groups = find_groups(map(str, value))
            return not all(lists) and (any(lists) or not groups or len(groups[0][0]) < len(value) - 1)

        if values and depth < 2 and all(map(is_record, values)):
            for name in dict.fromkeys(name for record in values for name in record):
                yield from self._within(f"{column}.{name}", depth + 1)
        else:
            yield column


_SUSPECT = [
    re.compile(form, re.MULTILINE)
    for form in (r"[\x00-\x08\x0b-\x1f<!\[({@\\ÃÂâ\ufffd&:✓✔✅☑√]", r"\? +\w", r"\.[A-Za-z]", r"['\"]$")
]
"""What every odd text has: one look that decides for most rows. A form alone is found in a tenth of the time."""
_SPEAKS = (
    r"\b{}\W+(?:(?:the|la|der|die|an?)\W+)?(?:PICTURE)\b|\b(?:PICTURE)\W+(?:below|above|shown|attached|adjunta|\d)"
)
_UNCLEAN = {
    "unclean": "(?m){}",
    "unclean option": "(?m){}",
    "file": "{}",
    "void": r"(?m)[(\[]\s*(?:\w+\s){0,3}{}\s*[)\]]|[?？]\W*(?:\w+\s){0,3}{}[.!]?$",  # noqa: RUF001
}
"""Pattern of what no reader would be shown, and where it stands."""
_CUE = r".*\b{}(?:\s\w+){0,2}\W+(\w.*)"
"""What says which option is right, at the end of a line."""
_NOTHING = frozenset(("none", "null", "na", "nil", "empty", "?", "x"))
"""What may be an option, or say that there is none."""
_SHORT = 30
"""Characters of a context that may be none."""
_COUNTING = re.compile(r"\s*([A-Za-z _-]{0,20}?)(\d{1,9})\s*")
"""What numbers a row, perhaps behind a word."""
_COUNTED = 0.99
"""The share of rows that have the usual number of options where no row is doubtful."""
_FEW_ROWS = 8
"""Rows from which on a value of a fifth of them is rare."""
_BY_CHANCE = 3
"""Options of one row that may begin with letters in order, as species do."""
_LONGEST_TOPIC, _LONGEST_CONSTANT = 6, 3
"""Words of a cell on average that still name something; and of one that all rows have."""


def ask_of_rows(draft: Proposal) -> None:
    """Ask for rows that a column marks as annulled, deleted or not scored, and for cells that mean the cell above."""
    texts = {name for field in ("stem", "options", "context", "answer") for name in draft.read_from(field)}
    hints, facts, decision = word_lists("hints"), list[str](), ""
    for column in filter(lambda name: name not in texts, draft.names):
        values = Counter(str(value).strip() for value in draft.table.filled(column))
        words = {*plain_name(column).split("_")}
        says_void = pattern("void", r"(?:is |was |not )?{}(?:\W+\w+){0,5}\W*").fullmatch
        void = list(filter(says_void, values))
        if not void and words & {*hints["void"]} and (len(values) > 1 or 0 < values.total() < draft.size):
            void = [value for value, _ in values.most_common()[:-6:-1]]
        if void:
            decision = decision or f"{{{column}: [{void[0]}]}} if such rows are not asked, or {{}}"
            facts.append(f"{column} says {', '.join(f'{value} in {values[value]:,}' for value in void)}")
            draft.accounts[column] = "ignored: leave_out decides"
    if facts:
        draft.ask("leave_out", f"{decision}: {'; '.join(facts)} of {draft.size:,} rows")
    above = []
    for column in (each for name in ("context", "subject", "exam", "year", "stem") for each in draft.read_from(name)):
        # A column that is filled once a group.
        cells = [value_of(row.record, column) for row in draft.table.rows]
        follows = any(a is not None and b is None for a, b in pairwise(cells))
        repeats = any(a is not None and a == b for a, b in pairwise(cells))
        if follows and not repeats and 2 * cells.count(None) >= draft.size:
            above.append(f"{column} is empty in {cells.count(None):,} of {draft.size:,} rows")
    if above:
        draft.ask("as_above", f"the columns whose empty cells mean the cell above, or []: {'; '.join(above)}")


def audit(draft: Proposal) -> None:
    """Account for the columns of a proposal, and ask for those that are not, and for odd texts."""
    accounts = dict(_account(draft))
    # An account that ends in a quotation mark only shows what a column holds: its owner has to say what it is.
    open_ones = {column: reading for column, reading in accounts.items() if reading.endswith('"')}
    wide = max(map(len, accounts), default=0)
    draft.notes[1:1] = [
        f"{column:{wide}}  {'to decide: ' if column in open_ones else ''}{accounts[column]}" for column in accounts
    ]
    ignored = [column for column, reading in accounts.items() if reading.startswith("ignored")]
    draft.columns |= {"ignored": ignored} if ignored else {}
    if open_ones and not {f"columns.{name}" for name in ("stem", "options", "answer", "choices")} & draft.open.keys():
        listed = f": [{', '.join(ignored)}] and perhaps more" if ignored else ""
        facts = "; ".join(f"{column} ({reading})" for column, reading in open_ones.items())
        draft.ask(
            "ignored",
            f"the columns that no question needs{listed}; or read them as context, image, answer ...: {facts}",
        )
    rows = [row for row in draft.rows if isinstance(row, Row)]
    doubts = dict(_doubts(draft, rows)) if rows else {}
    if doubts:
        facts = "; ".join(f"{topic}: {detail}" for topic, detail in doubts.items())
        draft.ask("accepted", f"[{', '.join(doubts)}] if this is as it should be, else correct the file: {facts}")


def _account(draft: Proposal) -> Iterator[tuple[str, str]]:
    """Yield each column with what it is read as, why it is ignored, or examples in quotation marks."""
    used = {column: field for field in STANDARD for column in draft.read_from(field)}
    questions = {row.question.number: row for row in draft.rows if isinstance(row, Row)}
    for path, filled in draft.cells.items():
        outer = max((name for name in used if f"{path}.".startswith(f"{name}.")), key=len, default="")
        field = "answer" if path == KEYED else used.get(outer)
        if field == "options" and path != outer and plain_name(path) not in word_lists("records")["labels"]:
            # What stands within a cell of options are these, or says something else.
            cells = ((values, questions[n].question.options) for n, values in filled if n in questions)
            ends = ((tuple(_fold(option.text) for option in options), values) for values, options in cells)
            is_option = all(_fold(value).endswith(texts) for texts, values in ends for value in values)
            field = field if is_option or draft.kind != "choice" else None
        yield path, field or draft.accounts.get(path) or _account_for(path, filled, questions, draft)


def _account_for(
    path: str, rows: Sequence[tuple[int, list[Any]]], questions: Mapping[int, Row], draft: Proposal
) -> str:
    """Account for a column that no field is read from: by what its name says, what all rows say, or what is shown."""
    words, hints = {word for part in path.split(".") for word in plain_name(part).split("_")}, word_lists("hints")
    kinds = {name for name in hints if words & {*hints[name]}}
    texts = [" ".join(map(str, values)) for _, values in rows]
    different = list(dict.fromkeys(texts))
    examples = ", ".join(f'"{text:.40}"' for text in different[:3])
    if {text.strip().casefold() for text in texts} <= {*NO_PICTURE} and "void" not in kinds:
        return "ignored: empty, or no in all rows"
    if "media" in kinds or any(
        pattern("file").search(text) or plain_name(text) in hints["media"] for text in different
    ):
        return f"{len(rows):,} rows have {examples}"
    if "explanation" in kinds and 2 * len(rows) >= len(draft.sample.rows):
        return "ignored: an explanation"
    length = sum(len(text.split()) for text in texts) / len(texts)
    rarest = min(Counter(texts).values())
    says_no = any(text.strip().casefold() in NO_PICTURE for text in different)
    is_flag = len(different) == 2 and (says_no or _FEW_ROWS <= len(texts) >= 5 * rarest)
    is_plain = "harmless" in kinds and not is_flag and words <= {*hints["harmless"], *hints["beside"]}
    outer = next(iter(draft.sample.filled(path.partition(".")[0])), None)
    # Records beside the questions are no fact of each row.
    are_records = isinstance(outer, list) and any(isinstance(each, Mapping) for each in outer)
    is_constant = len(different) == 1 and len(rows) == len(draft.sample.rows) and not are_records
    if is_constant and (length <= _LONGEST_CONSTANT or is_plain):
        return f"ignored: {different[0]:.40} in all rows"
    if all(number in questions and _repeats(values, questions[number]) for number, values in rows):
        return "ignored: repeats what is shown"
    sentences = sum(len(text.split()) > _LONGEST_CONSTANT and text.rstrip()[-1:] in ".?!。" for text in texts)
    if is_plain and length <= _LONGEST_TOPIC and 2 * sentences < len(texts):
        return "ignored: its name is harmless"
    counts = [(match[1], int(match[2])) for match in map(_COUNTING.fullmatch, texts) if match]
    is_count = len(counts) == len(texts) == len(draft.sample.rows) and counts == sorted({*counts}) and counts[0][1] < 2
    if is_count and counts[0][0] == counts[-1][0] and not {"option", "choice"} & words:
        return "ignored: numbers the rows"
    return examples


def _leaves(value: Any, path: str) -> dict[str, list[Any]]:
    """List the values within a cell that say something, by the path to them."""
    value = unpack(value)
    by_path: dict[str, list[Any]] = {}
    each_in = value if isinstance(value, (list, tuple)) else [value]
    for name, each in value.items() if isinstance(value, Mapping) else ((None, each) for each in each_in):
        within = path if name is None else f"{path}.{name}"
        if isinstance(each, (Mapping, list, tuple)):
            for deeper, values in _leaves(each, within).items():
                by_path.setdefault(deeper, []).extend(values)
        elif each is not None and each == each and str(each).strip():
            by_path.setdefault(within, []).append(each)
    return by_path or {path: []}


def _repeats(values: Sequence[Any], row: Row) -> bool:
    """Return whether values stand in the question of a row; of its options all, or right ones alone."""
    question, right = row.question, {row.gold, *row.others}
    options = {_fold(option.text): option.number for option in question.options}
    lines, texts = [_fold(question.context or ""), _fold(question.stem), *options], [*map(_fold, values)]
    numbers = {options[text] for text in texts if text in options}
    stand_there = all(text in lines or (len(text) > 12 and text in " ".join(lines)) for text in texts)
    return stand_there and (numbers <= right or len(numbers) == len(options))


def _fold(value: Any) -> str:
    return " ".join(str(value).split()).casefold()


def _doubts(draft: Proposal, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield what is odd in the questions as they would be shown."""
    some = rows[:: max(1, len(rows) // LOOKED_AT)]
    options = {row.question.number: row.question.options for row in rows}

    def show(number: int) -> str:
        return f"{' / '.join(option.text for option in options[number]):.120}"

    if draft.table.doubt:
        yield "sheet", draft.table.doubt
    usual = Counter(map(len, options.values())).most_common(1)[0][0]
    odd = [number for number, texts in options.items() if len(texts) != usual]
    # Records and columns say where each option ends.
    column = draft.columns.get("options")
    are_apart = isinstance(column, list) or any(path.startswith(f"{column}.") for path in draft.cells)
    if are_apart or len(odd) <= (1 - _COUNTED) * len(rows):
        fewest = min(map(len, options.values()))
        empty = [number for number, texts in options.items() if texts[-1].text.casefold() in _NOTHING]
        always = len(empty) == len(rows) and options[empty[0]][-1].text.casefold() != "none"
        odd = [number for number in empty if len(options[number]) > fewest or always]
    if odd:
        yield "options", f"{len(odd):,} rows have not {usual} options, such as row {odd[0]}: {show(odd[0])}"
    first, second = ({texts[place].text for texts in options.values()} for place in (0, 1))
    if len(first) == 1 < len(second) and len(rows) >= _BY_CHANCE:
        yield "options", f"{min(first)!r} is the first option of all rows"
    unclean = [(row.question.number, text) for row in rows for text in _find_unclean(row)]
    if unclean:
        number, text = unclean[0]
        yield "texts", f"{len(unclean):,} texts are not clean, such as that of row {number}, which has {text!r:.40}"
    media = word_lists("hints")["media"]
    speaks = pattern("points at", _SPEAKS.replace("PICTURE", f"(?:{'|'.join(media)})"))
    silent = [row.question for row in rows if not row.question.image]
    # The words alone are found in a tenth of the time.
    silent = [each for each in silent if not {*re.findall(r"\w+", each.stem.casefold())}.isdisjoint(media)]
    spoken = [each.number for each in silent if speaks.search(each.stem)]
    if spoken:
        yield "pictures", f"{len(spoken):,} questions speak of a picture and have none, such as row {spoken[0]}"
    labels = {n: [*filter(None, own_labels([option.text for option in texts]))] for n, texts in options.items()}
    labelled = [n for n, own in labels.items() if len(own) >= _BY_CHANCE and is_run(own) and own == in_order(own)]
    words = {tuple(option.text.split()[0] for option in row.question.options) for row in some}
    if len(words) == 1 and all(" " in each.text for each in rows[0].question.options) and len(rows) >= _BY_CHANCE:
        labelled = list(options)
    if any(len(options[number]) > _BY_CHANCE for number in labelled) or 2 * len(labelled) >= len(rows):
        facts = f"{len(labelled):,} rows have options after letters; marks: labels cuts them"
        yield "labels", f"{facts}: {show(labelled[0])}"
    telling = sum(map(tells_answer, some))
    if telling > 2 and 2 * telling >= len(some):
        yield "signs", f"{telling:,} questions begin or end in what the right option is called, or name it alone"
    elif sign := _find_telltale(some):
        yield "signs", f"right or wrong options alone have {sign!r}"


def tells_answer(row: Row) -> bool:
    """Return whether a question begins or ends in what a right option is called, or names it alone with its context."""
    stem, right = row.question.stem.casefold().strip(" .()[]"), {row.gold, *row.others}
    question = f"{row.question.context or ''} {row.question.stem}"
    # `A man` names no option.
    letters = re.findall(r"\b(?!A [a-z\d])[A-T]\b", question)
    first = re.match(r"\W*(?!A [a-z\d])(\w+)(?![\w-]|\.\d)", row.question.stem)
    ends = {*re.findall(r"(?<![\w.,-])\w+$", stem), *([first[1].casefold()] if first else [])}
    options = [
        (each.number, ascii_uppercase[each.number - 1], each.text.casefold().rstrip(" ."))
        for each in row.question.options
    ]
    called = {n for n, letter, text in options if ends & {letter.lower(), str(n)}}
    lettered = {n for n, letter, _ in options if letter in letters}
    by_text = {n for n, _, text in options if len(text) > _BY_CHANCE and text in question.casefold()}
    return bool(called & right) or right in (lettered, by_text)


def _find_unclean(row: Row) -> Iterator[str]:
    """Find what no reader would be shown: signs of a file, brackets around all options, and a context of few words."""
    context, options = row.question.context or "", [option.text for option in row.question.options]
    listed = "\n".join(options)
    text = f"{row.question.stem}\n{context}\n{listed}"
    for name, form in _UNCLEAN.items() if any(form.search(text) for form in _SUSPECT) else ():
        if match := pattern(name, form).search(listed if name == "unclean option" else text):
            yield match[0]
    names = {*ascii_lowercase[: len(options)], *map(str, range(1, len(options) + 1)), *map(str.casefold, options)}
    last_words = {name.rpartition(" ")[2] for name in names}
    for line in f"{row.question.stem}\n{options[-1]}\n{context}".splitlines():
        # Few lines end in the name of an option.
        names_option = last_words.issuperset(re.findall(r"\w+", line[-30:].casefold())[-1:])
        cue = pattern("says", _CUE).match(line) if names_option else None
        if cue is not None and cue[1].strip("()[]. ").casefold() in names:
            yield line
    if context and len(context) < _SHORT and len(context.split()) <= _BY_CHANCE:
        yield context


def _find_telltale(rows: Sequence[Row]) -> str:
    """Find what half of the right options and few others begin or end in, or the reverse; an empty text if nothing."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for row in rows:
        for option in row.question.options:
            text, words = option.text, option.text.split()
            # What an option has not is an empty text, which all have.
            kinds = {"capital letters" * text.isupper(), "a small first letter" * text[0].islower()}
            signs = {end for end in (text[0], text[-1]) if not end.isalnum() and len(text) > 1}
            signs |= {words[0], words[-1], " ".join(words[-2:])} if len(words) > 1 else set()
            (right if option.number in (row.gold, *row.others) else wrong).update(
                {"", *signs, *(kinds if len(text) > 3 else ())}
            )
    often = [
        (times, len(token), token)
        for having, others in ((right, wrong), (wrong, right))
        for token, times in having.items()
        if times > 2
        and (
            (2 * times >= having[""] and 10 * others[token] <= others[""])
            or (times > _BY_CHANCE and token not in others and not token[-1].isalnum())
        )
    ]
    return max(often, default=(0, 0, ""))[2]
