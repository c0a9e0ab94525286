"""The cells of an experiment with everything that their models' profiles say, which is part of their identity."""

import logging
from collections.abc import Mapping
from typing import Any

from medexam.errors import EngineError
from medexam.serve.launch.profile import with_profile
from medexam.serve.naming import with_served_name
from medexam.specs import CellSpec, ModelSpec, build_cells
from medexam.specs.experiment import ExperimentSpec
from medexam.specs.optimizer import OptimizerSpec

_log = logging.getLogger(__name__)


def resolve_cells(
    document: Mapping[str, Any], overrides: Mapping[str, Any], *, only_look: bool
) -> tuple[ExperimentSpec, list[CellSpec]]:
    """Build the experiment and its cells, models named as their profiles and servers name them.

    With `only_look`, a server that is not there leaves its model without a name. Raises `SpecError`, and `EngineError`
    for an unknown profile and for a server that does not tell its model.
    """
    experiment, cells = build_cells(document, overrides)
    models = {cell.model for cell in cells if cell.program.asks_model}
    models |= {model for cell in cells for model in cell.asked_models.values()}
    model_by_spec = {model: _named(model, only_look=only_look) for model in models}
    return experiment, [_with_names(cell, model_by_spec) for cell in cells]


def _with_names(cell: CellSpec, model_by_spec: Mapping[ModelSpec, ModelSpec]) -> CellSpec:
    """Return the cell with its models as they are named."""
    further = {name: model_by_spec.get(model, model) for name, model in cell.asked_models.items()}
    return cell.model_copy(update={"model": model_by_spec.get(cell.model, cell.model), "models": further})


def _named(model: ModelSpec, *, only_look: bool) -> ModelSpec:
    model = with_profile(model)
    if model.path is not None:
        # A run is resumed from any folder.
        model = model.model_copy(update={"path": model.path.expanduser().absolute()})
    try:
        return with_served_name(model)
    except EngineError as error:
        if not only_look:
            raise
        _log.warning("medexam: warning: %s; without its model it is unknown which run this is", error)
        return model


def resolve_optimizer(optimizer: OptimizerSpec, *, only_look: bool) -> OptimizerSpec:
    """Return the optimizer with the model that proposes instructions named, as `resolve_cells` names models."""
    prompt_model = optimizer.prompt_model
    if prompt_model is None:
        return optimizer
    return optimizer.model_copy(update={"prompt_model": _named(prompt_model, only_look=only_look)})
