"""`medexam finetune`: an encoder learns to find the span that answers a question."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medexam.cli.options import INCOMPLETE, JsonOption, TrackingOption
from medexam.cli.views.output import print_json
from medexam.errors import SpecError

if TYPE_CHECKING:
    from medexam.experiments.finetune.encoder import Finetuned


def finetune(
    model: Annotated[str, typer.Option("--model", metavar="MODEL", help="A folder or a hub id of an encoder.")],
    train: Annotated[Path, typer.Option("--train", metavar="FILE", help="Questions with spans, in SQuAD's form.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder to write.")],
    validation: Annotated[
        Path | None, typer.Option("--validation", metavar="FILE", help="Score the result on these questions.")
    ] = None,
    intermediate: Annotated[
        Path | None, typer.Option("--intermediate", metavar="FILE", help="Learn from these first, such as SQuAD-es.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Times that --train is read; 20.")] = None,
    intermediate_epochs: Annotated[int | None, typer.Option(min=1, help="Times for --intermediate; 2.")] = None,
    window: Annotated[int | None, typer.Option(min=32, help="Tokens of question and context together; 384.")] = None,
    shared: Annotated[int | None, typer.Option(min=1, help="Tokens that windows share; 128, at most a third.")] = None,
    answer_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of the longest answer; 512.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Windows in one step; 8.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="At the first step; 5e-5.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything that is drawn; 42.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of a hub model; the newest by default.")] = None,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune an encoder on spans, into a folder that `span_reader` reads with."""
    from medexam.experiments.finetune.encoder import finetune as carry_out
    from medexam.experiments.finetune.settings import FinetuningSettings
    from medexam.specs.validation import validate

    if intermediate_epochs is not None and intermediate is None:
        raise SpecError("--intermediate-epochs: name the questions to learn from first with --intermediate FILE")
    if answer_tokens is not None and validation is None:
        raise SpecError("--answer-tokens: it is for scoring; name the questions to score with --validation FILE")
    said: dict[str, Any] = {
        "model": model,
        "train": train,
        "out": out,
        "validation": validation,
        "intermediate": intermediate,
        "epochs": epochs,
        "intermediate_epochs": intermediate_epochs,
        "window": window,
        "shared": shared,
        "answer_tokens": answer_tokens,
        "batch": batch,
        "learning_rate": learning_rate,
        "seed": seed,
        "device": device,
        "revision": revision,
    }
    settings = validate(FinetuningSettings, {name: value for name, value in said.items() if value is not None})
    try:
        with _TrainingProgress() as progress:
            done = carry_out(settings, progress)
    except KeyboardInterrupt:
        sys.stderr.write("medexam: interrupted: nothing is kept; the same command begins anew\n")
        raise typer.Exit(INCOMPLETE) from None
    _track(done, tracking_uri)
    if as_json:
        print_json({"folder": str(done.folder), **done.record})
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(done)))


class _TrainingProgress:
    """A bar for each stage on standard error; without a terminal a line for each."""

    def __init__(self) -> None:
        from medexam.cli.progress.bars import open_bars

        self._bars = open_bars()
        self._task: Any = None
        self._loss = ""

    def __enter__(self) -> "_TrainingProgress":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def warns(self, line: str) -> None:
        """Say it above the bars."""
        self._bars.console.print(f"medexam: {line}", highlight=False, markup=False, soft_wrap=True)

    def stage_starts(self, name: str, lessons: Any, steps: int) -> None:
        """Open the stage's bar."""
        what = f"{name}: {lessons.used:,} questions in {len(lessons.windows):,} windows, {steps:,} steps"
        if not self._bars.console.is_terminal:
            self._bars.console.print(what, highlight=False, soft_wrap=True)
        self._task = self._bars.add_task(name, total=steps, note="")

    def step_ends(self, step: int, epoch: float, loss: float | None) -> None:
        """Move the bar; the note says epoch and loss."""
        if loss is not None:
            self._loss = f", loss {loss:.3f}"
        self._bars.update(self._task, completed=step, note=f"epoch {epoch:.1f}{self._loss}")


def _track(done: "Finetuned", tracking_uri: str | None) -> None:
    """Send it to MLflow; an outage costs nothing but a line, for the folder is complete."""
    from medexam.errors import TrackingError
    from medexam.experiments.finetune.tracking import track_finetuning
    from medexam.experiments.store.paths import default_runs_dir
    from medexam.experiments.track.store import default_tracking_uri

    try:
        track_finetuning(done, tracking_uri=tracking_uri or default_tracking_uri(default_runs_dir()))
    except TrackingError as error:
        sys.stderr.write(f"medexam: {error}\n")


def _lines(done: "Finetuned") -> list[str]:
    record = done.record
    lines = []
    for stage, data in record["data"].items():
        steps = record["losses"][stage]
        told = f", loss {steps[0][1]:.3f} to {steps[-1][1]:.3f}" if steps else ""
        lines.append(
            f"{stage}: {data['used']:,} of {data['questions']:,} questions in {data['windows']:,} windows{told}"
        )
    if done.validated is not None:
        for rule, scores in (("SQuAD's rule", done.validated.squad), ("MLQA's Spanish rule", done.validated.spanish)):
            lines.append(
                f"validation, {rule}: F1 {scores.f1:.2f}, exact match {scores.exact_match:.2f}, n {scores.n:,}"
            )
    lines.append(f"{done.folder}: written in {record['seconds']:.0f} s on {record['device']}")
    lines.append(f"Read with it: medexam run headqa_v1_readers --set program.span_reader.reader={done.folder}")
    return lines
