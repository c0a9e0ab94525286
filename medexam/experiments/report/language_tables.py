"""Tables and Markdown of `medexam compare --languages`: questions right in both languages, in one alone, in neither."""

from medexam.experiments.compare.languages import Consistency
from medexam.experiments.report.comparison_tables import comparison_lines, render_comparison
from medexam.experiments.report.latex import render_latex
from medexam.metrics.intervals import rate_interval
from medexam.metrics.results import WILSON
from medexam.tables import Captioned, Table, equals, p_value, percent, with_interval

SHOWN = 10
"""Questions that the terminal names."""


def consistency_report(consistency: Consistency) -> str:
    """Render the same in Markdown, with what was compared, every suspect and where the runs lie."""
    tables = consistency_tables(consistency, suspect_limit=len(consistency.questions))
    return render_comparison(consistency, comparison_lines(consistency), [], tables)


def consistency_latex(consistency: Consistency) -> str:
    """Render the counts in LaTeX, without the suspects."""
    return render_latex(consistency_tables(consistency)[:2], comparison_lines(consistency))


def consistency_tables(consistency: Consistency, suspect_limit: int = SHOWN) -> list[Captioned]:
    """Build the counts, the counts by discipline, and the first `suspect_limit` suspects, each with its caption."""
    first, second = consistency.languages
    flips = consistency.flips
    counts = (
        ("both right", flips.both_right),
        (f"only {first}", len(flips.right_to_wrong)),
        (f"only {second}", len(flips.wrong_to_right)),
        ("neither", flips.both_wrong),
        ("  with the same wrong answer", len(consistency.same_wrong)),
    )
    rows = tuple(
        (name, str(number), with_interval(percent(number / flips.n), rate_interval(number, flips.n)))
        for name, number in counts
    )
    run = consistency.runs[0]
    title = " · ".join(filter(None, (run.program, run.model, f"{first} and {second}")))
    caption = (
        f"{flips.n} questions that both runs scored, percent with a 95 % interval ({WILSON}). McNemar's exact test of "
        f"the two middle rows: p {equals(flips.p)}. Right in one language alone: "
        "look at the translation first. The same wrong answer in both: rather what the model does not know."
    )
    tables = [(Table(title, ("Right in", "Questions", "Percent"), rows), caption)]
    groups = tuple(
        (
            name,
            str(group.paired.n),
            str(group.paired.flips.both_right),
            str(len(group.paired.flips.right_to_wrong)),
            str(len(group.paired.flips.wrong_to_right)),
            str(group.paired.flips.both_wrong),
            p_value(group.p_adjusted),
        )
        for name, group in consistency.pair.by_discipline.items()
    )
    headers = ("Discipline", "n", "Both", f"Only {first}", f"Only {second}", "Neither", "p Holm")
    tables.append((Table("By discipline", headers, groups), "p: McNemar's, adjusted by Holm."))
    suspects = tuple((key, first) for key in flips.right_to_wrong) + tuple(
        (key, second) for key in flips.wrong_to_right
    )
    if suspects:
        count = f"first {suspect_limit} of {len(suspects)}" if len(suspects) > suspect_limit else str(len(suspects))
        suspect_table = Table(
            f"Right in one language alone ({count})", ("Question", "Right in"), suspects[:suspect_limit], text_columns=2
        )
        tables.append((suspect_table, "--json and --markdown FILE list all." if len(suspects) > suspect_limit else ""))
    return tables
