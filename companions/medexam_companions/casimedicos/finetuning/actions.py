"""What `medexam finetune` and `medexam finetune-grid` do: train with a bar, and print and send what came of it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from medexam.cli import INCOMPLETE, Terminal, TrainingProgress, print_json, print_tables, send_to_mlflow
from medexam.experiments import default_runs_dir
from medexam.specs import shipped_with
from medexam.tables import NONE, Captioned, Table
from medexam_companions.casimedicos.finetuning.encoder import Finetuned
from medexam_companions.casimedicos.finetuning.encoder import finetune as carry_out
from medexam_companions.casimedicos.finetuning.grid import GridCell, grid_rows, load_grid, narrow_grid, plan_grid, run_grid
from medexam_companions.casimedicos.finetuning.settings import Device, FinetuningSettings
from medexam_companions.casimedicos.finetuning.tracking import track_finetuning


def train_grid(
    spec: str,
    out: Path,
    encoders: Sequence[str],
    trainings: Sequence[str],
    variants: Sequence[str],
    device: Device,
    tracking_uri: str | None,
    *,
    plan: bool,
    as_json: bool,
) -> None:
    """Train what is pending of a grid, or say what that is."""
    grid = narrow_grid(load_grid(spec), encoders, trainings, variants)
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
    print_tables(Terminal(), grid_tables(cells))
    if plan:
        pending = {stage.settings.out for cell in cells for stage in cell.stages if not stage.finished}
        sys.stdout.write(f"{len(pending)} stages of {len(cells)} cells are pending\n")


def _document(cells: list[GridCell]) -> list[dict[str, Any]]:
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


def train_encoder(settings: FinetuningSettings, tracking_uri: str | None, *, as_json: bool) -> None:
    """Fine-tune an encoder, and say what it learned."""
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


def _lines(trained_encoder: Finetuned) -> list[str]:
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


MEASURES = {"f1": "F1", "exact_match": "Exact match", "precision": "Precision", "recall": "Recall"}


def grid_tables(cells: Sequence[GridCell]) -> list[Captioned]:
    """Build one table for each measure; a dash stands for a cell that is not scored yet."""
    trainings = tuple(dict.fromkeys(cell.training for cell in cells))
    tables = []
    for measure, title in MEASURES.items():
        rows = tuple(
            (name, *(NONE if value is None else f"{value:.2f}" for value in values))
            for name, values in grid_rows(cells, measure).items()
        )
        table = Table(f"{title} of extracted spans", ("Encoder and variant", *trainings, "Avg."), rows)
        tables.append((table, "Percent, by SQuAD's rule. Avg.: over the trainings."))
    return tables
