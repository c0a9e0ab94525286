"""`medexam finetune-grid`: encoders learn to find spans in every training and variant of a grid."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from medexam.toolkit.commands import (
    INCOMPLETE,
    JsonOption,
    TrackingOption,
    default_runs_dir,
    print_json,
    print_tables,
    send_to_mlflow,
)

if TYPE_CHECKING:
    from medexam.companions.finetuning.grid import GridCell


def finetune_grid(
    spec: Annotated[
        str,
        typer.Argument(metavar="GRID", help="A YAML file with encoders, trainings and variants, or a shipped one."),
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
    from medexam.companions.finetuning.grid import load_grid, narrow_grid, plan_grid, run_grid
    from medexam.companions.finetuning.tracking import track_finetuning
    from medexam.toolkit.progress import TrainingProgress

    grid = narrow_grid(load_grid(spec), encoder or (), training or (), variant or ())
    cells = plan_grid(grid, out, device, only_look=plan)
    if not plan:
        try:
            with TrainingProgress() as progress:
                for _, trained_encoder in run_grid(cells, progress, keep_weights=grid.keep_weights):
                    send_to_mlflow(
                        track_finetuning, trained_encoder, tracking_uri=tracking_uri, runs_dir=default_runs_dir()
                    )
        except KeyboardInterrupt:
            sys.stderr.write("medexam: interrupted: finished stages are kept; the same command continues\n")
            raise typer.Exit(INCOMPLETE) from None
    if as_json:
        print_json(_document(cells))
        return
    from medexam.companions.finetuning.grid_tables import grid_tables
    from medexam.toolkit.commands import Terminal

    print_tables(Terminal(), grid_tables(cells))
    if plan:
        pending = {stage.settings.out for cell in cells for stage in cell.stages if not stage.finished}
        sys.stdout.write(f"{len(pending)} stages of {len(cells)} cells are pending\n")


def _document(cells: "list[GridCell]") -> list[dict[str, Any]]:
    return [
        {
            "encoder": cell.encoder,
            "training": cell.training,
            "variant": cell.variant,
            "folder": str(cell.folder),
            "stages": [
                {
                    "files": [str(path) for path in stage.settings.train],
                    "folder": str(stage.settings.out),
                    "finished": stage.finished,
                }
                for stage in cell.stages
            ],
            "scores": cell.scores,
        }
        for cell in cells
    ]
