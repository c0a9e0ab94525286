"""The page of runs whose questions are answered in words: tables, and every question with what each run answered."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from medexam import __version__
from medexam.experiments.compare.ranking import ranking_notes
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.page.document import PageSize
from medexam.experiments.report.page.sections import Section, Shown
from medexam.experiments.report.page.templates import STYLE, open_templates, read_asset, write_pieces, write_policy
from medexam.experiments.report.run_tables import cost_tables, failure_table
from medexam.experiments.report.tables import comparison
from medexam.experiments.store.questions import load_stored
from medexam.experiments.store.stored_run import AnyRun
from medexam.formatting import percent
from medexam.predictions import Prediction
from medexam.tables import Table
from medexam.tasks import Task, TaskGold


@dataclass(frozen=True)
class Answer:
    """What one run answered."""

    run: str
    state: str
    """The status, with why there is no answer."""
    scores: tuple[tuple[str, str], ...]
    """Measure and value in percent."""
    text: str | None
    """None where there is no answer, and where it is the whole reply."""
    reply: str | None


@dataclass(frozen=True)
class Entry:
    """One question with its answers."""

    key: str
    question: str
    shown: tuple[tuple[str, str], ...]
    """What else is shown or expected, under a name each."""
    answers: tuple[Answer, ...]


def write_task_page(runs: Sequence[AnyRun], path: Path, boards: Sequence[Table] = ()) -> PageSize:
    """Write the page of one run or more of one benchmark, whole or not at all, with these boards.

    Raises `RunFolderError` where that fails, and `DatasetError` where the data cannot be read.
    """
    size = write_pieces(_render(runs, boards), path)
    return PageSize(size, len({key for run in runs for key in run.record.questions}))


def _render(runs: Sequence[AnyRun], boards: Sequence[Table]) -> Iterator[str]:
    names = run_names(runs)
    style = read_asset(STYLE)
    return (
        open_templates()
        .get_template("tasks.html")
        .generate(
            title=comparison(runs).title,
            version=__version__,
            policy=write_policy(style, ()),
            style=Markup(style),  # noqa: S704 - the package's own file
            warnings=[
                *ranking_notes(runs),
                *dict.fromkeys(note for run in runs for note in (*run.warnings, *run.benchmark.notes(run.metrics))),
            ],
            sections=list(_sections(runs, names, boards)),
            groups=_groups(runs, names),
        )
    )


def _notes(run: AnyRun) -> tuple[str, ...]:
    return (*run.warnings, *run.benchmark.notes(run.metrics))


def _sections(runs: Sequence[AnyRun], names: Sequence[str], boards: Sequence[Table]) -> Iterator[Section]:
    yield Section("scores", "Scores", (Shown(comparison(runs), runs[0].benchmark.legend), *map(Shown, boards)))
    for number, (run, name) in enumerate(zip(runs, names, strict=True), start=1):
        failed = failure_table(run)
        tables = [Shown(table) for table in run.benchmark.breakdowns(run.metrics, published=True)]
        tables += [Shown(table, caption) for table, caption in cost_tables(run)]
        tables += [Shown(failed)] if failed is not None else []
        yield Section(f"run-{number}", name, tuple(tables))


def _groups(runs: Sequence[AnyRun], names: Sequence[str]) -> list[tuple[str, list[Entry]]]:
    """Group of the questions -> every question of it that any run was asked, in the order of the first run."""
    tasks: dict[str, tuple[Task, TaskGold]] = {}
    answers: dict[str, list[Answer]] = {}
    for run, name in zip(runs, names, strict=True):
        data = load_stored(run.record)
        tasks |= {task.key: (task, data.golds[task.key]) for task in data.questions if task.key not in tasks}
        with run.folder.opened_predictions() as predictions:
            items = run.benchmark.score(data, predictions).items
            for task in data.questions:
                if task.key in predictions:
                    answers.setdefault(task.key, []).append(_answer(name, predictions[task.key], items))
    groups: dict[str, list[Entry]] = {}
    for key, (task, gold) in tasks.items():
        entry = Entry(key, task.question, tuple(_shown(task, gold)), tuple(answers.get(key, ())))
        groups.setdefault(task.group, []).append(entry)
    return list(groups.items())


def _answer(run: str, prediction: Prediction, items: Mapping[str, Mapping[str, float]]) -> Answer:
    said = prediction.reason or (prediction.failure.kind if prediction.failure else None)
    scores = {
        name.capitalize(): percent(of[prediction.question]) for name, of in items.items() if prediction.question in of
    }
    same = prediction.text is None or prediction.text == (prediction.reply or "").strip()
    return Answer(
        run=run,
        state=f"{prediction.status}: {said}" if said else str(prediction.status),
        scores=tuple(scores.items()),
        text=None if same else prediction.text,
        reply=prediction.reply,
    )


def _shown(task: Task, gold: TaskGold) -> Iterator[tuple[str, str]]:
    """What is shown with the question, then what is expected."""
    if task.context:
        yield "Context", task.context
    if task.options:
        yield "Options", "\n".join(task.options)
    if task.given_answer:
        yield "Answer that is shown", task.given_answer
    if task.given_reasoning:
        yield "Reasoning that is shown", "\n".join(task.given_reasoning)
    wanted = (
        gold.incorrect_explanation,
        "\n".join(gold.incorrect_step),
        "" if task.given_answer else "\n".join(gold.answers),
    )
    for text in filter(None, wanted):
        yield "Expected", text
    if gold.components:
        yield "Argument components", "\n".join(f"{c.label}: {task.context[c.start : c.end]}" for c in gold.components)
