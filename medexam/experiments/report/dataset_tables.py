"""Tables of a data set's statistics for the terminal: as Correa-Guillén et al. (2025) show them."""

from collections.abc import Mapping

from medexam.datasets.explanations import ExplanationStatistics
from medexam.experiments.report.dataset_statistics import Lengths, Statistics, TextLengths
from medexam.formatting import NONE, decimal, p_value, percent
from medexam.tables import Captioned, Table


def statistics_tables(found: Statistics) -> list[Captioned]:
    """All tables of one data set."""
    return [
        _exams(found),
        *([_splits(found)] if any(found.by_split.values()) else []),
        *length_tables(found),
        _tokens(found),
        _positions(found),
        _options(found),
    ]


def explanation_tables(found: ExplanationStatistics) -> list[Captioned]:
    """How many documents and words explained questions have, and how many sentences their explanations."""
    told = f"{found.name} {found.language}"
    sizes = (f"{found.documents:,}", f"{found.words:,}", f"{found.words_per_document:.0f}")
    counted = "the part that argues for the right option" if found.answers else "the whole explanation"
    shares = tuple((number, f"{share:.2f}") for number, share in found.sentences.items())
    return [
        (Table(f"Documents · {told}", ("Documents", "Words", "Words a document"), (sizes,), text_columns=0), ""),
        (
            Table(f"Sentences of an explanation · {told}", ("Sentences", "Percent"), shares),
            f"Percent of {found.explanations:,} explanations; counted is {counted}.",
        ),
    ]


def length_tables(found: Statistics) -> list[Captioned]:
    """How long questions and answers are, by year and by discipline."""
    return [
        _lengths(f"Lengths by year · {found.name} {found.language}", "Year", found.by_year, found.overall),
        _lengths(f"Lengths by discipline · {found.name} {found.language}", "Discipline", found.by_discipline, None),
    ]


def _exams(found: Statistics) -> Captioned:
    years = sorted({year for counts in found.by_exam.values() for year in counts})
    rows = [
        (
            discipline,
            *(f"{counts[year]:,}" if year in counts else NONE for year in years),
            f"{found.by_discipline[discipline].questions.words.n:,}",
            str(found.images_by_discipline.get(discipline, 0)),
        )
        for discipline, counts in found.by_exam.items()
    ]
    sums = [sum(counts.get(year, 0) for counts in found.by_exam.values()) for year in years]
    rows.append(("all", *(f"{number:,}" for number in sums), f"{found.questions:,}", str(found.with_images)))
    headers = ("Discipline", *map(str, years), "All", "With image")
    title = f"{found.name} {found.language} · {found.questions:,} questions of {found.exams} exams"
    return (Table(title, headers, tuple(rows)), "Questions by discipline and year.")


def _splits(found: Statistics) -> Captioned:
    names = [name for name in ("train", "dev", "test") if any(name in counts for counts in found.by_split.values())]
    groups = {discipline: [counts.get(name, 0) for name in names] for discipline, counts in found.by_split.items()}
    groups["all"] = [sum(column) for column in zip(*groups.values(), strict=True)]
    rows = tuple((group, f"{sum(counts):,}", *(f"{count:,}" for count in counts)) for group, counts in groups.items())
    headers = ("Discipline", "Unsupervised", *(name.capitalize() for name in names))
    return (Table("Questions by split", headers, rows), "Unsupervised: all splits together.")


def _tokens(found: Statistics) -> Captioned:
    rows = tuple(
        (
            discipline,
            str(lengths.longest_question),
            f"{lengths.mean_question:.2f}",
            str(lengths.longest_answer),
            f"{lengths.mean_answer:.2f}",
        )
        for discipline, lengths in found.tokens.items()
    )
    headers = ("Discipline", "Longest question", "Mean question", "Longest answer", "Mean answer")
    caption = "Tokens as Vilares and Gómez-Rodríguez (2019) count them. Answers: each option on its own."
    return (Table(f"Tokens · {found.name} {found.language}", headers, rows), caption)


def _lengths(
    title: str, header: str, groups: Mapping[int, TextLengths] | Mapping[str, TextLengths], whole: TextLengths | None
) -> Captioned:
    named = {str(name): lengths for name, lengths in groups.items()} | ({"all": whole} if whole is not None else {})
    rows = tuple(
        (name, f"{lengths.questions.words.n:,}", *_cells(lengths.questions), *_cells(lengths.answers))
        for name, lengths in named.items()
    )
    headers = (header, "n", "Question words", "Characters", "Longest", "Answer words", "Characters", "Longest")
    caption = "Means, with the standard deviation; the longest in characters. Answers: each option on its own."
    return (Table(title, headers, rows), caption)


def _cells(lengths: Lengths) -> tuple[str, str, str]:
    words, characters = lengths.words, lengths.characters
    return (
        f"{decimal(words.mean)} ± {decimal(words.deviation)}",
        f"{decimal(characters.mean)} ± {decimal(characters.deviation)}",
        f"{characters.most:,}",
    )


def _positions(found: Statistics) -> Captioned:
    most = max(group.options for group in found.positions)
    rows = tuple(
        (
            str(group.options),
            f"{group.n:,}",
            *(f"{number:,} ({percent(number / group.n)})" for number in group.right),
            *((NONE,) * (most - group.options)),
            f"{group.chi_square:.2f}",
            p_value(group.p),
        )
        for group in found.positions
    )
    headers = ("Options", "n", *(f"{place}" for place in range(1, most + 1)), "Chi-square", "p")
    caption = (
        "Questions whose right answer stands first, second, ..., and percent. p: Pearson's test against all places "
        "being equally likely."
    )
    return (Table("Where the right answer stands", headers, rows), caption)


def _options(found: Statistics) -> Captioned:
    rows = tuple(
        (str(count), f"{number:,}", percent(number / found.questions))
        for count, number in found.by_option_count.items()
    )
    return (Table("Number of options", ("Options", "Questions", "Percent"), rows)), ""
