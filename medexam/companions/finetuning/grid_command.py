"""`medexam finetune-grid`: encoders learn to find spans in every training and variant of a grid."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medexam.toolkit.commands import JsonOption, TrackingOption

if TYPE_CHECKING:
    pass


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
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option("--device", help="auto is CUDA if there is one.")
    ] = ("auto"),
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune encoders in every training and variant of a grid, or continue where that stopped."""
    from medexam.companions.finetuning.actions import train_grid

    train_grid(
        spec, out, encoder or (), training or (), variant or (), device, tracking_uri, plan=plan, as_json=as_json
    )
