"""`medexam compare` of runs whose questions are answered in words."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from medexam.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medexam.experiments.compare.task_comparison import TaskComparison
    from medexam.experiments.store.run_folder import RunFolder


def compare_tasks(
    folders: "Sequence[RunFolder]", *, as_json: bool, markdown: Path | None, languages: bool
) -> "TaskComparison":
    """Print the comparison and write what is asked for; raises `SpecError` for what only exams have."""
    if languages:
        raise SpecError(
            "--languages looks at questions that are right or wrong; these runs answer in words: leave it out, runs in "
            "two languages are compared by their measures"
        )
    from medexam.experiments.compare.task_comparing import compare_task_runs
    from medexam.experiments.compare.task_comparison import task_comparison_document

    comparison = compare_task_runs(folders)
    if markdown is not None:
        from medexam.experiments.report.comparison_markdown import write_markdown
        from medexam.experiments.report.task_comparison_markdown import paired_task_report

        write_markdown(paired_task_report(comparison), markdown)
        sys.stderr.write(f"wrote {markdown}\n")
    if as_json:
        sys.stdout.write(json.dumps(task_comparison_document(comparison), ensure_ascii=False, indent=2) + "\n")
    else:
        _print(comparison)
    return comparison


def _print(comparison: "TaskComparison") -> None:
    from medexam.cli.views.comparison import print_comparison
    from medexam.experiments.report.comparison_tables import SHOWN_PAIRS
    from medexam.experiments.report.task_comparison_tables import (
        build_task_comparison_tables,
        task_headline,
        task_verdicts,
    )

    said = task_verdicts(comparison)
    if len(comparison.pairs) > SHOWN_PAIRS and len(comparison.pairs[0].by_group) > 1:
        said.insert(0, "--markdown FILE and --json hold the breakdowns by group.")
    print_comparison(comparison, task_headline(comparison), build_task_comparison_tables(comparison), said)
