"""The cells of an experiment with everything that their models' profiles say, which is part of their identity."""

import logging
from collections.abc import Mapping
from typing import Any

from medexam.errors import EngineError
from medexam.serve.launch.profile import with_profile
from medexam.serve.naming import with_served_name
from medexam.specs import CellSpec, ExperimentSpec, ModelSpec, OptimizerSpec, build_cells

_log = logging.getLogger(__name__)


def resolve_cells(
    document: Mapping[str, Any], overrides: Mapping[str, Any], *, only_look: bool = False
) -> tuple[ExperimentSpec, list[CellSpec]]:
    """The experiment and its cells, models named as their profiles and servers name them.

    With `only_look`, a server that is not there leaves its model without a name. Raises `SpecError`, and `EngineError`
    for an unknown profile and for a server that does not tell its model.
    """
    experiment, cells = build_cells(document, overrides)
    asking = {one.model for cell in cells for one in (cell, *cell.members) if one.program.asks_model}
    named = {model: _named(model, only_look=only_look) for model in asking}
    return experiment, [_with_names(cell, named) for cell in cells]


def _with_names(cell: CellSpec, named: Mapping[ModelSpec, ModelSpec]) -> CellSpec:
    """The cell with its model as it is named, and with those of the members that an ensemble has."""
    program = cell.program
    if program.made_of:
        models = [named.get(member.model) if member.program.asks_model else None for member in cell.members]
        members = [one.model_copy(update={"model": its}) for one, its in zip(program.made_of, models, strict=True)]
        program = program.model_copy(update={"members": tuple(members)})
    return cell.model_copy(update={"model": named.get(cell.model, cell.model), "program": program})


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
        _log.warning("medexam: warning: %s; which run this is depends on the model that it serves", error)
        return model


def resolve_optimizer(optimizer: OptimizerSpec, *, only_look: bool = False) -> OptimizerSpec:
    """The optimizer with the model that proposes instructions named, as `resolve_cells` names models."""
    proposing = optimizer.prompt_model
    if proposing is None:
        return optimizer
    return optimizer.model_copy(update={"prompt_model": _named(proposing, only_look=only_look)})
