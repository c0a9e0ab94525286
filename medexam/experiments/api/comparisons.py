"""Compared runs, which show themselves."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from medexam.experiments.api.asking import write_notice
from medexam.experiments.api.results import Runs
from medexam.experiments.api.runs import RunSource, run_folder, where_runs_lie
from medexam.experiments.compare.further import find_further
from medexam.experiments.compare.runs import compare_runs, find_compared
from medexam.experiments.report.comparison_tables import comparison_blocks, paired_report
from medexam.experiments.report.shown import Block, Displayed
from medexam.model_calls import Reading

if TYPE_CHECKING:
    from medexam.experiments.compare.result import Comparison


class ComparedRuns(Displayed):
    """Runs beside the first one, on the questions that all have scored."""

    def __init__(self, comparison: "Comparison") -> None:
        self.comparison = comparison
        """Everything that was found."""

    @property
    def questions(self) -> tuple[str, ...]:
        """Keys of the compared questions."""
        return self.comparison.questions

    def document(self) -> dict[str, Any]:
        """Build what `medexam compare --json` prints."""
        return self.comparison.document()

    def markdown(self) -> str:
        """Render what `medexam compare --markdown` writes."""
        return paired_report(self.comparison)

    def blocks(self) -> list[Block]:
        """Build what `medexam compare` prints."""
        return comparison_blocks(self.comparison)


def compare(
    baseline: RunSource | Runs,
    *others: RunSource,
    ensemble: Literal["vote", "mean_probability"] | None = None,
    equivalent_within: float | None = None,
    reading: Reading | None = None,
    runs_dir: str | Path | None = None,
    **sections: Any,
) -> ComparedRuns:
    """Compare runs with the first one on the questions that all have scored; asks no model.

    With `ensemble`, compare each with what all would answer together. With `equivalent_within`, test whether they
    differ from the first one by less than that, in percentage points. With `reading`, read the replies of all runs so.
    `sections` are the flags of `medexam compare` that installed packages add, such as `strengths=True` or
    `cutoff="2023-06"`.

    Raises `DatasetError` if they share no question, and `SpecError` if there is nothing to compare with, or if no
    package adds a section.
    """
    runs = [*(baseline if isinstance(baseline, Runs) else [baseline]), *others]
    folders = find_compared([run_folder(run, where_runs_lie(runs_dir)) for run in runs])
    finders = find_further(equivalent_within, ensemble=ensemble, **sections)
    comparison = compare_runs(tuple(folders), tuple(finders), reading)
    for line in comparison.scope.corrected:
        write_notice(line)
    return ComparedRuns(comparison)
