"""`medexam finetune`: an encoder learns to find the span that answers a question."""

import sys
from typing import TYPE_CHECKING

import typer

from medexam.companions.finetuning.settings import FinetuningSettings
from medexam.toolkit.commands import (
    INCOMPLETE,
    JsonOption,
    TrackingOption,
    default_runs_dir,
    print_json,
    refuse,
    send_to_mlflow,
    settings_as_flags,
)

if TYPE_CHECKING:
    from medexam.companions.finetuning.encoder import Finetuned


@settings_as_flags
def finetune(
    context: typer.Context,
    settings: FinetuningSettings,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune an encoder on spans, into a folder that `span_reader` reads with."""
    from medexam.companions.finetuning.encoder import finetune as carry_out
    from medexam.companions.finetuning.tracking import track_finetuning
    from medexam.toolkit.progress import TrainingProgress

    if not settings.intermediate:
        refuse(context, {"intermediate_epochs"}, "name the questions to learn from first with --intermediate FILE")
    if settings.validation is None:
        refuse(context, {"answer_tokens"}, "it is for scoring; name the questions to score with --validation FILE")
    try:
        with TrainingProgress() as progress:
            trained_encoder = carry_out(settings, progress)
    except KeyboardInterrupt:
        sys.stderr.write("medexam: interrupted: nothing is kept; the same command starts over\n")
        raise typer.Exit(INCOMPLETE) from None
    if as_json:
        print_json({"folder": str(trained_encoder.folder), **trained_encoder.record})
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(trained_encoder)))
    send_to_mlflow(track_finetuning, trained_encoder, tracking_uri=tracking_uri, runs_dir=default_runs_dir())


def _lines(trained_encoder: "Finetuned") -> list[str]:
    from medexam.toolkit.specs import shipped_with

    record = trained_encoder.record
    lines = []
    for stage, data in record["data"].items():
        # Several files of one stage are numbered, and share its loss.
        steps = record["losses"].get(stage) or record["losses"].get(stage.partition(" ")[0])
        loss_note = f", loss {steps[0][1]:.3f} to {steps[-1][1]:.3f}" if steps else ""
        lines.append(
            f"{stage}: {data['used']:,} of {data['questions']:,} questions in {data['windows']:,} windows{loss_note}"
        )
    rules = {"squad": "SQuAD's rule", "spanish": "MLQA's Spanish rule"}
    lines += [
        f"validation, {rules[rule]}: F1 {scores.f1:.2f}, exact match {scores.exact_match:.2f}, "
        f"precision {scores.precision:.2f}, recall {scores.recall:.2f}, n {scores.n:,}"
        for rule, scores in trained_encoder.validated.items()
    ]
    lines.append(f"{trained_encoder.folder}: written in {record['seconds']:.0f} s on {record['device']}")
    shipped = " or ".join(shipped_with("span_reader"))
    lines.append(f"Read with it: medexam run {shipped} --set program.span_reader.reader={trained_encoder.folder}")
    return lines
