"""Reports in Markdown: `report.md` of one run, the comparison of several, and what other reports take from them.

They are made from stored runs alone, so they can be made again at any time.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.report.escaping import cell, disarm, heading, on_one_line, paragraphs
from medexam.experiments.report.findings import describe_readings
from medexam.experiments.report.own_tables import own_tables
from medexam.experiments.report.run_tables import cost_tables, failure_tables
from medexam.experiments.report.tables import comparison, legend
from medexam.experiments.store.answerers import describe_answerers, describe_models, read_models
from medexam.experiments.store.run_folder import RunRecord
from medexam.experiments.store.stored_run import AnyRun
from medexam.predictions import Prediction, Status
from medexam.tables import Captioned, Table, flatten
from medexam.text import count_of, shorten

SHOWN_REPLIES = 3
SHOWN_CHARACTERS = 600


class Verbatim(str):
    """A block of Markdown that is shown word for word, and obeyed by nobody."""

    __slots__ = ()


def render_table(table: Table) -> str:
    """Render a Markdown table without its title; stressed cells are bold."""
    marks = [":--" if column < table.text_columns else "--:" for column in range(len(table.headers))]
    lines = [tuple(cell(text) for text in table.headers), tuple(marks)]
    for row, cells in enumerate(table.rows):
        escaped = [cell(text) for text in cells]
        lines.append(
            tuple(f"**{text}**" if (row, column) in table.best else text for column, text in enumerate(escaped))
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def join_markdown(parts: Iterable[str]) -> str:
    """Join these parts into a whole document, each as `disarm` leaves it; `fenced` ones stay as they are."""
    return "\n\n".join(part if isinstance(part, Verbatim) else disarm(part) for part in parts) + "\n"


def describe_state(run: AnyRun) -> str:
    """Describe whether all questions of a run are scored, what asks the others, and whether several models answered."""
    metrics = run.metrics
    if metrics.complete:
        state = f"Complete: {metrics.n} questions{run.benchmark.origin(metrics)} scored."
    elif run.running:
        state = f"{str(run.note).capitalize()}."
    else:
        state = (
            f"Incomplete: {metrics.n} of {metrics.selected} questions scored, {metrics.failed} failed, "
            f"{metrics.missing} not asked yet. They do not count; `{run.folder.resume_command}` asks them."
        )
    return state if not run.mixed else f"{state} **Mixed models:** {describe_answerers(run.answerers)}."


def captioned(tables: Iterable[Captioned]) -> list[str]:
    """Render a section a table, with its caption."""
    return [f"{_section(table)}\n\n{caption}" for table, caption in tables]


def _section(table: Table, title: str | None = None, *, level: int = 2) -> str:
    """Render a table under its title or another one."""
    return f"{heading(level, title or table.title)}\n\n{render_table(table)}"


def describe_settings(run: AnyRun) -> Table:
    """List what was asked for and what ran, for the end of a report."""
    record = run.record
    rows = {
        "run": record.run_id,
        "spec digest": record.spec_digest,
        "data set version": record.dataset_version,
        "data set source": record.dataset_source,
        "data set SHA-256": record.dataset_fingerprint,
        **_corrected(record),
        "golds SHA-256": record.dataset_golds or "in that of the data set",
        **flatten(record.cell.model_dump(mode="json", include={"dataset", "program"})),
    }
    if record.cell.program.asks_model:
        rows |= flatten(record.cell.model_dump(mode="json", include={"model"}))
    models = describe_models(run.answerers, read_models(run.folder))
    rows |= {
        "answered by" if place == 0 else f"and by ({place})": description for place, description in enumerate(models)
    }
    rows |= flatten(run.environment, "ran.")
    return Table("Settings", ("Setting", "Value"), tuple(rows.items()), text_columns=2)


def _corrected(record: RunRecord) -> dict[str, str]:
    """Describe which texts were asked, where they are not those that were published."""
    if record.dataset_as_published is None:
        return {}
    n = count_of(len(record.dataset_corrected), "question")
    note = f"{n} of the data set, in which private-use characters are read as the signs that they stand for"
    return {"data set SHA-256 as published": record.dataset_as_published, "corrected": note}


def unanswered(questions: Iterable[str], predictions: Mapping[str, Prediction]) -> list[str]:
    """Describe how questions stayed unanswered, with a few first replies, for a look at what the model does instead."""
    prediction_count = 0
    reasons: Counter[str] = Counter()
    examples: list[tuple[Prediction, str]] = []
    for prediction in (predictions[key] for key in questions if key in predictions):
        prediction_count += 1
        if prediction.status is Status.UNANSWERED:
            reasons[str(prediction.reason)] += 1
            if prediction.reply is not None and len(examples) < SHOWN_REPLIES:
                examples.append((prediction, prediction.reply))
    if not reasons:
        return []
    counts = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    example_parts = [
        (f"`{on_one_line(example.question)}` ({example.reason}):", fenced(shorten(reply, SHOWN_CHARACTERS)))
        for example, reply in examples
    ]
    return [
        f"## Unanswered questions\n\n{reasons.total()} of {prediction_count}: {counts}.",
        *chain.from_iterable(example_parts),
    ]


def fenced(text: str) -> Verbatim:
    """Put `text` in a code block that nothing in it can close."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return Verbatim(f"{fence}text\n{text}\n{fence}")


def run_report(run: AnyRun, predictions: Mapping[str, Prediction], extra: Sequence[Captioned] = ()) -> str:
    """Render `report.md`: headline, failures, breakdowns, costs, what else the benchmark says, replies, settings.

    `extra` are tables that more is needed for than the run, such as those of installed packages.
    """
    record, benchmark, metrics = run.record, run.benchmark, run.metrics
    parts = [heading(1, f"{record.cell.name}: {run.title}")]
    if record.description:
        parts.append(paragraphs(record.description))
    parts += [f"**Warning.** {_sentence(warning)}" for warning in run.warnings]
    parts += [f"**Note.** {_sentence(note)}" for note in benchmark.notes(metrics)]
    parts += [render_headline(run), *describe_readings([run])]
    parts += captioned(own_tables([run]))
    parts += captioned(failure_tables(run, f"`{run.folder.resume_command}` asks them again."))
    parts += [_section(table) for table in benchmark.breakdowns(metrics, published=True)]
    parts.append(benchmark.legend([metrics]) + benchmark.published_legend)
    parts += captioned([*extra, *cost_tables(run), *benchmark.details(metrics)])
    parts += unanswered(record.questions, predictions)
    parts.append(_section(describe_settings(run)))
    return join_markdown(parts)


def comparison_report(runs: Sequence[AnyRun], extra: Sequence[Captioned] = ()) -> str:
    """Render runs of one family side by side, the best scores in bold.

    `extra` are tables that more is needed for than the runs, such as those of installed packages.
    """
    table = comparison(runs)
    warnings = [f"**{on_one_line(run.title)}.** {describe_state(run)}" for run in runs if not run.complete]
    warnings += [on_one_line(f"**{run.title}.** Warning: {warning}.") for run in runs for warning in run.warnings]
    folders = Table("Runs", ("Run", "Folder"), tuple((run.title, str(run.folder.path)) for run in runs), text_columns=2)
    parts = [heading(1, table.title), render_table(table), legend(runs), *ranking_notes(runs), *warnings]
    parts += map(on_one_line, describe_readings(runs))
    parts += captioned([*own_tables(runs), *extra])
    parts += [_section(table, f"{run.title}: {table.title}") for run in runs for table in _own(run)]
    return join_markdown([*parts, _section(folders)])


def render_headline(run: AnyRun) -> str:
    """Render the run's state and its scores over all questions."""
    return f"{describe_state(run)}\n\n{render_table(run.benchmark.headline(run.metrics))}"


def _own(run: AnyRun) -> list[Table]:
    """Build the tables of one run that a report on several shows."""
    return run.benchmark.breakdowns(run.metrics, published=False) if run.benchmark.report_each else []


def _sentence(text: str) -> str:
    return on_one_line(f"{text[:1].upper()}{text[1:]}.")
