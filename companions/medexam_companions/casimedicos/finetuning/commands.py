"""`medexam finetune`: encoders learn to find the span that answers a question."""

from pathlib import Path
from typing import Annotated, Any

import typer

from medexam.cli import JsonOption
from medexam.errors import SpecError


def finetune(
    spec: Annotated[
        str | None,
        typer.Argument(metavar="SPEC", help="A YAML file, or `casimedicos`, the twelve encoders of the paper."),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the model is written, or one for each cell.")],
    model: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help="A folder or a hub id of an encoder; may be repeated.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Questions with spans, in SQuAD's form; several are learnt together."),
    ] = None,
    validation: Annotated[str | None, typer.Option(metavar="FILE", help="Score the result on these questions.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as epochs=3.")
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what is pending, and train nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune encoders on spans, for the program `span_reader`; the same command trains what is missing.

    For example:

    medexam finetune --model xlm-roberta-base --train spans.jsonl --out reader

    medexam finetune casimedicos --out grid --set variants='[CQ#E]' --plan
    """
    from medexam.cli import print_json
    from medexam.experiments import Terminal, print_blocks
    from medexam.specs import parse_overrides
    from medexam.tables import NONE, Table
    from medexam.text import print_notice
    from medexam_companions.casimedicos.finetuning.cells import load_finetuning, pending_stages, plan_cells

    if spec is None and not (model and train):
        raise SpecError("name an encoder and what to learn from with --model MODEL --train FILE, or a YAML file")
    encoders = {Path(name).name: name for name in model or ()}
    flags: dict[str, Any] = {"encoders": encoders, "train": train, "validation": validation}
    changes = {key: value for key, value in flags.items() if value} | parse_overrides(settings or ())
    cells = plan_cells(load_finetuning(spec, changes), out)
    pending = pending_stages(cells)
    if not plan:
        from medexam_companions.casimedicos.finetuning.training import learn

        for number, (label, stage) in enumerate(pending, start=1):
            names = " and ".join(path.name for path in stage.train)
            print_notice(f"{label}: stage {number} of {len(pending)}, {names}")
            learn(stage, print_notice)
    if as_json:
        fields = ("encoder", "training", "variant")
        print_json(
            [
                {name: getattr(cell, name) for name in fields}
                | {"folder": str(cell.stages[-1].out), "pending": len(cell.pending), "record": cell.stages[-1].record}
                for cell in cells
            ]
        )
        return
    measures = {"f1": "F1", "exact_match": "Exact match", "precision": "Precision", "recall": "Recall"}
    rows = []
    for cell in cells:
        scores = [cell.score(measure) for measure in measures]
        figures = (NONE if score is None else f"{score:.2f}" for score in scores)
        rows.append((cell.label, *figures, str(cell.stages[-1].out) if not cell.pending else "pending"))
    caption = "Percent, by SQuAD's rule. A folder is read by program.reader of span_reader."
    table = Table("Fine-tuned encoders", ("Encoder", *measures.values(), "Folder"), tuple(rows), caption=caption)
    print_blocks(Terminal(), [table])
    if plan:
        typer.echo(f"{len(pending)} stages of {len(cells)} cells are pending")
