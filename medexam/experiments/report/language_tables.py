"""Tables and Markdown of `medexam compare --languages`: questions right in all languages, in some, in none."""

from medexam.distributions import WILSON, rate_interval
from medexam.experiments.compare.languages import Consistency, CrossLanguages
from medexam.experiments.report.comparison_tables import comparison_lines, render_comparison
from medexam.experiments.report.latex import render_latex
from medexam.tables import NONE, Captioned, Table, coefficient, equals, p_value, percent, with_interval

SHOWN = 10
"""Questions that the terminal names."""


def consistency_report(consistency: Consistency | CrossLanguages) -> str:
    """Render the same in Markdown, with what was compared, every suspect and where the runs lie."""
    tables = consistency_tables(consistency, suspect_limit=len(consistency.questions))
    return render_comparison(consistency, comparison_lines(consistency), [], tables)


def consistency_latex(consistency: Consistency | CrossLanguages) -> str:
    """Render the counts in LaTeX, without the suspects."""
    return render_latex(consistency_tables(consistency, suspect_limit=0), comparison_lines(consistency))


def consistency_tables(consistency: Consistency | CrossLanguages, suspect_limit: int = SHOWN) -> list[Captioned]:
    """Build the counts, the counts by discipline, and the first `suspect_limit` suspects, each with its caption."""
    if isinstance(consistency, CrossLanguages):
        return _cross_tables(consistency, suspect_limit)
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
        f"{flips.n} questions that both runs scored, percent with a 95 % interval ({WILSON}). McNemar's exact test "
        f"of the two middle rows: p {equals(flips.p)}. Right in one language alone: look at the translation first. "
        "The same wrong answer in both: probably the model does not know the answer."
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
    if suspects and suspect_limit:
        count = f"first {suspect_limit} of {len(suspects)}" if len(suspects) > suspect_limit else str(len(suspects))
        suspect_table = Table(
            f"Right in one language alone ({count})", ("Question", "Right in"), suspects[:suspect_limit], text_columns=2
        )
        tables.append((suspect_table, "--json and --markdown FILE list all." if len(suspects) > suspect_limit else ""))
    return tables


def _cross_tables(cross: CrossLanguages, suspect_limit: int) -> list[Captioned]:
    n, languages = len(cross.questions), cross.languages
    run = cross.runs[0]
    title = " · ".join(filter(None, (run.program, run.model, ", ".join(languages))))
    rows = tuple(
        (
            language,
            str(right := cross.right(language)),
            with_interval(percent(right / n), rate_interval(right, n)),
            str(len(cross.right_alone(language))),
            str(len(cross.wrong_alone(language))),
        )
        for language in languages
    )
    headers = ("Language", "Right", "Percent", "Right here alone", "Wrong here alone")
    caption = (
        f"{n} questions that all runs scored, percent with a 95 % interval ({WILSON}). Wrong in one language alone: "
        "look at its translation first."
    )
    tables = [(Table(title, headers, rows), caption), _pairs(cross)]
    counts = tuple(
        (str(number), str(count), with_interval(percent(count / n), rate_interval(count, n)))
        for number, count in enumerate(cross.counts())
    )
    tables.append((Table("Right in how many languages", ("Languages", "Questions", "Percent"), counts), ""))
    if groups := cross.statistics.paired[0].by_discipline:
        cells = tuple(
            (
                name,
                str(group.paired.n),
                percent(group.paired.baseline_accuracy),
                *(
                    percent(group.paired.baseline_accuracy + pair.by_discipline[name].paired.accuracy.value)
                    for pair in cross.statistics.paired
                ),
            )
            for name, group in groups.items()
        )
        tables.append((Table("Accuracy by discipline", ("Discipline", "n", *languages), cells), "Percent right."))
    suspects = [
        (key, side, language)
        for language in languages
        for side, keys in (("wrong", cross.wrong_alone(language)), ("right", cross.right_alone(language)))
        for key in keys
    ]
    suspects.sort(key=lambda suspect: suspect[1] == "right")
    if suspects and suspect_limit:
        count = f"first {suspect_limit} of {len(suspects)}" if len(suspects) > suspect_limit else str(len(suspects))
        table = Table(
            f"Right or wrong in one language alone ({count})",
            ("Question", "It is", "In"),
            tuple(suspects[:suspect_limit]),
            text_columns=3,
        )
        tables.append((table, "--json and --markdown FILE list all." if len(suspects) > suspect_limit else ""))
    return tables


def _pairs(cross: CrossLanguages) -> Captioned:
    rows = []
    for pair in cross.language_pairs:
        flips, difference = pair.paired.flips, pair.paired.accuracy
        rows.append(
            (
                " and ".join(pair.languages),
                with_interval(percent(difference.value), difference.interval),
                str(flips.both_right),
                str(len(flips.right_to_wrong)),
                str(len(flips.wrong_to_right)),
                str(flips.both_wrong),
                str(pair.same_wrong),
                percent(pair.paired.same_answer),
                NONE if pair.paired.kappa is None else coefficient(pair.paired.kappa),
                p_value(pair.p_adjusted),
            )
        )
    headers = ("Languages", "Difference", "Both", "Only 1st", "Only 2nd", "Neither", "Same wrong")
    caption = (
        "Difference: accuracy of the second language minus the first's, in points, with a 95 % interval. Both to Same "
        "wrong: questions right in both, in one, in neither, and wrong with the same answer. Same answer: percent, "
        "right or wrong; kappa: Cohen's, of the answers. p: McNemar's exact test, adjusted by Holm over all pairs."
    )
    return Table("Every two languages", (*headers, "Same answer", "Kappa", "p Holm"), tuple(rows)), caption
