"""The cells of an experiment with everything that their models' profiles say, which is part of their identity."""

from collections.abc import Mapping
from typing import Any

from medexam.serve.launching.profile import with_profile
from medexam.specs import CellSpec, ExperimentSpec, OptimizerSpec, build_cells


def resolve_cells(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[ExperimentSpec, list[CellSpec]]:
    """The experiment and its cells, models named; raises `SpecError`, and `EngineError` for an unknown profile."""
    experiment, cells = build_cells(document, overrides)
    return experiment, [cell.model_copy(update={"model": with_profile(cell.model)}) for cell in cells]


def resolve_optimizer(optimizer: OptimizerSpec) -> OptimizerSpec:
    """The optimiser with the model that proposes instructions named."""
    proposing = optimizer.prompt_model
    return optimizer if proposing is None else optimizer.model_copy(update={"prompt_model": with_profile(proposing)})
