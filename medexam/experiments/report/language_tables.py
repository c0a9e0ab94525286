"""Tables and Markdown of `medexam compare --languages`: questions right in all languages, in some, in none."""

from medexam.distributions import WILSON, rate_interval
from medexam.experiments.compare.languages import CrossLanguages
from medexam.experiments.report.comparison_tables import comparison_lines, render_comparison
from medexam.experiments.report.latex import render_latex
from medexam.tables import NONE, Captioned, Table, coefficient, p_value, percent, with_interval

SHOWN = 10
"""Questions that the terminal names."""


def languages_report(cross: CrossLanguages) -> str:
    """Render the same in Markdown, with what was compared, every suspect and where the runs lie."""
    tables = language_tables(cross, suspect_limit=len(cross.questions))
    return render_comparison(cross, comparison_lines(cross), [], tables)


def languages_latex(cross: CrossLanguages) -> str:
    """Render the counts in LaTeX, without the suspects."""
    return render_latex(language_tables(cross, suspect_limit=0), comparison_lines(cross))


def language_tables(cross: CrossLanguages, suspect_limit: int = SHOWN) -> list[Captioned]:
    """Build each language's scores, every two beside each other, the counts, and the first `suspect_limit` suspects."""
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
        "look at its translation first. The same wrong answer in several: probably the model does not know the answer."
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
    # Of two languages, what is wrong in the one alone is right in the other alone: it is named once.
    alone = [(key, "wrong", language) for language in languages for key in cross.wrong_alone(language)]
    alone += [(key, "right", language) for language in languages for key in cross.right_alone(language)]
    suspects = list({suspect[0]: suspect for suspect in reversed(alone)}.values())[::-1]
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
