"""What an audit finds, as the document that `--json` prints; tables and Markdown are drawn from it."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from medexam.distributions import LEVEL
from medexam.experiments import captioned, join_markdown
from medexam.metrics import RESAMPLES, SEED
from medexam.tables import NONE, Captioned, Table, coefficient, percent
from medexam_companions.audit.agreement import agree, correlate, measure_agreement
from medexam_companions.audit.folder import ASPECTS, CORRECTNESS, KeyEntry
from medexam_companions.audit.ratings import Ratings, describe_changes

Document = dict[str, Any]
_COEFFICIENTS = ("Spearman's rho", "Kendall's tau-b")
_HOW = (
    "In brackets 95 % intervals by bootstrap over the questions. A dash: fewer than 3 answers, or all alike. No "
    "interval: all alike in a tenth of the resamples."
)


def audit_document(ratings: Ratings, path: Path) -> Document:
    """Compute all that the marks tell, JSON-ready: the findings, and every answer's marks and scores.

    An answer's mark is the mean of its raters'.
    """
    entries = ratings.key.items
    marks = {aspect: ratings.marks(aspect) for aspect in ASPECTS}
    means = {aspect: _average_marks(marks[aspect]) for aspect in ASPECTS}
    correctness = means[CORRECTNESS]
    rated = [entry for entry in entries if entry.code in correctness]
    measured = measure_agreement(rated, [correctness[entry.code] for entry in rated])
    return {
        "audit": str(path.resolve()),
        "sample": ratings.key.sample,
        "seed": ratings.key.seed,
        "interval": {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED, "clusters": "questions"},
        "sheets": [
            {
                "rater": review.reviewer,
                "rows": len(review.items),
                **{f"{aspect}_marked": len(review.marks[aspect]) for aspect in ASPECTS},
                "means": {aspect: _mean(review.marks[aspect].values()) for aspect in ASPECTS},
            }
            for review in ratings.reviews
        ],
        "raters": [row for aspect in ASPECTS for row in _compare_raters(aspect, marks[aspect], entries)],
        "by_run": _means_by(entries, means, lambda entry: entry.run),
        "by_group": _means_by(entries, means, lambda entry: entry.group),
        "measures": measured,
        "changed": [{"code": entry.code, "run": entry.run, "key": entry.key} for entry in ratings.changed],
        "unseen": dict(ratings.unseen),
        "answers": [
            entry.model_dump(mode="json")
            | {
                aspect: {rater: by_code[entry.code] for rater, by_code in each.items() if entry.code in by_code}
                for aspect, each in marks.items()
            }
            | {"comments": {r.reviewer: r.comments[entry.code] for r in ratings.reviews if entry.code in r.comments}}
            for entry in entries
        ],
    }


def _compare_raters(
    aspect: str, marks: Mapping[str, Mapping[str, int]], entries: Iterable[KeyEntry]
) -> Iterable[Document]:
    """Compare every two raters on an aspect."""
    question_of = {entry.code: entry.key for entry in entries}
    for agreement in agree(marks, range(1, 6), ordered=True):
        first, second = (marks[rater] for rater in agreement["raters"])
        shared = [code for code in first if code in second]
        questions = [question_of[code] for code in shared]
        correlation = correlate([first[code] for code in shared], [second[code] for code in shared], questions)
        yield {"aspect": aspect, **agreement, **correlation}


def _average_marks(marks: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Average the raters' marks of each answer that at least one has marked, by code."""
    by_code: dict[str, list[int]] = {}
    for rater_marks in marks.values():
        for code, mark in rater_marks.items():
            by_code.setdefault(code, []).append(mark)
    return {code: fmean(each) for code, each in by_code.items()}


def _means_by(
    entries: Iterable[KeyEntry], means: Mapping[str, Mapping[str, float]], part_of: Callable[[KeyEntry], str]
) -> dict[str, Document]:
    """Average the marks by part, in alphabetical order, and count its answers with a mark on either aspect."""
    parts: dict[str, list[str]] = {}
    for entry in entries:
        parts.setdefault(part_of(entry), []).append(entry.code)
    return {
        part: {
            "answers": sum(any(code in each for each in means.values()) for code in parts[part]),
            "means": {
                aspect: _mean([each[code] for code in parts[part] if code in each]) for aspect, each in means.items()
            },
        }
        for part in sorted(parts)
    }


def audit_markdown(document: Document, ratings: Ratings) -> str:
    """Render the audit in Markdown."""
    answers = document["answers"]
    sample = f"sample `{document['sample']}`, seed {document['seed']}"
    origin = "marked on the page of the runs" if document["seed"] is None else sample
    questions = len({answer["key"] for answer in answers})
    changes = [f"{line[0].upper()}{line[1:]}." for line in describe_changes(ratings)]
    parts = ["# Audit", f"{len(answers)} answers to {questions} questions, {origin}.", *changes]
    return join_markdown([*parts, *captioned(audit_tables(document))])


def audit_tables(document: Document) -> list[Captioned]:
    """Build sheets, marks, raters and measures, in this order."""
    heads = tuple(aspect.capitalize() for aspect in ASPECTS)
    sheets = tuple(
        (
            sheet["rater"],
            str(sheet["rows"]),
            *(cell for a in ASPECTS for cell in (str(sheet[f"{a}_marked"]), _mark(sheet["means"][a]))),
        )
        for sheet in document["sheets"]
    )
    marks = tuple(
        (name, kind, str(part["answers"]), *(_mark(part["means"][aspect]) for aspect in ASPECTS))
        for kind in ("run", "group")
        for name, part in document[f"by_{kind}"].items()
    )
    tables = [
        (
            Table("Sheets", ("Rater", "Rows", *(head for aspect in heads for head in (aspect, "Mean"))), sheets),
            "Rows of each sheet, how many of them are marked, and the mean mark.",
        ),
        (
            Table("Marks", ("Name", "Kind", "Answers", *heads), marks, text_columns=2),
            "Mean marks from 1 to 5 of the answers that are marked; an answer's mark is the mean of its raters'.",
        ),
    ]
    if document["raters"]:
        names = ("Raters", "Aspect", "Answers", "Same mark", "Kappa", *_COEFFICIENTS)
        cells = ((agreement_cells(row), row) for row in document["raters"])
        raters = tuple((first, row["aspect"], *further, *_coefficients(row)) for (first, *further), row in cells)
        caption = f"Answers that both marked; percent with the same mark; Cohen's kappa with quadratic weights. {_HOW}"
        tables.append((Table("Raters against each other", names, raters, text_columns=2), caption))
    if measures := document["measures"]:
        parts = [part for part in ("by_group", "by_run") if len(document[part]) > 1]
        rows = tuple(
            (each["measure"], name, str(correlation["n"]), *_coefficients(correlation))
            for each in measures
            for name, correlation in (("all", each["overall"]), *(pair for p in parts for pair in each[p].items()))
        )
        table = Table("Measures against the raters", ("Measure", "Of", "Answers", *_COEFFICIENTS), rows, text_columns=2)
        caption = f"Each automatic measure against the mean of the raters' correctness, by group and by run. {_HOW}"
        tables.append((table, caption))
    return tables


def agreement_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Write how far two raters agree: who they are, answers, percent with the same mark, and kappa."""
    kappa = NONE if row["kappa"] is None else coefficient(row["kappa"])
    return " and ".join(row["raters"]), str(row["n"]), percent(row["same"]), kappa


def _coefficients(correlation: Mapping[str, Any]) -> tuple[str, ...]:
    cells = []
    for name in ("spearman", "kendall"):
        value, interval = correlation[name], correlation[f"{name}_interval"]
        ends = "" if interval is None else f" [{coefficient(interval[0])}, {coefficient(interval[1])}]"
        cells.append(NONE if value is None else f"{coefficient(value)}{ends}")
    return tuple(cells)


def _mark(mean: float | None) -> str:
    return NONE if mean is None else f"{mean:.2f}"


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return fmean(numbers) if numbers else None
