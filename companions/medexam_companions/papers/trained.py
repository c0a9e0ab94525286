"""Tables of fine-tuned encoders: what of a paper's matrix is pending is trained, and the scores stand beside theirs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from medexam.errors import DatasetError, SpecError
from medexam_companions.casimedicos import FinetuningSpec, learn, load_finetuning, pending_stages, plan_cells
from medexam_companions.papers.beside import Product, set_beside
from medexam_companions.papers.paper import Grid, PaperEntry

MATRIX = "casimedicos"
"""The shipped one of all encoders, trainings and variants."""
AVERAGE = "Avg."
KINDS = ("empty", "incomplete", "exact")
"""Of predictions, as the paper counts them."""


def make_trained(entry: PaperEntry, overrides: Mapping[str, Any], out: Path, say: Callable[[str], None]) -> Product:
    """Train what is pending of the paper's rows under `out`, and show the scores; `overrides` are keys of the matrix.

    A corpus of several whose files are not here is left out. Raises `SpecError` for an unknown key, `DatasetError` if
    a file is not here, and `EngineError` if an encoder is not.
    """
    item = entry.item
    if wrong_keys := [key for key in overrides if key not in FinetuningSpec.model_fields]:
        fields = ", ".join(FinetuningSpec.model_fields)
        raise SpecError(f"--set {wrong_keys[0]}: {entry.name} is a matrix of fine-tunings, whose keys are {fields}")
    whole = load_finetuning(MATRIX, {})
    changes: dict[str, Any] = {
        "encoders": {name: whole.encoders[name] for name in item.encoders},
        "trainings": {name: whole.trainings[name] for name in item.trainings or whole.trainings},
        "variants": item.variants or whole.variants,
        **overrides,
    }
    rows: dict[str, dict[str, float | None]] = {}
    for heading, differences in (item.averages or {"": {}}).items():
        try:
            cells = plan_cells(load_finetuning(MATRIX, {**changes, **differences}), out)
        except DatasetError as error:
            if not differences:
                raise
            say(f"left out {heading}: {error}")
            continue
        for label, stage in pending_stages(cells):
            say(f"{label}: {' and '.join(path.name for path in stage.train)}")
            learn(stage, say)
        scores: dict[str, dict[str, Any]] = {}
        for cell in cells:
            row = cell.encoder if heading else f"{cell.encoder} {cell.variant}"
            scores.setdefault(row, {})[cell.training] = cell.score(item.measure)
        for row, by_training in scores.items():
            if item.measure == "outcomes":
                counts = {f"{training} {kind}": each[kind] for training, each in by_training.items() for kind in KINDS}
                rows[row] = counts
                continue
            mean = sum(by_training.values()) / len(by_training)
            rows.setdefault(row, {}).update({heading: mean} if heading else {**by_training, AVERAGE: mean})
    columns = tuple(dict.fromkeys(column for figures in rows.values() for column in figures))
    grid = Grid(
        columns=columns,
        rows={
            name: tuple(None if (figure := figures.get(column)) is None else round(figure, 2) for column in columns)
            for name, figures in rows.items()
        },
    )
    return set_beside(entry, grid)
