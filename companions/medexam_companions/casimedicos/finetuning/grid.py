"""A grid of fine-tunings: encoders, trainings and variants, each cell learnt in stages that are kept.

A training is a set of intermediate files before the file that counts, as Goenaga et al. (2023) compare them; several
are learnt together, in one stage, which an encoder learns once for all variants. Each stage is a folder that is there
whole or not at all, under a digest of all that it depends on. So a finished cell is not trained again, and one that was
killed continues from its last finished stage.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import file_digest
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from medexam.encoder_weights import find_encoder_weights
from medexam.errors import DatasetError, EngineError, SpecError
from medexam.experiments import name_part
from medexam.specs import Spec, Variant, digest, parse_yaml, validate
from medexam_companions.casimedicos.finetuning.encoder import RECORD, Finetuned, finetune
from medexam_companions.casimedicos.finetuning.settings import FinetuningSettings
from medexam_companions.casimedicos.finetuning.training import FinetuningObserver
from medexam_companions.casimedicos.readers.windows import SHARED_TOKENS, WINDOW_TOKENS

Count = Annotated[int, Field(ge=1)]
GRIDS = Path(__file__).with_name("grids")
"""Those that ship, by the names of their files."""
_PLACE = "{variant}"


class GridSpec(Spec):
    """Which encoders learn from which files, in which variants; the numbers are those of `medexam finetune`."""

    encoders: dict[str, str] = Field(min_length=1)
    """What tables call an encoder -> its folder or hub id."""
    trainings: dict[str, tuple[Path, ...]] = Field(min_length=1)
    """What tables call a training -> the files that are learnt before `train`, in one stage; empty for none."""
    train: str
    """Questions with spans in SQuAD's form. `{variant}` in it stands for the variant; else rows tell theirs."""
    validation: str
    """The same, to score each cell on."""
    variants: tuple[Variant, ...] = ("CQ#E", "CQP#E", "Q#CE", "QP#CE")
    epochs: Count = 20
    """Times that a file is read, in each stage."""
    window: Annotated[int, Field(ge=32)] = WINDOW_TOKENS
    """Tokens of question and context together."""
    shared: Count = SHARED_TOKENS
    """Tokens that windows share."""
    answer_tokens: Count = 512
    """Tokens of the longest answer, for the score."""
    batch: Count = 8
    """Windows in one step."""
    learning_rate: Annotated[float, Field(gt=0)] = 5e-5
    """Of the first step; it falls to 0."""
    unstructured: bool = False
    """Whether "(answer 4 correct)" and the like are taken out of the contexts of `train` and `validation`."""
    seed: int = 42
    """Fixes the new head, the order of the windows and the dropout."""
    keep_weights: bool = False
    """Whether a scored cell keeps its weights, to read with; else its scores, record and predictions alone."""


@dataclass(frozen=True)
class Stage:
    """What an encoder learns from at once, after the stage before it."""

    settings: FinetuningSettings
    """Its `out` is where it is kept."""

    @property
    def finished(self) -> bool:
        """Whether its folder is there."""
        return (self.settings.out / RECORD).exists()


@dataclass(frozen=True)
class GridCell:
    """One encoder, training and variant."""

    encoder: str
    training: str
    variant: str
    stages: tuple[Stage, ...]
    """The last one is scored; the others are shared."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"{self.encoder}, {self.training}, {self.variant}"

    @property
    def folder(self) -> Path:
        """Where its record is."""
        return self.stages[-1].settings.out

    @property
    def finished(self) -> bool:
        """Whether it is scored."""
        return self.stages[-1].finished

    @property
    def scores(self) -> dict[str, float] | None:
        """`f1`, `exact_match`, `precision` and `recall` by SQuAD's rule, in percent; None until it is scored."""
        if not self.finished:
            return None
        squad_scores = json.loads((self.folder / RECORD).read_text(encoding="utf-8"))["validation"]["squad"]
        return {name: squad_scores[name] for name in ("f1", "exact_match", "precision", "recall")}

    @property
    def negated_f1(self) -> float | None:
        """F1 of the questions that ask for what is not so, in percent; None if there is none, or it is not scored."""
        if not self.finished:
            return None
        f1: float | None = json.loads((self.folder / RECORD).read_text(encoding="utf-8"))["validation"]["negated"]["f1"]
        return f1

    @property
    def outcomes(self) -> dict[str, int]:
        """How many predictions are exact, empty, incomplete and so on; empty until it is scored."""
        if not self.finished:
            return {}
        counts: dict[str, int] = json.loads((self.folder / RECORD).read_text(encoding="utf-8"))["validation"][
            "outcomes"
        ]
        return counts


def load_grid(name: str) -> GridSpec:
    """Load the grid of a YAML file, or the shipped one of that name. Raises `SpecError` if it is missing or wrong."""
    shipped = {path.stem: path for path in sorted(GRIDS.glob("*.yaml"))}
    path = shipped.get(name, Path(name))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        advice = f"name a YAML file of a grid, or {' or '.join(shipped)}"
        raise SpecError(f"{name}: cannot be read ({error}): {advice}") from None
    return validate(GridSpec, parse_yaml(text, str(path)))


def plan_grid(spec: GridSpec, out: Path, device: str = "auto", *, only_look: bool = False) -> list[GridCell]:
    """Plan the cells of a grid that is kept under `out`, encoder by encoder.

    Raises `DatasetError` if a file is not here, and `EngineError` if an encoder is not; with `only_look`, cells of
    either are pending.
    """
    sha256 = cache(partial(_hash_file, only_look=only_look))
    cells = []
    for encoder, model in spec.encoders.items():
        basis: dict[str, Any] = {
            "model": [_identify(model, only_look=only_look)],
            "settings": _numbers(spec),
            "unanswerable": "learnt",
        }
        for training, files in spec.trainings.items():
            shared, base, lineage = [], model, basis
            if files:
                lineage = {"after": digest(lineage), "files": [sha256(path) for path in files]}
                folder = out / "stages" / f"{name_part(encoder)}-{digest(lineage)}"
                shared.append(Stage(_settings(spec, base, files, folder, device)))
                base = str(folder)
            for variant in spec.variants:
                train, validation = (
                    Path(pattern.replace(_PLACE, variant)) for pattern in (spec.train, spec.validation)
                )
                cell = {
                    "after": digest(lineage),
                    "files": [sha256(train), sha256(validation)],
                    "variant": variant,
                    "answer_tokens": spec.answer_tokens,
                }
                if spec.unstructured:
                    cell["unstructured"] = True
                name = "-".join(map(name_part, (encoder, training, variant, digest(cell))))
                last = _settings(spec, base, (train,), out / "cells" / name, device)
                last = replace(last, validation=validation, variant=variant, unstructured=spec.unstructured)
                cells.append(GridCell(encoder, training, variant, (*shared, Stage(last))))
    return cells


def run_grid(
    cells: Sequence[GridCell], observer: FinetuningObserver, *, keep_weights: bool
) -> Iterator[tuple[GridCell, Finetuned]]:
    """Train what is not finished, stage by stage; yield each cell as soon as it is scored.

    Raises as `finetune` does.
    """
    for cell in cells:
        for number, stage in enumerate(cell.stages, start=1):
            if cell.finished or stage.finished:
                continue
            names = " and ".join(path.name for path in stage.settings.train)
            observer.warns(f"{cell.label}: stage {number} of {len(cell.stages)}, {names}")
            outcome = finetune(stage.settings, observer)
            if number == len(cell.stages):
                if not keep_weights:
                    _drop_weights(cell.folder)
                yield cell, outcome


def grid_rows(cells: Sequence[GridCell], measure: str) -> dict[str, list[float | None]]:
    """Return by `ENCODER VARIANT` a measure, of `scores` or `negated_f1`, of each training in percent, and the mean.

    In the order of the cells. None of what is not scored yet; the mean is None unless all are.
    """
    trainings = list(dict.fromkeys(cell.training for cell in cells))
    rows: dict[str, dict[str, float | None]] = {}
    for cell in cells:
        scores = {**(cell.scores or {}), "negated_f1": cell.negated_f1}
        rows.setdefault(f"{cell.encoder} {cell.variant}", {})[cell.training] = scores.get(measure)
    rows_with_mean = {}
    for name, row in rows.items():
        values = [row.get(training) for training in trainings]
        scored_values = [value for value in values if value is not None]
        rows_with_mean[name] = [
            *values,
            sum(scored_values) / len(scored_values) if len(scored_values) == len(values) else None,
        ]
    return rows_with_mean


def narrow_grid(
    spec: GridSpec, encoders: Sequence[str] = (), trainings: Sequence[str] = (), variants: Sequence[str] = ()
) -> GridSpec:
    """Select the part of a grid with these names; empty wants all. Raises `SpecError` for an unknown name."""
    for flag, selection, grid_names in (
        ("--encoder", encoders, spec.encoders),
        ("--training", trainings, spec.trainings),
        ("--variant", variants, spec.variants),
    ):
        if unknown := [name for name in selection if name not in grid_names]:
            raise SpecError(f"{flag} {unknown[0]}: the grid has {', '.join(grid_names)}")
    parts = {
        "encoders": {name: model for name, model in spec.encoders.items() if not encoders or name in encoders},
        "trainings": {name: files for name, files in spec.trainings.items() if not trainings or name in trainings},
        "variants": tuple(name for name in spec.variants if not variants or name in variants),
    }
    return spec.model_copy(update=parts)


def _settings(spec: GridSpec, model: str, train: tuple[Path, ...], out: Path, device: str) -> FinetuningSettings:
    return FinetuningSettings(
        model=model,
        train=train,
        out=out,
        answer_tokens=spec.answer_tokens,
        device=device,  # type: ignore[arg-type]
        **_numbers(spec),
    )


def _numbers(spec: GridSpec) -> dict[str, Any]:
    """Return what every stage is told beside files."""
    return spec.model_dump(include={"epochs", "window", "shared", "batch", "learning_rate", "seed"})


def _drop_weights(folder: Path) -> None:
    for path in folder.glob("*.safetensors"):
        path.unlink()


def _identify(model: str, *, only_look: bool) -> str:
    """Return the hash or commit of an encoder."""
    try:
        weights = find_encoder_weights(model)
    except EngineError:
        if not only_look:
            raise
        return model
    return weights.revision or weights.label


def _hash_file(path: Path, *, only_look: bool) -> str:
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        if only_look:
            return str(path)
        raise DatasetError(f"{path}: cannot be read ({error.strerror}): restore the file, or name another") from None
