"""Tables of an audit, each with a caption that says how to read it, for the terminal and for Markdown."""

from collections.abc import Mapping

from medexam.experiments import heading, join_markdown, render_table
from medexam.metrics import Interval
from medexam.tables import NONE, Captioned, Table, coefficient, percent
from medexam_companions.audit.agreement import RankCorrelation
from medexam_companions.audit.folder import ASPECTS
from medexam_companions.audit.ratings import describe_changes
from medexam_companions.audit.result import Audit

_COEFFICIENTS = ("Spearman's rho", "Kendall's tau-b")
_HOW = (
    "In brackets 95 % intervals by bootstrap over the questions. A dash: fewer than 3 answers, or all alike. No "
    "interval: all alike in a tenth of the resamples."
)


def audit_report(audit: Audit) -> str:
    """Render the audit in Markdown."""
    key = audit.ratings.key
    answers, questions = len(key.items), len({item.key for item in key.items})
    origin = "marked on the page of the runs" if key.seed is None else f"sample `{key.sample}`, seed {key.seed}"
    parts = ["# Audit", f"{answers} answers to {questions} questions, {origin}."]
    parts += [f"{line[0].upper()}{line[1:]}." for line in describe_changes(audit.ratings)]
    for table, caption in audit_tables(audit):
        parts += [heading(2, table.title), render_table(table), caption]
    return join_markdown(parts)


def audit_tables(audit: Audit) -> list[Captioned]:
    """Build sheets, raters, marks and measures, in this order; breakdowns if there are several groups or runs."""
    tables = [_sheets(audit), _marks(audit)]
    if audit.pairs:
        tables.append(_raters(audit))
    if audit.measured:
        tables.append(_measures(audit))
        if len(audit.by_group) > 1:
            tables.append(_breakdown("group", {entry.measure: entry.by_group for entry in audit.measured}))
        if len(audit.by_run) > 1:
            tables.append(_breakdown("run", {entry.measure: entry.by_run for entry in audit.measured}))
    return tables


def _sheets(audit: Audit) -> Captioned:
    rows = []
    for review in audit.ratings.reviews:
        cells = [review.reviewer, str(len(review.items))]
        for aspect in ASPECTS:
            cells += [str(len(review.marks[aspect])), _mark(review.mean(aspect))]
        rows.append(tuple(cells))
    headers = ("Rater", "Rows", *(header for aspect in ASPECTS for header in (aspect.capitalize(), "Mean")))
    return Table("Sheets", headers, tuple(rows)), "Rows of each sheet, how many of them are marked, and the mean mark."


def _marks(audit: Audit) -> Captioned:
    rows = tuple(
        (name, kind, str(marks.answers), *(_mark(marks.means[aspect]) for aspect in ASPECTS))
        for kind, parts in (("run", audit.by_run), ("group", audit.by_group))
        for name, marks in parts.items()
    )
    headers = ("Name", "Kind", "Answers", *(aspect.capitalize() for aspect in ASPECTS))
    caption = "Mean marks from 1 to 5 of the answers that are marked; an answer's mark is the mean of its raters'."
    return Table("Marks", headers, rows, text_columns=2), caption


def _raters(audit: Audit) -> Captioned:
    rows = tuple(
        (
            " and ".join(pair.agreement.raters),
            pair.agreement.aspect,
            str(pair.agreement.n),
            percent(pair.agreement.same),
            NONE if pair.agreement.kappa is None else coefficient(pair.agreement.kappa),
            *_coefficients(pair.correlation),
        )
        for pair in audit.pairs
    )
    headers = ("Raters", "Aspect", "Answers", "Same mark", "Kappa", *_COEFFICIENTS)
    caption = f"Answers that both marked; percent with the same mark; Cohen's kappa with quadratic weights. {_HOW}"
    return Table("Raters against each other", headers, rows, text_columns=2), caption


def _measures(audit: Audit) -> Captioned:
    rows = tuple((entry.measure, str(entry.overall.n), *_coefficients(entry.overall)) for entry in audit.measured)
    caption = f"Each automatic measure against the mean of the raters' correctness. {_HOW}"
    return Table("Measures against the raters", ("Measure", "Answers", *_COEFFICIENTS), rows), caption


def _breakdown(kind: str, correlations: Mapping[str, Mapping[str, RankCorrelation]]) -> Captioned:
    rows = tuple(
        (measure, name, str(parts[name].n), *_coefficients(parts[name]))
        for measure, parts in correlations.items()
        for name in sorted(parts)
    )
    headers = ("Measure", kind.capitalize(), "Answers", *_COEFFICIENTS)
    return Table(f"Measures against the raters, by {kind}", headers, rows, text_columns=2), _HOW


def _coefficients(correlation: RankCorrelation) -> tuple[str, str]:
    return (
        _with_interval(correlation.spearman, correlation.spearman_interval),
        _with_interval(correlation.kendall, correlation.kendall_interval),
    )


def _with_interval(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return NONE
    if interval is None:
        return coefficient(value)
    return f"{coefficient(value)} [{coefficient(interval[0])}, {coefficient(interval[1])}]"


def _mark(mean: float | None) -> str:
    return NONE if mean is None else f"{mean:.2f}"
