"""What litellm's tables say of the hosted models that a plan would ask; nothing is asked."""

from collections.abc import Sequence

from medexam.experiments.plan.cells import AnyCell
from medexam.serve.discovery.capabilities import HostedCapabilities

_SHOWN = ("guided", "seeds", "thinking", "batches", "price")
"""What a line says of a model."""


def read_records(cells: Sequence[AnyCell]) -> dict[str, HostedCapabilities]:
    """Return model -> its record, for each that a provider bills; raises `EngineError` for a name of no provider."""
    models = dict.fromkeys(one.cell.model.name for one in cells if one.asks_model and one.cell.model.is_billed)
    if not models:
        return {}
    from medexam.serve.engines.provider_tables import read_tables

    return {name: read_tables(name) for name in models if name is not None}


def describe_records(cells: Sequence[AnyCell]) -> list[str]:
    """Return a line for each hosted model: what it takes, by the tables."""
    lines = []
    for name, record in read_records(cells).items():
        ways = record.describe()
        lines.append(f"{name}, by litellm's tables: {'; '.join(f'{way}: {ways[way]}' for way in _SHOWN)}.")
    return lines
