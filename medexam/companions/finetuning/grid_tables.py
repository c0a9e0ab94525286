"""Tables of a grid of fine-tunings: a row for each encoder and variant, a column for each training, and the mean."""

from collections.abc import Sequence

from medexam.companions.finetuning.grid import GridCell, grid_rows
from medexam.toolkit.tables import NONE, Captioned, Table

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
