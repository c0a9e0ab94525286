"""Tables of a data set's statistics for the terminal: as Correa-Guillén et al. (2025) show them."""

from collections.abc import Mapping
from typing import Literal

from medexam.experiments.report.dataset_statistics import Statistics
from medexam.tables import NONE, Table, decimal, p_value, percent


def statistics_tables(statistics: Statistics) -> list[Table]:
    """Build all tables of one data set."""
    totals = {name: lengths["questions"]["words"]["n"] for name, lengths in statistics["by_discipline"].items()}
    counts = {
        name: {str(year): by_year.get(year, 0) for year in statistics["by_year"]}
        | {"All": totals[name], "With image": statistics["images_by_discipline"].get(name, 0)}
        for name, by_year in statistics["by_exam"].items()
    }
    number = f"{statistics['questions']:,} questions of {statistics['exams']} exams"
    title = f"{statistics['name']} {statistics['language']} · {number}"
    tables = [_counts(title, counts, "Questions by discipline and year.")]
    if any(statistics["by_split"].values()):
        splits = {
            name: {"Unsupervised": totals[name]}
            | {split.capitalize(): by_split.get(split, 0) for split in ("train", "dev", "test")}
            for name, by_split in statistics["by_split"].items()
        }
        tables.append(_counts("Questions by split", splits, "Unsupervised: all splits together."))
    if statistics["by_year"]:
        tables.append(lengths_table(statistics, "year"))
    return [*tables, lengths_table(statistics, "discipline"), _positions(statistics)]


def lengths_table(statistics: Statistics, facet: Literal["year", "discipline"]) -> Table:
    """Build the table of how long questions and answers are."""
    rows = []
    for name, lengths in (*statistics[f"by_{facet}"].items(), ("all", statistics["overall"])):
        spreads = [lengths[part][unit] for part in ("questions", "answers") for unit in ("words", "characters")]
        numbers = [f"{decimal(spread['mean'])} ± {decimal(spread['deviation'])}" for spread in spreads]
        rows.append((str(name), f"{spreads[0]['n']:,}", *numbers))
    headers = (facet.capitalize(), "n", "Question words", "Characters", "Answer words", "Characters")
    title = f"Lengths by {facet} · {statistics['name']} {statistics['language']}"
    caption = "Means, with the standard deviation. Answers: each option on its own."
    return Table(title, headers, tuple(rows), caption=caption)


def _counts(title: str, groups: Mapping[str, Mapping[str, int]], caption: str) -> Table:
    columns = list(next(iter(groups.values())))
    sums = {column: sum(counts[column] for counts in groups.values()) for column in columns}
    rows = [(name, *(f"{counts[column]:,}" for column in columns)) for name, counts in {**groups, "all": sums}.items()]
    return Table(title, ("Discipline", *columns), tuple(rows), caption=caption)


def _positions(statistics: Statistics) -> Table:
    most = max(group["options"] for group in statistics["positions"])
    rows = []
    for group in statistics["positions"]:
        places = [f"{number:,} ({percent(number / group['n'])})" for number in group["right"]]
        places += [NONE] * (most - group["options"])
        rows.append((str(group["options"]), f"{group['n']:,}", *places, p_value(group["p"])))
    headers = ("Options", "n", *map(str, range(1, most + 1)), "p")
    caption = "Questions whose right answer is first, second, ..., and percent. p: Pearson's test against equal shares."
    return Table("Place of the right answer", headers, tuple(rows), caption=caption)
