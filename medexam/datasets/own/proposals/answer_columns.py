"""Which column of a table holds the right answers: one that all rows and all other such columns agree with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medexam.datasets.own.answers import RawAnswer, is_word_of_letters, read_answer_column
from medexam.datasets.own.columns import KEYED
from medexam.datasets.own.labels import Numbers, OpenFieldError, ReadOptions
from medexam.datasets.own.names import find_groups, find_named
from medexam.datasets.own.options import Settled
from medexam.datasets.own.proposals.cells import HALF, MOST
from medexam.datasets.own.proposals.drafts import Proposal, TableSample, columns_in, make_spec, show
from medexam.datasets.own.proposals.sources import Source
from medexam.datasets.own.tables import Record, SourceTable, value_of
from medexam.errors import DatasetError


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a column answers the questions."""

    settings: Mapping[str, Any]
    """Of `columns`: the column, and how it is read; empty if a sign at the options says what is right."""
    ways: Mapping[str, Mapping[int, Numbers]]
    """Ways in which it may be read -> place of a row -> its right options; several ways if that is open."""
    share: float
    """Of the questions, those that it answers."""
    asks: tuple[str, str] | None = None
    """The field that decides between several ways, and what is asked."""

    @property
    def golds(self) -> Mapping[int, Numbers]:
        """The right options in the first of the ways."""
        return next(iter(self.ways.values()), {})

    @property
    def name(self) -> str:
        """The column for messages."""
        return show(self.settings["answer"]) if self.settings else "the sign at the options"


def find_answer_columns(sample: TableSample, stem: str, source: Source, options: Sequence[Settled]) -> list[Fit]:
    """Find the columns that answer the questions, the likeliest first; without a fitting name only if all rows
    agree.
    """

    def fit(answer: Any, **settings: str) -> Fit:
        return fit_answers(sample.table, {"answer": answer, **settings}, options)

    if KEYED in sample.table.columns:
        return [fit(KEYED)]
    if source.settings.get("shuffled"):
        return [fit(source.settings["options"][0], answer_as="text")]
    other_columns = [column for column in sample.columns if column not in (stem, *source.used)]
    marks: list[Any] = [list(group.columns) for group in find_groups(other_columns)]
    if isinstance(column := source.settings.get("options"), str):
        records = [record for row in sample.filled(column) if isinstance(row, list) for record in row]
        names = dict.fromkeys(name for record in records if isinstance(record, Mapping) for name in record)
        marks += [f"{column}.{name}" for name in names]
    by_mark = [fit(mark, answer_as="one_hot") for mark in marks]
    if "right_mark" in source.settings:
        by_mark.append(fit_answers(sample.table, {}, options))
    fits = [fit(column) for column in find_named("answer", other_columns)] + [
        mark_fit for mark_fit in by_mark if mark_fit.share >= MOST
    ]
    if any(candidate.share > 0 or candidate.asks or sample.filled(candidate.name) for candidate in fits):
        return sorted(fits, key=lambda candidate: (candidate.share < HALF, candidate.share < MOST))
    behind = sample.table.columns.index(source.used[-1]) + 1 if sample.is_numbered and source.used else 0
    next_column = sample.table.columns[behind : behind + 1] if behind else ()
    return [
        candidate
        for candidate in map(fit, other_columns)
        if candidate.share == 1
        and _is_told(candidate, options, alone=len(other_columns) == 1 or candidate.settings["answer"] in next_column)
    ]


def _is_told(fit: Fit, options: Sequence[Settled], *, alone: bool) -> bool:
    """Return whether what a column holds says enough, without a name.

    Letters and numbers fit by chance, as those of a difficulty do. They have to name every option of some question, and
    numbers in the only column that is left.
    """
    different = {*fit.golds.values()}
    if fit.ways.keys() <= {"text", "both"}:
        return len(different) > 1
    most = max(len(row.texts) for row in options if isinstance(row, ReadOptions))
    return {number for gold in different for number in gold} == {*range(1, most + 1)} and (
        alone or fit.ways.keys() <= {"letter", "named"}
    )


def fit_answers(table: SourceTable, settings: Mapping[str, Any], options: Sequence[Settled]) -> Fit:
    """Fit a column to the questions of a table: find how it answers them."""
    answers: dict[int, RawAnswer] = {}
    for place, (row, row_options) in enumerate(zip(table.rows, options, strict=True)):
        value = (
            _answer(row.record, settings.get("answer"), row_options) if isinstance(row_options, ReadOptions) else None
        )
        if isinstance(row_options, ReadOptions) and value is not None and value != []:
            # The numbers in names of columns are no labels: an answer may count from another one.
            by_number = (
                row_options.labels is not None
                and row_options.labels[0] == row_options.column
                and row_options.column.isdigit()
            )
            answers[place] = RawAnswer(
                row.place, value, replace(row_options, labels=None) if by_number else row_options
            )
    spec = make_spec(table, "choice", settings or {"answer_as": "one_hot"}).columns
    asks = None
    readings: Mapping[str, Sequence[Numbers | None]] = {}
    try:
        if answers:
            readings = dict([read_answer_column([*answers.values()], spec, show(settings.get("answer")))])
    except OpenFieldError as error:
        readings, asks = error.readings, (error.field, error.detail)
    except DatasetError:
        pass
    ways = {
        way: {place: gold for place, gold in zip(answers, golds, strict=True) if gold is not None}
        for way, golds in readings.items()
    }
    readable = sum(isinstance(row_options, ReadOptions) for row_options in options)
    fit = Fit(settings, ways, max(map(len, ways.values()), default=0) / max(1, readable), asks)
    words = any(is_word_of_letters(answer.value) for answer in answers.values())
    if words and fit.share < 1 and "answer" in settings and "answer_as" not in settings:
        letter_fit = fit_answers(table, {**settings, "answer_as": "letter"}, options)
        return letter_fit if letter_fit.share > fit.share else fit
    return fit


def decide_answer(draft: Proposal, stem: str, source: Source, fits: Sequence[Fit]) -> None:
    """Put the answer's column if all columns that look like it agree in every row; else leave it open."""
    fitting = [fit for fit in fits if fit.share >= HALF] or fits[:1]
    table = draft.table
    if len(fitting) > 1:
        options = source.read(table, stem)
        fitting = [fit_answers(table, fit.settings, options) for fit in fitting]
    best = next((fit for fit in fitting if len(fit.ways) == 1), fitting[0])
    for fit in fitting:
        differing = [
            [place for place, gold in way.items() if best.golds.get(place, gold) != gold] for way in fit.ways.values()
        ]
        if fit is not best and len(best.ways) == 1 and differing and all(differing):
            places = min(differing, key=len)
            golds = [(candidate.name, candidate.golds.get(places[0], ("none",))) for candidate in (best, fit)]
            says = [f"{name} says option {' and '.join(map(str, gold))}" for name, gold in golds]
            draft.ask(
                "answer",
                f"{' or '.join(candidate.name for candidate in fitting)}: they contradict each other in "
                f"{len(places):,} of {len(table.rows):,} rows, such as {table.rows[places[0]].place}, where "
                f"{' and '.join(says)}",
            )
            draft.agreeing += [name for fit in fitting for name in columns_in(fit.settings.get("answer"))]
            return
    draft.columns |= {name: value for name, value in best.settings.items() if value != KEYED}
    if not best.ways:
        draft.ask("answer", f"which column holds the right answer: {best.name} names no option")
    elif best.asks is not None:
        draft.ask(*best.asks)
    elif len(fitting) > 1:
        draft.agreeing += [name for fit in fitting for name in columns_in(fit.settings.get("answer"))]


def _answer(record: Record | str, column: Any, options: ReadOptions) -> Any:
    if column is None:
        return list(options.right) if options.right and any(options.right) else None
    if isinstance(column, str):
        return value_of(record, column)
    values = [value_of(record, name) for name in column]
    return values if any(value is not None for value in values) else None
