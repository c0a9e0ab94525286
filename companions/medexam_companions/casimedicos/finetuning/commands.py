"""`medexam finetune` and `medexam finetune-grid`: encoders learn to find the span that answers a question."""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import JsonOption, TrackingOption, refuse, settings_as_flags
from medexam_companions.casimedicos.finetuning.settings import Device, FinetuningSettings


@settings_as_flags
def finetune(
    context: typer.Context,
    settings: FinetuningSettings,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune an encoder on spans, for the program `span_reader`.

    For example:
        medexam finetune --model xlm-roberta-base --train spans.jsonl --out reader
    """
    if not settings.intermediate:
        refuse(context, {"intermediate_epochs"}, "name a first file to learn from with --intermediate FILE")
    if settings.validation is None:
        refuse(context, {"answer_tokens"}, "it is for scoring; name the questions to score with --validation FILE")
    from medexam_companions.casimedicos.finetuning.actions import train_encoder

    train_encoder(settings, tracking_uri, as_json=as_json)


def finetune_grid(
    spec: Annotated[
        str, typer.Argument(metavar="GRID", help="A YAML file with encoders, trainings and variants, or a shipped one.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where stages and cells are kept.")],
    encoder: Annotated[list[str] | None, typer.Option("--encoder", help="This encoder alone; may be repeated.")] = None,
    training: Annotated[
        list[str] | None, typer.Option("--training", help="This training alone; may be repeated.")
    ] = None,
    variant: Annotated[list[str] | None, typer.Option("--variant", help="This variant alone; may be repeated.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what is pending, and train nothing.")] = False,
    device: Annotated[Device, typer.Option("--device", help="auto is CUDA if there is one.")] = ("auto"),
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune encoders in every training and variant of a grid, or continue an interrupted grid.

    For example:
        medexam finetune-grid casimedicos --out grid --plan
    """
    from medexam_companions.casimedicos.finetuning.actions import train_grid

    train_grid(
        spec, out, encoder or (), training or (), variant or (), device, tracking_uri, plan=plan, as_json=as_json
    )
