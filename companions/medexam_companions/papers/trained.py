"""Tables of fine-tuned encoders: what of a grid is pending is trained, and the scores stand beside the paper's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.errors import DatasetError, SpecError
from medexam.experiments import PlotPicture
from medexam.tables import Captioned
from medexam_companions.casimedicos.finetuning.cells import (
    Cell,
    FinetuningSpec,
    load_finetuning,
    pending_stages,
    plan_cells,
)
from medexam_companions.casimedicos.finetuning.training import learn
from medexam_companions.papers.beside import Beside
from medexam_companions.papers.catalogue import PaperEntry
from medexam_companions.papers.paper import Grid

AVERAGE = "Avg."
KINDS = ("empty", "incomplete", "exact")
"""Of predictions, as the paper counts them."""


@dataclass(frozen=True)
class TrainedEntry:
    """An entry and the cells of the grid that it shows."""

    entry: PaperEntry
    corpora: Mapping[str, Sequence[Cell]]
    """Heading of a column -> its cells; one without a heading unless the columns are corpora."""
    out: Path
    """Where stages and cells are kept."""
    missing: Sequence[str] = ()
    """What corpora that are left out lack, in sentences."""

    @property
    def cells(self) -> list[Cell]:
        """Those of all corpora."""
        return [cell for cells in self.corpora.values() for cell in cells]

    @property
    def source(self) -> str:
        """What is trained, and what is left to do."""
        pending = pending_stages(self.cells)
        names = dict.fromkeys(cell.stages[0].model for cell in self.cells)
        stages = [stage for cell in self.cells for stage in cell.stages]
        files = dict.fromkeys(str(path) for stage in stages for path in stage.train)
        return (
            f"{len(self.cells)} fine-tuned encoders in {self.out}, of which {len(pending)} stages are pending "
            f"({', '.join(names)}; learning from {', '.join(files)})"
        )

    def make(self, say: Callable[[str], None]) -> tuple[Sequence[Captioned], Any, Sequence[PlotPicture]]:
        """Train what is pending, then make the table and the same JSON-ready."""
        for line in self.missing:
            say(line)
        for label, stage in pending_stages(self.cells):
            say(f"{label}: {' and '.join(path.name for path in stage.train)}")
            learn(stage, say)
        comparison = Beside(self.entry.heading, self._figures(), self.entry.figures, self.entry.paper.arxiv)
        return [comparison.table], comparison.document(), ()

    def _figures(self) -> Grid:
        item = self.entry.item
        if item.averages:
            return self._means()
        trainings = tuple(dict.fromkeys(cell.training for cell in self.cells))
        if item.measure == "outcomes":
            return self._outcomes(trainings)
        rows = _score_rows(self.cells, item.measure)
        return Grid(columns=(*trainings, AVERAGE), rows={name: tuple(map(_rounded, row)) for name, row in rows.items()})

    def _means(self) -> Grid:
        """Build a row for each encoder: its mean over the trainings of the only variant, by corpus."""
        means = {corpus: _score_rows(cells, "f1") for corpus, cells in self.corpora.items()}
        names = dict.fromkeys(name for rows in means.values() for name in rows)
        return Grid(
            columns=tuple(means),
            rows={
                name.rpartition(" ")[0]: tuple(
                    _rounded(rows[name][-1]) if name in rows else None for rows in means.values()
                )
                for name in names
            },
        )

    def _outcomes(self, trainings: Sequence[str]) -> Grid:
        """Build a row for each encoder and variant: how many predictions of each training are of each kind."""
        rows: dict[str, list[float | None]] = {}
        for cell in self.cells:
            counts = cell.score("outcomes") or {}
            rows.setdefault(f"{cell.encoder} {cell.variant}", []).extend(counts.get(kind) for kind in KINDS)
        columns = tuple(f"{training} {kind}" for training in trainings for kind in KINDS)
        return Grid(columns=columns, rows={name: tuple(numbers) for name, numbers in rows.items()})


def plan_trained(entry: PaperEntry, overrides: Mapping[str, Any], runs_dir: Path, *, only_look: bool) -> TrainedEntry:
    """Plan the entry's grid, narrowed to the paper's rows and changed by `overrides`, keys of the grid.

    A corpus of several whose files are not here is left out. Raises `SpecError` for an unknown
    key, `DatasetError` if a file is not here, and `EngineError` if an encoder is not; with `only_look` these are
    pending.
    """
    item = entry.item
    if wrong_keys := [key for key in overrides if key not in FinetuningSpec.model_fields]:
        fields = ", ".join(FinetuningSpec.model_fields)
        raise SpecError(f"--set {wrong_keys[0]}: {entry.name} is a grid of fine-tunings, whose keys are {fields}")
    whole = load_finetuning(item.grid, {})
    narrow: dict[str, Any] = {
        "encoders": {name: whole.encoders[name] for name in item.encoders or whole.encoders},
        "trainings": {name: whole.trainings[name] for name in item.trainings or whole.trainings},
        "variants": item.variants or whole.variants,
    }
    out = runs_dir / "finetuned"
    corpora, missing = {}, []
    for heading, differences in (item.averages or {"": {}}).items():
        corpus = load_finetuning(item.grid, narrow | dict(overrides) | differences)
        try:
            corpora[heading] = plan_cells(corpus, out, only_look=only_look)
        except DatasetError as error:
            if not differences:
                raise
            missing.append(f"left out {heading}: {error}")
    return TrainedEntry(entry, corpora, out, missing)


def _score_rows(cells: Sequence[Cell], measure: str) -> dict[str, list[float | None]]:
    """Return by `ENCODER VARIANT` the scores after each training, in percent, and their mean, if all are scored."""
    rows: dict[str, list[float | None]] = {}
    for cell in cells:
        rows.setdefault(f"{cell.encoder} {cell.variant}", []).append(cell.score(measure))
    for scores in rows.values():
        numbers = [score for score in scores if score is not None]
        scores.append(sum(numbers) / len(numbers) if len(numbers) == len(scores) else None)
    return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
