"""The table that sets runs beside the people who sat the exams, with the caption that says how to read it.

For the terminal, for Markdown and for the page; there is none where no run answered an exam with known figures.
"""

from collections.abc import Sequence

from medexam.experiments.report.formatting import decimal, percent
from medexam.experiments.report.papers.human_baseline import AgainstPeople, load_exam_boards
from medexam.experiments.report.tables import Table, TerminalTable

TITLE = "Against people"


def build_people_tables(found: Sequence[Sequence[AgainstPeople]], names: Sequence[str]) -> list[TerminalTable]:
    """The table, ready for `Console.print`; empty where there is nothing to show."""
    return [TerminalTable(table, caption) for table, caption in people_tables(found, names)]


def people_tables(found: Sequence[Sequence[AgainstPeople]], names: Sequence[str]) -> list[tuple[Table, str]]:
    """One row a run and exam, with its caption; empty where there is nothing to show.

    `found` holds what each run scored, as `against_people` gives it; `names` tell the runs apart, one each. A single
    run is not named. What passed is stressed.
    """
    rows = [(name, row) for name, of_run in zip(names, found, strict=True) for row in of_run]
    if not rows:
        return []
    several = len(names) > 1
    headers = (*(("Run",) if several else ()), "Exam", "n", "Points", "Ten best", "Pass mark", "Result")
    table = Table(
        TITLE,
        headers,
        tuple((*((name,) if several else ()), *_cells(row)) for name, row in rows),
        best=frozenset((at, len(headers) - 1) for at, (_, row) in enumerate(rows) if row.passed),
        text_columns=2 if several else 1,
    )
    return [(table, _caption())]


def result(row: AgainstPeople) -> str:
    """`passed by 12.7` or `short by 103.3`, in points."""
    return f"{'passed' if row.passed else 'short'} by {decimal(abs(row.margin))}"


def _cells(row: AgainstPeople) -> tuple[str, ...]:
    return (
        f"{row.discipline} {row.year}",
        str(row.n),
        decimal(row.points),
        decimal(row.ten_best),
        decimal(row.pass_mark),
        result(row),
    )


def _caption() -> str:
    boards = load_exam_boards()
    return (
        "Points: 3 right - wrong. Ten best: the average of the ten best people. "
        f"Pass mark: {percent(boards.pass_share).removesuffix('.0')} % of that, the Ministry's rule for these exams. "
        "Only exams that were asked and scored whole. "
        f"At most {boards.counted} questions counted for people; n are the data set's, spare ones included, so that "
        "points are out of 3 n."
    )
