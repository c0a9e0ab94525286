"""What an optimization leaves for people: the best program, its demonstrations as text, the trials as a report."""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

from medexam.errors import RunFolderError
from medexam.experiments.optimize.folder import CURVE, DEMONSTRATIONS, REPORT
from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.optimize.trials import describe_score, metric_title
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.programs import ProgramContext, WithNearest, build_program, demonstrations
from medexam.programs.loading import PROGRAM
from medexam.signatures import render_answer, render_question


def write_outcome(optimization: Optimization, plan: OptimizationPlan) -> None:
    """Write `program.json`, `demonstrations.md`, `report.md` and, with matplotlib, `curve.png`.

    Raises `RunFolderError` where that fails; without a trial there is only the report.
    """
    folder, best = optimization.folder, optimization.best
    if best is not None:
        try:
            program = (folder.programs / best.digest / PROGRAM).read_bytes()
        except OSError as error:
            raise RunFolderError(f"cannot write {folder.path / PROGRAM}: {error}") from None
        folder.write_bytes(PROGRAM, program)
        folder.write_text(DEMONSTRATIONS, "\n".join(_demonstrations(optimization, plan)))
    folder.write_text(REPORT, "\n".join(report_lines(optimization)))
    curve = draw_trials(optimization)
    if curve is not None:
        folder.write_bytes(CURVE, curve)


def draw_trials(optimization: Optimization) -> bytes | None:
    """The curve of the trials as PNG; None without matplotlib, or with nothing to draw."""
    if not optimization.trials or find_spec("matplotlib") is None:
        return None
    from medexam.experiments.optimize.curve import INCHES, draw_curve
    from medexam.experiments.report.plots.pictures import render_png

    draw = partial(draw_curve, trials=optimization.trials, metric=optimization.optimizer.metric)
    return render_png(draw, INCHES)


def report_lines(optimization: Optimization) -> Iterator[str]:
    """The report as Markdown."""
    spec, spent = optimization.optimizer, optimization.spent
    yield f"# {optimization.title}\n"
    if optimization.description:
        yield f"{optimization.description}\n"
    yield (
        f"Demonstrations from {optimization.train} training questions, chosen by {spec.metric.replace('_', ' ')} on "
        f"{optimization.validation} validation questions; the {optimization.tested} tested questions were neither "
        f"shown nor asked. {optimization.dropped} training questions are nearly tested or validation questions and "
        "were left out.\n"
    )
    ended = f", ended early: {optimization.why}" if optimization.why else ""
    yield (
        f"{spent.calls:,} calls and {spent.tokens:,} tokens in {optimization.seconds:.0f} s{ended}; "
        f"{optimization.beside.calls:,} of the calls went into finding demonstrations and instructions.\n"
    )
    for model in optimization.models:
        yield f"Answered by {model.describe()}.\n"
    if not optimization.trials:
        yield "Nothing was tried to the end.\n"
        return
    yield (
        f"| trial | program | demonstrations | n | accuracy | 95 % interval | {metric_title(spec.metric)} "
        "| unanswered | calls | tokens |"
    )
    yield "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for trial in optimization.trials:
        low, high = trial.accuracy_interval
        mark = " (best)" if trial == optimization.best else ""
        yield (
            f"| {trial.number} | {trial.name}{mark} | {trial.demos} | {trial.n} | {100 * trial.accuracy:.1f} | "
            f"{100 * low:.1f} to {100 * high:.1f} | {describe_score(trial.score, spec.metric)} | "
            f"{trial.unanswered} | {trial.calls} | {trial.tokens} |"
        )
    yield (
        "\nThe best of several is better on the questions that it was chosen by than on others. Whether it is better "
        "at all is for the tested questions to say: run both, and compare them.\n"
    )


def _demonstrations(optimization: Optimization, plan: OptimizationPlan) -> Iterator[str]:
    spec = plan.program.model_copy(update={"load": optimization.folder.path})
    context = ProgramContext(finder=plan.validation.retrieval, nearest=NearestDemonstrations)
    program = build_program(spec, plan.cell.dataset.language, context)
    best = optimization.best
    assert best is not None  # noqa: S101 - the caller has looked
    yield f"# What trial {best.number} ({best.name}) asks with\n"
    for name, predictor in program.named_predictors():
        yield f"## Instructions of {name}\n"
        yield "".join(f"> {line}\n" for line in predictor.signature.instructions.splitlines())
    shown = list(demonstrations(program))
    if isinstance(program, WithNearest):
        yield f"Each question is shown the {program.finder.k} nearest of {len(shown)} training questions.\n"
        shown = []
    elif not shown:
        yield "No demonstrations.\n"
    for number, (name, demo) in enumerate(shown, start=1):
        question = demo["question"]
        yield f"## Demonstration {number}, shown by {name}: {question.key}\n"
        yield f"```text\n{render_question(question)}\n```\n"
        if demo.get("rationale"):
            yield f"Reasoning: {demo['rationale']}\n"
        if demo.get("answer") is not None:
            yield f"Answer: `{render_answer(demo['answer'], plan.program.answer_form)}`\n"
