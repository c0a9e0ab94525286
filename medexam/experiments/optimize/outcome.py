"""What an optimization leaves for people: the best program, its demonstrations as text, the trials as a report."""

from collections.abc import Iterator

from medexam.distributions import WILSON
from medexam.errors import RunFolderError
from medexam.experiments.optimize.folder import DEMONSTRATIONS, REPORT
from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.optimize.trials import describe_score, metric_title
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.report.markdown import fenced, on_one_line, render_markdown
from medexam.experiments.report.shown import Block
from medexam.programs import ProgramContext, build_program
from medexam.programs.loading import PROGRAM, demonstrations
from medexam.programs.nearest import WithNearest
from medexam.questions import Question
from medexam.specs.names import short_name
from medexam.tables import Table, percent, with_interval


def write_outcome(optimization: Optimization, plan: OptimizationPlan) -> None:
    """Write `program.json`, `demonstrations.md` and `report.md`.

    Raises `RunFolderError` where that fails; without a trial there is only the report.
    """
    folder, best = optimization.folder, optimization.best
    if best is not None:
        try:
            program = (folder.programs / best.digest / PROGRAM).read_bytes()
        except OSError as error:
            raise RunFolderError(f"cannot write {folder.path / PROGRAM}: {error}") from None
        folder.write_bytes(PROGRAM, program)
        title = f"Program of trial {best.number} ({best.name})"
        folder.write_text(DEMONSTRATIONS, render_markdown(title, _demonstrations(optimization, plan)))
    folder.write_text(REPORT, render_markdown(optimization.title, _report(optimization)))


def _report(optimization: Optimization) -> Iterator[Block]:
    """Yield what the report shows."""
    spec, usage = optimization.optimizer, optimization.spent
    if optimization.description:
        yield optimization.description
    yield (
        f"Demonstrations from {optimization.train} training questions, chosen by "
        f"{short_name(spec.metric).replace('_', ' ')} on {optimization.validation} validation questions; the "
        f"{optimization.tested} tested questions were not used. {len(optimization.dropped)} training questions were "
        "left out, because they nearly repeat tested or validation questions."
    )
    ending = f", ended early: {optimization.why}" if optimization.why else ""
    yield (
        f"{usage.calls:,} calls and {usage.tokens:,} tokens in {optimization.seconds:.0f} s{ending}; "
        f"{optimization.beside.calls:,} of the calls went into finding demonstrations and instructions."
    )
    for model in optimization.models:
        yield f"Answered by {model.describe()}."
    if not optimization.trials:
        yield "No trial was completed."
        return
    yield trials_table(optimization)
    yield (
        "The chosen program looks better on these questions than on others. Run both programs on the tested "
        "questions, and compare them."
    )


def trials_table(optimization: Optimization, *, brief: bool = False) -> Table:
    """List every trial with its scores; `brief` leaves out what is only of use for looking closer."""
    trials, best, metric = optimization.trials, optimization.best, optimization.optimizer.metric
    columns = {
        "Trial": [str(trial.number) for trial in trials],
        "Program": [trial.name + (" (best)" if trial == best else "") for trial in trials],
        "Demos": [str(trial.demos) for trial in trials],
        "n": [str(trial.n) for trial in trials],
        "Accuracy": [with_interval(percent(trial.accuracy), trial.accuracy_interval) for trial in trials],
    }
    if metric != "accuracy":
        columns[metric_title(metric)] = [describe_score(trial.score, metric) for trial in trials]
    if not brief:
        columns["No answer"] = [str(trial.unanswered) for trial in trials]
    columns["Calls"] = [f"{trial.calls:,}" for trial in trials]
    if not brief:
        columns["Tokens"] = [f"{trial.tokens:,}" for trial in trials]
    rows = tuple(zip(*columns.values(), strict=True))
    caption = f"Percent of n, with a 95 % interval ({WILSON})."
    return Table(optimization.title, tuple(columns), rows, text_columns=2, caption=caption)


def _demonstrations(optimization: Optimization, plan: OptimizationPlan) -> Iterator[Block]:
    spec = plan.spec.model_copy(update={"load": optimization.folder.path})
    context = ProgramContext(finder=plan.validation.retrieval, nearest=NearestDemonstrations)
    program = build_program(spec, plan.cell.dataset.language, context)
    for name, predictor in program.named_predictors():
        yield f"Instructions of {name}:"
        yield fenced(predictor.signature.instructions)
    demos = list(demonstrations(program))
    if isinstance(program, WithNearest):
        yield f"Each prompt shows the {program.finder.k} most similar of {len(demos)} training questions."
        demos = []
    elif not demos:
        yield "No demonstrations."
    for number, (name, demo) in enumerate(demos, start=1):
        question = demo.get("question")
        if not isinstance(question, Question):
            fields = "\n".join(f"{field}: {on_one_line(str(value))}" for field, value in demo.items())
            yield f"Demonstration {number}, shown by {name}:"
            yield fenced(fields)
            continue
        yield f"Demonstration {number}, shown by {name}: {question.key}"
        yield fenced(question.printed)
        if demo.get("rationale"):
            yield f"Reasoning: {demo['rationale']}"
        if demo.get("answer") is not None:
            yield f"Answer: {demo['answer']}"
