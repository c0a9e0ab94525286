"""What `medexam finetune` trains: each encoder after each training on each variant, in stages that are found again.

A training is the set of files that are learnt before `train`, together in one stage, as Goenaga et al. (2023) compare
them; an encoder learns it once for all variants. A stage is a folder that is whole or not there, with a digest of all
that it depends on. So the same command trains what is missing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from medexam.errors import DatasetError
from medexam.experiments import name_part
from medexam.specs import Spec, digest, load_document, validate
from medexam.weights import find_encoder_weights, hash_files
from medexam_companions.casimedicos.readers.windows import SHARED_TOKENS, WINDOW_TOKENS

Count = Annotated[int, Field(ge=1)]
RECORD = "finetuning.json"
_SHIPPED = Path(__file__).with_name("grids") / "casimedicos.yaml"
_NUMBERS = {"epochs", "window", "shared", "batch", "learning_rate", "seed"}


class FinetuningSpec(Spec):
    """Encoders, trainings and variants, of which each combination is a cell.

    `window`, `shared`, `answer_tokens`, `epochs` and `seed` are those of Goenaga et al. (2023), "Explanatory argument
    extraction of correct answers in resident medical exams"; `batch` and `learning_rate` are the defaults of
    transformers' Trainer. What is learnt before is STILT (Phang et al. 2018, arXiv 1811.01088).
    """

    encoders: dict[str, str] = Field(min_length=1)
    """What tables call an encoder -> its folder or hub id."""
    trainings: dict[str, tuple[Path, ...]] = Field({"": ()}, min_length=1)
    """What tables call a training -> the files that are learnt before `train`, in one stage; empty for none."""
    train: tuple[str, ...] = Field(min_length=1)
    """Questions with spans in SQuAD's form. `{variant}` in a name stands for the variant; else rows tell theirs."""
    validation: str | None = None
    """The same, to score each cell on."""
    variants: tuple[str, ...] = ("",)
    """Those of `train` and `validation`, one a cell; empty learns from all rows."""
    epochs: Count = 20
    """Times that a file is read, in each stage."""
    window: Annotated[int, Field(ge=32)] = WINDOW_TOKENS
    """Tokens of question and context together."""
    shared: Count = SHARED_TOKENS
    """Tokens that windows share; at most a third."""
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
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` is CUDA if there is one."""
    keep_weights: bool = True
    """Whether a cell keeps its weights, to read with; else its scores, record and predictions alone."""


@dataclass(frozen=True)
class Stage:
    """What an encoder learns from at once, after the stage before it."""

    spec: FinetuningSpec
    model: str
    """The encoder, or the folder of the stage before."""
    train: tuple[Path, ...]
    out: Path
    """Where it is, once it is learnt."""
    digest: str
    """Of all that its weights and scores depend on."""
    validation: Path | None = None
    variant: str = ""
    is_last: bool = False

    @property
    def record(self) -> dict[str, Any] | None:
        """What `finetuning.json` holds; None where this stage is not there."""
        try:
            record: dict[str, Any] = json.loads((self.out / RECORD).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return record if record["digest"] == self.digest else None


@dataclass(frozen=True)
class Cell:
    """One encoder, training and variant."""

    encoder: str
    training: str
    variant: str
    stages: tuple[Stage, ...]
    """The last one is the cell's own; one before it is shared."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return ", ".join(filter(None, (self.encoder, self.training, self.variant)))

    @property
    def pending(self) -> tuple[Stage, ...]:
        """The stages that are still to be learnt, in their order."""
        if self.stages[-1].record is not None:
            return ()
        return tuple(stage for stage in self.stages if stage.record is None)

    def score(self, measure: str) -> Any:
        """Return `f1`, `exact_match`, `precision` or `recall` by SQuAD's rule, in percent, or `outcomes`, the counts of
        kinds of predictions; None until it is scored.
        """
        validation = (self.stages[-1].record or {}).get("validation")
        return validation and {**validation["squad"], "outcomes": validation["outcomes"]}[measure]


def load_finetuning(name: str | None, changes: Mapping[str, Any]) -> FinetuningSpec:
    """Load a YAML file, or the shipped one of that name, with `changes` to its keys; None has the changes alone.

    Raises `SpecError` if it is missing or wrong.
    """
    document = {} if name is None else load_document(_SHIPPED if name == _SHIPPED.stem else name)
    return validate(FinetuningSpec, document | dict(changes))


def plan_cells(spec: FinetuningSpec, out: Path) -> list[Cell]:
    """Plan the cells under `out`, encoder by encoder; one cell of one stage is `out` itself.

    Raises `DatasetError` if a file is not here, and `EngineError` if an encoder is not.
    """
    numbers = spec.model_dump(include=_NUMBERS)
    is_alone = len(spec.encoders) == len(spec.variants) == 1 and [*spec.trainings.values()] == [()]
    cells = []
    for encoder, name in spec.encoders.items():
        identity = digest({"model": find_encoder_weights(name).revision, "settings": numbers})
        for training, files in spec.trainings.items():
            shared, model, basis = [], name, identity
            if files:
                basis = digest({"after": identity, "files": _hash(files)})
                folder = out / "stages" / f"{name_part(encoder)}-{basis}"
                shared.append(Stage(spec, name, files, folder, basis))
                model = str(folder)
            for variant in spec.variants:
                train = tuple(Path(pattern.replace("{variant}", variant)) for pattern in spec.train)
                validation = None if spec.validation is None else Path(spec.validation.replace("{variant}", variant))
                scored = [] if validation is None else [*_hash([validation]), spec.answer_tokens]
                mark = digest(
                    {
                        "after": basis,
                        "files": _hash(train),
                        "scored": scored,
                        "variant": variant,
                        "unstructured": spec.unstructured,
                    }
                )
                parts = filter(None, (encoder, training, variant, mark))
                folder = out if is_alone else out / "cells" / "-".join(map(name_part, parts))
                last = Stage(spec, model, train, folder, mark, validation, variant, is_last=True)
                cells.append(Cell(encoder, training, variant, (*shared, last)))
    return cells


def pending_stages(cells: Sequence[Cell]) -> list[tuple[str, Stage]]:
    """List the stages of cells that are still to be learnt, each once, with the label of the first cell of each."""
    stages: dict[Path, tuple[str, Stage]] = {}
    for cell in cells:
        for stage in cell.pending:
            stages.setdefault(stage.out, (cell.label, stage))
    return list(stages.values())


def _hash(files: Sequence[Path]) -> list[str]:
    try:
        return hash_files(files)
    except OSError as error:
        raise DatasetError(
            f"{error.filename}: cannot be read ({error.strerror}): restore the file, or name another"
        ) from None
