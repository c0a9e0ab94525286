"""Reports in Markdown: `report.md` of one run, and the comparison of several.

They are made from stored runs alone, so they can be made again at any time.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from medexam.errors import RunFolderError
from medexam.experiments.compare.baselines import Contrast
from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.report.formatting import decimal, percent, with_interval
from medexam.experiments.report.markdown_parts import (
    captioned,
    describe_settings,
    describe_state,
    render_table,
    unanswered,
)
from medexam.experiments.report.retrieval_tables import contrast_table, flipped_tables, retrieval_tables
from medexam.experiments.report.run_tables import cost_tables, failure_table
from medexam.experiments.report.score_tables import score_headline, score_tables
from medexam.experiments.report.tables import LEGEND, Table, breakdowns, comparison
from medexam.experiments.store.stored_run import ExamRun
from medexam.metrics import Metrics
from medexam.predictions import Prediction

Captioned = Sequence[tuple[Table, str]]
"""Tables, each with the caption that says how to read it."""


def run_report(run: ExamRun, predictions: Mapping[str, Prediction], people: Captioned = ()) -> str:
    """`report.md`: headline, failures, breakdowns, costs, what option scores and passages tell, replies, settings.

    `people` is the table that sets the run beside people, where there is one.
    """
    record = run.record
    parts = [f"# {record.cell.name}: {run.title}"]
    if record.description:
        parts.append(record.description)
    parts += [f"**Warning.** {warning[0].upper()}{warning[1:]}." for warning in run.warnings]
    parts.append(headline(run))
    failed = failure_table(run)
    if failed is not None:
        parts.append(f"## {failed.title}\n\n{render_table(failed)}\n\n`{run.folder.resume_command}` asks them again.")
    parts += [f"## {table.title}\n\n{render_table(table)}" for table in breakdowns(run.metrics, published=True)]
    parts.append(LEGEND + " v1: rounded and averaged over exams as the HEAD-QA v1 paper does.")
    parts += captioned([*people, *cost_tables(run), *score_tables(run.metrics), *retrieval_tables(run.metrics)])
    parts += unanswered(record.questions, predictions)
    parts.append("## Settings\n\n" + render_table(describe_settings(run)))
    return "\n\n".join(parts) + "\n"


def comparison_report(runs: Sequence[ExamRun], contrasts: Sequence[Contrast] = (), people: Captioned = ()) -> str:
    """Several runs side by side, the best score of each column in bold, and what passages flip in `contrasts`.

    `people` is the table that sets the runs beside people, where there is one.
    """
    table = comparison(runs)
    warned = [f"**{run.title}.** {describe_state(run)}" for run in runs if not run.complete]
    warned += [f"**{run.title}.** Warning: {warning}." for run in runs for warning in run.warnings]
    folders = Table("Runs", ("Run", "Folder"), tuple((run.title, str(run.folder.path)) for run in runs), text_columns=2)
    flips = [part for contrast in contrasts for part in _contrast(contrast)]
    parts = [f"# {table.title}", render_table(table), LEGEND, *ranking_notes(runs), *warned, *captioned(people), *flips]
    return "\n\n".join([*parts, f"## Runs\n\n{render_table(folders)}"]) + "\n"


def write_report(
    runs: Sequence[ExamRun], path: Path, contrasts: Sequence[Contrast] = (), people: Captioned = ()
) -> None:
    """Write the report of one run, or the comparison of several; raises `RunFolderError` where that fails."""
    one = len(runs) == 1
    if one:
        text = run_report(runs[0], runs[0].folder.read_predictions(), people)
    else:
        text = comparison_report(runs, contrasts, people)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error}; choose another file with --markdown") from None


def headline(run: ExamRun) -> str:
    """The run's state and its scores over all questions."""
    return f"{describe_state(run)}\n\n{render_table(_headline(run.metrics))}"


def _headline(metrics: Metrics) -> Table:
    m = metrics
    rows = [
        ("Accuracy, %", with_interval(percent(m.accuracy), m.accuracy_interval), percent(m.chance_accuracy)),
        ("Exam score, %", with_interval(percent(m.exam_score), m.exam_score_interval), percent(m.chance_exam_score)),
        ("Points per exam", with_interval(decimal(m.points), m.points_interval, scale=1), decimal(m.chance_points)),
        ("Unanswered, %", with_interval(percent(m.unanswered_ratio), m.unanswered_ratio_interval), ""),
        ("HEAD-QA v1 accuracy, %", decimal(m.headqa_v1_accuracy), ""),
        ("HEAD-QA v1 points", decimal(m.headqa_v1_points), ""),
        ("Right / wrong / unanswered", f"{m.right} / {m.wrong} / {m.unanswered}", ""),
        *score_headline(m),
    ]
    if m.latency_p50_s is not None and m.latency_p95_s is not None:
        rows.append(("Latency, s, median / 95th percentile", f"{m.latency_p50_s:.2f} / {m.latency_p95_s:.2f}", ""))
    return Table("Result", (f"n = {m.n}", "Value [95 % interval]", "Chance"), tuple(rows))


def _contrast(contrast: Contrast) -> list[str]:
    """What passages change against one baseline, and the first questions that flipped."""
    table, caption = contrast_table(contrast)
    flipped = [table for against in contrast.against for table in flipped_tables(against)]
    return [
        f"## {table.title}\n\n{render_table(table)}\n\n{caption}",
        *(f"### {table.title}\n\n{render_table(table)}" for table in flipped),
    ]
