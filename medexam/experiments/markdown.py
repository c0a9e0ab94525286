"""Reports in Markdown: `report.md` of one run, and the comparison of several.

They are made from stored runs alone, so they can be made again at any time.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from medexam.errors import RunFolderError
from medexam.experiments.baselines import Contrast
from medexam.experiments.formatting import decimal, flatten, percent, with_interval
from medexam.experiments.retrieval_tables import contrast_table, flipped_tables, retrieval_tables
from medexam.experiments.run_tables import cost_tables, failure_table
from medexam.experiments.score_tables import score_headline, score_tables
from medexam.experiments.summary import StoredRun
from medexam.experiments.tables import LEGEND, Table, breakdowns, comparison
from medexam.metrics import Metrics
from medexam.predictions import Prediction, Status

SHOWN_REPLIES = 3
SHOWN_CHARACTERS = 600

Captioned = Sequence[tuple[Table, str]]
"""Tables, each with the caption that says how to read it."""


def run_report(run: StoredRun, predictions: Mapping[str, Prediction], people: Captioned = ()) -> str:
    """`report.md`: headline, failures, breakdowns, costs, what option scores and passages tell, replies, settings.

    `people` is the table that sets the run beside people, where there is one.
    """
    record = run.record
    parts = [f"# {record.cell.name}: {run.title}"]
    if record.description:
        parts.append(record.description)
    parts += [f"**Warning.** {warning[0].upper()}{warning[1:]}." for warning in record.warnings]
    parts.append(headline(run))
    failed = failure_table(run)
    if failed is not None:
        parts.append(f"## {failed.title}\n\n{render_table(failed)}\n\n`{run.folder.resume_command}` asks them again.")
    parts += [f"## {table.title}\n\n{render_table(table)}" for table in breakdowns(run.metrics, published=True)]
    parts.append(LEGEND + " v1: rounded and averaged over exams as the HEAD-QA v1 paper does.")
    parts += _captioned([*people, *cost_tables(run), *score_tables(run.metrics), *retrieval_tables(run.metrics)])
    parts += _unanswered(record.questions, predictions)
    parts.append("## Settings\n\n" + render_table(_settings(run)))
    return "\n\n".join(parts) + "\n"


def comparison_report(runs: Sequence[StoredRun], contrasts: Sequence[Contrast] = (), people: Captioned = ()) -> str:
    """Several runs side by side, the best score of each column in bold, and what passages flip in `contrasts`.

    `people` is the table that sets the runs beside people, where there is one.
    """
    table = comparison(runs)
    owing = [f"**{run.title}.** {_state(run)}" for run in runs if not run.complete]
    owing += [f"**{run.title}.** Warning: {warning}." for run in runs for warning in run.record.warnings]
    folders = Table("Runs", ("Run", "Folder"), tuple((run.title, str(run.folder.path)) for run in runs), text_columns=2)
    flips = [part for contrast in contrasts for part in _contrast(contrast)]
    parts = [f"# {table.title}", render_table(table), LEGEND, *owing, *_captioned(people), *flips]
    return "\n\n".join([*parts, f"## Runs\n\n{render_table(folders)}"]) + "\n"


def write_report(
    runs: Sequence[StoredRun], path: Path, contrasts: Sequence[Contrast] = (), people: Captioned = ()
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


def headline(run: StoredRun) -> str:
    """The run's state and its scores over all questions."""
    return f"{_state(run)}\n\n{render_table(_headline(run.metrics))}"


def render_table(table: Table) -> str:
    """A Markdown table without its title; stressed cells are bold."""
    marks = [":--" if column < table.text_columns else "--:" for column in range(len(table.headers))]
    lines = [table.headers, tuple(marks)]
    for row, cells in enumerate(table.rows):
        escaped = [re.sub(r"\s*\n\s*", " ", cell.replace("|", "\\|")) for cell in cells]
        lines.append(tuple(f"**{text}**" if (row, at) in table.best else text for at, text in enumerate(escaped)))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _state(run: StoredRun) -> str:
    metrics = run.metrics
    if metrics.complete:
        return f"Complete: {metrics.n} questions of {metrics.exams} exams scored."
    return (
        f"Incomplete: {metrics.n} of {metrics.selected} questions scored, {metrics.failed} failed, "
        f"{metrics.missing} not asked yet. These enter no score; `{run.folder.resume_command}` asks them."
    )


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


def _captioned(tables: Iterable[tuple[Table, str]]) -> list[str]:
    return [f"## {table.title}\n\n{render_table(table)}\n\n{caption}" for table, caption in tables]


def _contrast(contrast: Contrast) -> list[str]:
    """What passages change against one baseline, and the first questions that flipped."""
    table, caption = contrast_table(contrast)
    flipped = [table for against in contrast.against for table in flipped_tables(against)]
    return [
        f"## {table.title}\n\n{render_table(table)}\n\n{caption}",
        *(f"### {table.title}\n\n{render_table(table)}" for table in flipped),
    ]


def _settings(run: StoredRun) -> Table:
    record = run.record
    rows = {
        "run": record.run_id,
        "spec digest": record.spec_digest,
        "data set version": record.dataset_version,
        "data set source": record.dataset_source,
        "data set SHA-256": record.dataset_fingerprint,
        **flatten(record.cell.model_dump(mode="json", include={"dataset", "program"})),
    }
    if run.model is not None:
        rows |= flatten(record.cell.model_dump(mode="json", include={"model"}))
    rows |= flatten(run.environment, "ran.")
    return Table("Settings", ("Setting", "Value"), tuple(rows.items()), text_columns=2)


def _unanswered(questions: Iterable[str], predictions: Mapping[str, Prediction]) -> list[str]:
    """How questions stayed unanswered, and the first few replies, for a look at what the model does instead."""
    found = 0
    reasons: Counter[str] = Counter()
    shown: list[str] = []
    for prediction in (predictions[key] for key in questions if key in predictions):
        found += 1
        if prediction.status is Status.UNANSWERED:
            reasons[str(prediction.reason)] += 1
            if prediction.reply is not None and len(shown) < SHOWN_REPLIES:
                shown.append(f"`{prediction.question}` ({prediction.reason}):\n\n{_fenced(prediction.reply)}")
    if not reasons:
        return []
    counts = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    return [f"## Unanswered questions\n\n{reasons.total()} of {found}: {counts}.", *shown]


def _fenced(reply: str) -> str:
    """`reply` in a code block that nothing in it can close."""
    text = reply if len(reply) <= SHOWN_CHARACTERS else reply[:SHOWN_CHARACTERS] + " […]"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"
