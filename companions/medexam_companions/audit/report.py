"""What an audit finds, as the document that `--json` prints; tables are drawn from it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from medexam.distributions import LEVEL
from medexam.experiments import StoredRun, cost_tables
from medexam.measures import RESAMPLES, SEED
from medexam.tables import Table, coefficient, decimal, percent, with_interval
from medexam_companions.audit.agreement import agree, correlate, measure_agreement
from medexam_companions.audit.folder import ASPECTS, CORRECTNESS
from medexam_companions.audit.items import AuditItem
from medexam_companions.audit.ratings import Ratings

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
    items = ratings.items
    marks = {aspect: ratings.marks(aspect) for aspect in ASPECTS}
    means: dict[str, dict[str, float]] = {aspect: {} for aspect in ASPECTS}
    for aspect, by_rater in marks.items():
        for code in items:
            if numbers := [by_code[code] for by_code in by_rater.values() if code in by_code]:
                means[aspect][code] = fmean(numbers)
    correctness = means[CORRECTNESS]
    rated = [code for code in items if code in correctness]
    return {
        "audit": str(path.resolve()),
        "sample": ratings.key.sample,
        "seed": ratings.key.seed,
        "interval": {"level": LEVEL, "resamples": RESAMPLES, "seed": SEED, "clusters": "questions"},
        "sheets": [
            {
                "rater": review.reviewer,
                "rows": len(review.items),
                **{f"{aspect}_marked": len(marks[aspect].get(review.reviewer, ())) for aspect in ASPECTS},
                "means": {aspect: _mean(marks[aspect].get(review.reviewer, {}).values()) for aspect in ASPECTS},
            }
            for review in ratings.reviews
        ],
        "raters": [row for aspect in ASPECTS for row in _compare_raters(aspect, marks[aspect], items)],
        "by_run": _means_by(items, means, "run"),
        "by_group": _means_by(items, means, "group"),
        "measures": measure_agreement([items[code] for code in rated], [correctness[code] for code in rated]),
        "changed": [{"code": entry.code, "run": entry.run, "key": entry.key} for entry in ratings.changed],
        "answers": [
            {"code": code, "run": item.run, "key": item.key, "group": item.group, "scores": dict(item.scores)}
            | {
                aspect: {rater: by_code[code] for rater, by_code in each.items() if code in by_code}
                for aspect, each in marks.items()
            }
            | {"comments": {r.reviewer: r.comments[code] for r in ratings.reviews if code in r.comments}}
            for code, item in items.items()
        ],
    }


def _compare_raters(
    aspect: str, marks: Mapping[str, Mapping[str, int]], items: Mapping[str, AuditItem]
) -> Iterable[Document]:
    """Compare every two raters on an aspect."""
    for agreement in agree(marks, range(1, 6), ordered=True):
        first, second = (marks[rater] for rater in agreement["raters"])
        shared = [code for code in first if code in second]
        questions = [items[code].key for code in shared]
        correlation = correlate([first[code] for code in shared], [second[code] for code in shared], questions)
        yield {"aspect": aspect, **agreement, **correlation}


def _means_by(
    items: Mapping[str, AuditItem], means: Mapping[str, Mapping[str, float]], facet: str
) -> dict[str, Document]:
    """Average the marks by run or group, in alphabetical order, and count the answers with a mark on either aspect."""
    parts: dict[str, list[str]] = {}
    for code, item in items.items():
        parts.setdefault(getattr(item, facet), []).append(code)
    return {
        part: {
            "answers": sum(any(code in each for each in means.values()) for code in codes),
            "means": {aspect: _mean(each[code] for code in codes if code in each) for aspect, each in means.items()},
        }
        for part, codes in sorted(parts.items())
    }


def audit_tables(document: Document) -> list[Table]:
    """Build sheets, marks, raters and measures, in this order."""
    heads = tuple(aspect.capitalize() for aspect in ASPECTS)
    sheets = tuple(
        (
            sheet["rater"],
            str(sheet["rows"]),
            *(cell for a in ASPECTS for cell in (str(sheet[f"{a}_marked"]), decimal(sheet["means"][a], 2))),
        )
        for sheet in document["sheets"]
    )
    marks = tuple(
        (name, kind, str(part["answers"]), *(decimal(part["means"][aspect], 2) for aspect in ASPECTS))
        for kind in ("run", "group")
        for name, part in document[f"by_{kind}"].items()
    )
    tables = [
        Table(
            "Sheets",
            ("Rater", "Rows", *(head for aspect in heads for head in (aspect, "Mean"))),
            sheets,
            caption="Rows of each sheet, how many of them are marked, and the mean mark.",
        ),
        Table(
            "Marks",
            ("Name", "Kind", "Answers", *heads),
            marks,
            text_columns=2,
            caption="Mean marks, 1 to 5, of the answers that are marked; an answer's mark is the mean of its raters'.",
        ),
    ]
    if document["raters"]:
        names = ("Raters", "Aspect", "Answers", "Same mark", "Kappa", *_COEFFICIENTS)
        cells = ((_agreement_cells(row), row) for row in document["raters"])
        raters = tuple((first, row["aspect"], *further, *_coefficients(row)) for (first, *further), row in cells)
        caption = f"Answers that both marked; percent with the same mark; Cohen's kappa with quadratic weights. {_HOW}"
        tables.append(Table("Raters against each other", names, raters, text_columns=2, caption=caption))
    if measures := document["measures"]:
        parts = [part for part in ("by_group", "by_run") if len(document[part]) > 1]
        rows = tuple(
            (each["measure"], name, str(correlation["n"]), *_coefficients(correlation))
            for each in measures
            for name, correlation in (("all", each["overall"]), *(pair for p in parts for pair in each[p].items()))
        )
        headers = ("Measure", "Of", "Answers", *_COEFFICIENTS)
        caption = f"Each automatic measure against the mean of the raters' correctness, by group and by run. {_HOW}"
        tables.append(Table("Measures against the raters", headers, rows, text_columns=2, caption=caption))
    return tables


def kind_tables(run: StoredRun, kinds: Sequence[str], agreements: Sequence[Document]) -> list[Table]:
    """Build the tables of kinds by run, of agreement if people judged, and of what the judge cost."""
    metrics = run.metrics
    parts = {"All": metrics, **metrics.by.get("group", {})}
    groups = {name: scores.measures for name, scores in parts.items() if scores.measures}
    rows = tuple(
        (kind, *(percent(each[kind].value if kind in each else 0.0) for each in groups.values())) for kind in kinds
    )
    count = next((measure.n for measure in metrics.measures.values()), 0)
    caption = f"Percent of the wrong answers that {run.model} judged: {count:,} of {metrics.selected:,}."
    tables = [Table("Kinds of errors", ("Kind", *groups), rows, caption=caption)]
    if agreements:
        pairs = tuple(map(_agreement_cells, agreements))
        caption = "Answers that both judged, percent with the same kind, and Cohen's kappa."
        tables.append(
            Table("Judges against each other", ("Judges", "Answers", "Same kind", "Kappa"), pairs, caption=caption)
        )
    return [*tables, *cost_tables([run])]


def _agreement_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Write how far two raters agree: who they are, answers, percent with the same mark, and kappa."""
    return " and ".join(row["raters"]), str(row["n"]), percent(row["same"]), coefficient(row["kappa"])


def _coefficients(correlation: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        with_interval(coefficient(correlation[name]), correlation[f"{name}_interval"], coefficient)
        for name in ("spearman", "kendall")
    )


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return fmean(numbers) if numbers else None
