"""Tables of a data set's statistics for the terminal: as Correa-Guillén et al. (2025) show them."""

from collections.abc import Mapping

from medexam.experiments.report.dataset_statistics import Lengths, Statistics, TextLengths
from medexam.tables import NONE, Captioned, Table, decimal, p_value, percent


def statistics_tables(statistics: Statistics) -> list[Captioned]:
    """Build all tables of one data set."""
    return [
        _exams(statistics),
        *([_splits(statistics)] if any(statistics.by_split.values()) else []),
        *length_tables(statistics),
        _positions(statistics),
        _options(statistics),
    ]


def length_tables(statistics: Statistics) -> list[Captioned]:
    """Build tables of how long questions and answers are, by year and by discipline."""
    return [
        _lengths(
            f"Lengths by year · {statistics.name} {statistics.language}", "Year", statistics.by_year, statistics.overall
        ),
        _lengths(
            f"Lengths by discipline · {statistics.name} {statistics.language}",
            "Discipline",
            statistics.by_discipline,
            None,
        ),
    ]


def _exams(statistics: Statistics) -> Captioned:
    years = sorted({year for counts in statistics.by_exam.values() for year in counts})
    rows = [
        (
            discipline,
            *(f"{counts[year]:,}" if year in counts else NONE for year in years),
            f"{statistics.by_discipline[discipline].questions.words.n:,}",
            str(statistics.images_by_discipline.get(discipline, 0)),
        )
        for discipline, counts in statistics.by_exam.items()
    ]
    sums = [sum(counts.get(year, 0) for counts in statistics.by_exam.values()) for year in years]
    rows.append(("all", *(f"{number:,}" for number in sums), f"{statistics.questions:,}", str(statistics.with_images)))
    headers = ("Discipline", *map(str, years), "All", "With image")
    title = f"{statistics.name} {statistics.language} · {statistics.questions:,} questions of {statistics.exams} exams"
    return (Table(title, headers, tuple(rows)), "Questions by discipline and year.")


def _splits(statistics: Statistics) -> Captioned:
    names = [
        name for name in ("train", "dev", "test") if any(name in counts for counts in statistics.by_split.values())
    ]
    groups = {discipline: [counts.get(name, 0) for name in names] for discipline, counts in statistics.by_split.items()}
    groups["all"] = [sum(column) for column in zip(*groups.values(), strict=True)]
    rows = tuple((group, f"{sum(counts):,}", *(f"{count:,}" for count in counts)) for group, counts in groups.items())
    headers = ("Discipline", "Unsupervised", *(name.capitalize() for name in names))
    return (Table("Questions by split", headers, rows), "Unsupervised: all splits together.")


def _lengths(
    title: str, header: str, groups: Mapping[int, TextLengths] | Mapping[str, TextLengths], overall: TextLengths | None
) -> Captioned:
    lengths_by_name = {str(name): lengths for name, lengths in groups.items()} | (
        {"all": overall} if overall is not None else {}
    )
    rows = tuple(
        (name, f"{lengths.questions.words.n:,}", *_cells(lengths.questions), *_cells(lengths.answers))
        for name, lengths in lengths_by_name.items()
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


def _positions(statistics: Statistics) -> Captioned:
    most = max(group.options for group in statistics.positions)
    rows = tuple(
        (
            str(group.options),
            f"{group.n:,}",
            *(f"{number:,} ({percent(number / group.n)})" for number in group.right),
            *((NONE,) * (most - group.options)),
            f"{group.chi_square:.2f}",
            p_value(group.p),
        )
        for group in statistics.positions
    )
    headers = ("Options", "n", *(f"{place}" for place in range(1, most + 1)), "Chi-square", "p")
    caption = (
        "Questions whose right answer is first, second, ..., and percent. p: Pearson's test against all places "
        "being equally likely."
    )
    return (Table("Place of the right answer", headers, rows), caption)


def _options(statistics: Statistics) -> Captioned:
    rows = tuple(
        (str(count), f"{number:,}", percent(number / statistics.questions))
        for count, number in statistics.by_option_count.items()
    )
    return (Table("Number of options", ("Options", "Questions", "Percent"), rows)), ""
