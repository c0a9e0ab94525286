"""Looks at a table of questions and proposes how a spec reads it: what `medexam init` writes.

It guesses only what the whole file agrees with, by names of columns and by what they hold. What is doubtful stands in
the spec as a line to fill in. A run never guesses: it reads what its spec says.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import yaml

from medexam.datasets.own.answers import WAYS
from medexam.datasets.own.choice import parse_choice
from medexam.datasets.own.columns import KEYED, advise_on_rows, describe_faults
from medexam.datasets.own.keys import add_key
from medexam.datasets.own.labels import OpenFieldError
from medexam.datasets.own.names import NAMES, find_groups, find_named, rank
from medexam.datasets.own.proposals.answer_columns import Fit, decide_answer, find_answer_columns
from medexam.datasets.own.proposals.audit import audit
from medexam.datasets.own.proposals.cells import HALF, asks, holds_options, is_text, length, share
from medexam.datasets.own.proposals.drafts import Proposal, TableSample, columns_in, make_spec, show
from medexam.datasets.own.proposals.language import find_language
from medexam.datasets.own.proposals.other_columns import propose_others
from medexam.datasets.own.proposals.sources import Source, find_sign, find_sources
from medexam.datasets.own.tables import read_file
from medexam.datasets.own.texts import unpack
from medexam.datasets.own.words import parse_words
from medexam.datasets.rows import Row, RowFault
from medexam.errors import DatasetError
from medexam.questions import Language
from medexam.specs.columns import KeySpec
from medexam.specs.dataset import OwnKind

_FIXED = (
    *(("yes", "no", "maybe"), ("true", "false"), ("sí", "no"), ("si", "no"), ("oui", "non"), ("sim", "não")),
    *(("ja", "nein"), ("verdadero", "falso"), ("vrai", "faux"), ("vero", "falso"), ("wahr", "falsch"), ("да", "нет")),
)
"""Answers that are the options of every question; the first two are both there."""
_MARK = re.compile(r"[(\[]?(?:[^\W\d_]|[ivx]{1,4}|\d{1,2})(?:\.0)?[)\].]?", re.IGNORECASE)
_BETWEEN_MARKS = re.compile(r"\s*[,;/|&\s]\s*(?:(?:and|y|e|und|et|or)\s)?|^(?:option|choice)\s", re.IGNORECASE)
_ENOUGH_ROWS, _FEW_ANSWERS = 10, 5
"""Rows of which only a few different answers are strange, and how many are few."""
_ORDER = (
    *("stem", "options", "between", "marks", "shuffled", "choices", "answer", "right_mark", "answer_as", "numbering"),
    *("several", *NAMES, "leave_out", "as_above", "ignored", "accepted"),
)
"""Fields in the order in which a spec shows them."""


def propose(path: Path, kind: OwnKind | None = None, answers: KeySpec | None = None) -> Proposal:
    """Propose how the questions in a file may be read, as those of `kind` or of the kind that they look like.

    `answers`: their key in another file. Raises `DatasetError` if a file cannot be read.
    """
    table = read_file(path) if answers is None else add_key(read_file(path), answers)
    draft = Proposal(TableSample.of(table), TableSample(table), answers, kind or "choice")
    draft.notes.append(f"{table.format}, {len(table.rows):,} rows")
    stem = _find_stem(draft)
    if stem is None:
        is_row = any(len(name.split()) > 1 and asks(name) and not rank("stem", name) for name in draft.sample.columns)
        hint = "; the first row looks like a question: put a row with the columns' names above it" if is_row else ""
        draft.ask("stem", f"which column holds the question: {', '.join(draft.sample.columns)}{hint}")
        draft.ask("answer", "which column holds the right answer")
    else:
        draft.columns["stem"] = stem
        if draft.kind == "choice":
            _propose_choice(draft, stem, is_stated=kind is not None)
        if draft.kind != "choice":
            _propose_answer(draft)
        if draft.kind == "spans" and not find_named("context", draft.sample.columns):
            draft.ask("context", f"which column holds the text: {', '.join(draft.sample.columns)}")
        propose_others(draft)
    _find_language(draft)
    _read(draft)
    audit(draft)
    draft.columns = {name: draft.columns[name] for name in dict.fromkeys(_ORDER) if name in draft.columns}
    return draft


def dataset_lines(proposal: Proposal, path: Path) -> list[str]:
    """Write the `dataset` part of a spec that reads `path` as proposed, a line each; open ones end in `# decide:`."""
    answers = None if proposal.answers is None else proposal.answers.model_dump(mode="json", exclude_none=True)
    tree = {"kind": proposal.kind, "path": str(path), "language": proposal.language, "answers": answers}
    lines = [_line(name, value, proposal.open.get(name)) for name, value in tree.items() if value is not None]
    lines.append("columns:")
    for name, column in proposal.columns.items():
        lines.append(f"  {_line(name, _as_named(column), proposal.open.get(f'columns.{name}'))}")
    if "skip_bad" in proposal.open:
        lines.append(_line("skip_bad", False, proposal.open["skip_bad"]))
    return lines


def _line(name: str, value: Any, undecided: str | None) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=float("inf")).strip()
    text = text.removesuffix("...").strip()
    if undecided is not None:
        return f"{name}: {'' if value is None else text}  # decide: {' '.join(undecided.split())}"
    return f"{name}: {text}"


def _as_named(column: Any) -> Any:
    """Return columns without a name by their number."""
    if isinstance(column, list):
        return [_as_named(name) for name in column]
    return int(column) if isinstance(column, str) and column.isdigit() and str(int(column)) == column else column


def _find_stem(draft: Proposal) -> str | None:
    """Find the column of the questions, by its name or because it alone holds texts that ask."""
    sample = draft.sample
    texts = [column for column in sample.columns if is_text(sample.filled(column))]
    if not sample.is_numbered:
        grouped = {
            column for group in find_groups(sample.columns) if len(group.columns) > 2 for column in group.columns
        }
        best_name = next((column for column in find_named("stem", texts) if column not in grouped), None)
        if best_name is not None:
            return best_name
    asking = [
        column
        for column in texts
        if holds_options(sample.filled(column), is_named=False) is None
        and share(asks, sample.filled(column)) >= HALF
        and not rank("options", column)
    ]
    longest = max(texts, key=lambda column: length(sample.filled(column)), default=None)
    if any(asks(column) and not rank("stem", column) for column in asking):
        return None
    if len(asking) == 1 or (sample.is_numbered and longest in asking):
        stem = asking[0] if len(asking) == 1 else longest
        draft.notes.append(f"stem: {stem}, whose texts end as questions do")
        return stem
    return None


def _propose_choice(draft: Proposal, stem: str, *, is_stated: bool) -> None:
    """Put options and answer, or another kind if questions are answered in words and no kind `is_stated`."""
    choice = _find_choice(draft.sample, stem)
    if choice is None:
        _propose_fixed(draft, is_stated=is_stated)
        return
    source, fits = choice
    if "options" in draft.table.columns:
        draft.columns["options"] = None
    draft.columns |= source.settings
    if source.asks is not None:
        draft.ask("marks", source.asks)
    if fits:
        decide_answer(draft, stem, source, fits)
    else:
        draft.ask("answer", _which_answer(draft, source))


def _find_choice(sample: TableSample, stem: str) -> tuple[Source, list[Fit]] | None:
    """Find the first source of options that an answer fits, else the first that is certain; None if there is none."""
    table = sample.table
    likely: tuple[Source, list[Fit]] | None = None
    for source in find_sources(sample, stem):
        try:
            options = source.read(table, stem)
        except OpenFieldError as error:
            source = replace(source, settings={**source.settings, "marks": "labels"}, asks=error.detail)
            options = source.read(table, stem)
        sign = find_sign(options)
        if sign is not None:
            source = replace(source, settings={**source.settings, "right_mark": sign})
            options = source.read(table, stem)
        fits = find_answer_columns(sample, stem, source, options)
        if fits and fits[0].share >= HALF and (source.is_certain or fits[0].share == 1):
            return source, fits
        if likely is None and (source.is_certain or not find_named("answer", sample.columns)):
            likely = source, fits
    return likely


def _which_answer(draft: Proposal, source: Source | None) -> str:
    used = source.used if source is not None else ()
    names = ", ".join(column for column in draft.unused() if column not in used) or "none is left"
    return f"which column holds the right answer: {names}; or set dataset.answers: {{path: key.csv, on: id}}"


def _propose_fixed(draft: Proposal, *, is_stated: bool) -> None:
    """Put options that every question has, such as yes and no; ask if answers look as if options were missing."""
    sample = draft.sample
    answer_columns = _propose_answer(draft)
    if not answer_columns:
        return
    values = sample.filled(answer_columns[0])
    answers = list(dict.fromkeys(" ".join(str(value).split()) for value in values))
    folded_answers = {answer.casefold() for answer in answers}
    words = next((choices for choices in _FIXED if {*choices[:2]} <= folded_answers <= {*choices}), None)
    if words is not None:
        draft.columns["choices"] = sorted(answers, key=lambda answer: words.index(answer.casefold()))
        draft.columns["answer_as"] = "text"
        return
    has_few_answers = len(values) >= _ENOUGH_ROWS and len(answers) <= min(_FEW_ANSWERS, len(values) // 3)
    other_columns = [
        column for column in sample.columns if column != answer_columns[0] and rank("context", column) is None
    ]
    lists = [column for column in other_columns if holds_options(sample.filled(column), is_named=False) is not None]
    lists += answer_columns[:1] if len(answer_columns) > 1 and holds_options(values, is_named=False) is not None else []
    lists += [column for column in other_columns if column not in lists and rank("options", column) is not None]
    lists += [group.columns[0] for group in find_groups(other_columns) if group.is_known or group.is_wrong]
    if not is_stated and not has_few_answers and not lists and share(_are_marks, values) < HALF:
        draft.kind = "spans" if _are_spans(sample, answer_columns[0]) else "short_answer"
        return
    reason = f"answers such as {', '.join(answers[:3])} are those of a choice"
    if lists:
        reason = f"{show(lists)} looks like options"
    draft.ask(
        "options", f"{reason}: which column holds the options: {', '.join(other_columns)}; or set kind: short_answer"
    )


def _are_marks(value: Any) -> bool:
    """Return whether an answer holds letters or numbers alone, however they are listed."""
    value = unpack(value)
    items = value if isinstance(value, (list, tuple)) else filter(None, _BETWEEN_MARKS.split(str(value).strip()))
    return all(_MARK.fullmatch(str(item).strip()) for item in items)


def _propose_answer(draft: Proposal) -> list[str]:
    """Put the first column that is called as answers are, or ask for it; return all of them that are not empty."""
    sample = draft.sample
    names = [KEYED] if KEYED in sample.columns else find_named("answer", sample.columns)
    answer_columns = [column for column in names if sample.filled(column)]
    if not answer_columns:
        draft.ask("answer", _which_answer(draft, None))
    elif answer_columns[0] != KEYED:
        draft.columns["answer"] = answer_columns[0]
    return answer_columns


def _are_spans(sample: TableSample, answer: str) -> bool:
    """Return whether all answers stand in a context."""
    contexts = [sample.filled(column) for column in find_named("context", sample.columns)[:1]]
    answers = sample.filled(answer)
    return [*map(len, contexts)] == [len(answers)] and all(
        isinstance(wording, Mapping) or (isinstance(wording, str) and wording in str(context))
        for context, wording in zip(contexts[0], answers, strict=True)
    )


def _find_language(draft: Proposal) -> None:
    columns = [draft.columns.get(name) for name in ("stem", "options", "context")]
    names = [name for column in columns for name in columns_in(column)]
    language = find_language(str(value) for name in names for value in draft.sample.filled(name))
    note = (
        "not recognised from the texts, so it is en"
        if language is None
        else f"{language}, for which prompts are in English"
    )
    if language in get_args(Language):
        draft.language = language  # type: ignore[assignment]
        note = f"{language}, recognised by its words; it decides prompts and retrieval"
    draft.notes.append(f"language: {note}")


def _read(draft: Proposal) -> None:
    """Put the questions of the whole file as drafted, with what is seen of them; none if something is open."""
    columns, table = draft.columns, draft.table
    if draft.kind == "choice" and not {"options", "choices"} & columns.keys() and "stem" in columns:
        draft.notes.append("options: at the end of the question")
    if not {*draft.open} <= {"columns.several", "columns.context"}:
        return
    columns = {name: column for name, column in columns.items() if f"columns.{name}" not in draft.open}
    spec = make_spec(table, draft.kind, columns)
    faults: Sequence[RowFault]
    try:
        if draft.kind == "choice":
            choice = parse_choice(table, spec)
            draft.rows, faults = choice.reading.rows, choice.reading.faults
            source = show(columns.get("answer", columns.get("right_mark", "the key")))
            draft.notes += [
                f"answer: {source}, read as {WAYS.get(choice.way, 'nothing')}",
                *_count(choice.reading.rows),
            ]
            _check_golds(draft, choice.reading.rows, source)
        else:
            draft.rows, faults = parse_words(table, spec)
            draft.notes += [f"answer: {show(columns.get('answer', 'the key'))}", f"{len(draft.rows):,} questions"]
    except OpenFieldError as error:
        draft.ask(error.field, error.detail)
        return
    except DatasetError as error:
        draft.ask("answer", str(error))
        return
    if faults:
        bad = describe_faults(faults, len(table.rows))
        draft.notes.append(bad)
        draft.open["skip_bad" if draft.rows else "kind"] = f"{advise_on_rows(len(faults), len(table.rows))}: {bad}"


def _check_golds(draft: Proposal, rows: Sequence[Row], column: str) -> None:
    several = sum(bool(row.others) for row in rows)
    if several:
        facts = f"{several:,} of {len(rows):,} questions have several right answers"
        draft.ask("several", f"any, if one of them is enough, or all: {facts}")
    elif len(rows) >= _ENOUGH_ROWS and len({row.gold for row in rows}) == 1 and not draft.columns.get("shuffled"):
        draft.ask("answer", f"{column}, if option {rows[0].gold} is right in all {len(rows):,} questions")


def _count(rows: Sequence[Row]) -> list[str]:
    counts = Counter(len(row.question.options) for row in rows).most_common()
    golds = Counter(row.gold for row in rows)
    by_count = ", ".join(f"{n:,}{'' if place else ' rows'} of {options}" for place, (options, n) in enumerate(counts))
    by_gold = ", ".join(f"option {number} {n:,} times" for number, n in sorted(golds.items(), key=str))
    return [f"{by_count} options", f"right: {by_gold}"]
