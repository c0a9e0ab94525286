"""What litellm's tables say of the hosted models that a plan would ask; nothing is asked."""

import os
from collections.abc import Sequence

from medexam.errors import EngineError
from medexam.experiments.plan.cells import AnyCell
from medexam.serve.discovery.capabilities import HostedCapabilities
from medexam.serve.engines.provider_tables import nearest_model, read_tables

_USUAL_KEYS = frozenset(
    f"{provider}_API_KEY" for provider in ("OPENAI", "ANTHROPIC", "GROQ", "MISTRAL", "DEEPSEEK", "OPENROUTER", "XAI")
)
"""Variables that hold the key of providers whose name they begin with."""
_TRAITS = ("guided", "seeds", "thinking", "price")
"""What a line says of a model."""


def read_records(cells: Sequence[AnyCell]) -> dict[str, HostedCapabilities]:
    """Read each hosted model's record: model -> record, for each that a provider bills; raises `EngineError` for a name
    of no provider.
    """
    models = dict.fromkeys(
        planned.cell.model.name for planned in cells if planned.asks_model and planned.cell.model.is_billed
    )
    if not models:
        return {}
    return {name: read_tables(name) for name in models if name is not None}


def check_keys(cells: Sequence[AnyCell]) -> None:
    """Raise `EngineError` for a name of no provider, and for a provider's key that is in no variable."""
    pending = [planned for planned in cells if planned.asks_model and planned.pending]
    for model in (planned.cell.model for planned in pending if planned.cell.model.is_billed):
        # litellm, which knows all of them, takes seconds to import.
        variable = f"{(model.name or '').partition('/')[0].upper()}_API_KEY"
        needs_it = variable in _USUAL_KEYS and not (model.api_key_env or model.api_key_file or model.endpoints)
        if needs_it and not os.environ.get(variable):
            raise EngineError(
                f"{model.name} needs a key: set {variable} in the environment, or name another variable in "
                "model.api_key_env"
            )
    records = read_records(pending)
    for planned in pending:
        model = planned.cell.model
        record = None if model.api_key_env or model.api_key_file else records.get(model.name or "")
        if record is not None and (request := record.missing_key) is not None:
            raise EngineError(request)


def describe_records(cells: Sequence[AnyCell]) -> list[str]:
    """Describe in a line each hosted model: what it takes, by the tables."""
    lines = []
    for name, record in read_records(cells).items():
        traits = record.describe()
        if (request := record.missing_key) is not None:
            lines.append(f"{request}.")
        if (near := nearest_model(name)) is not None:
            lines.append(f"{name} is not in litellm's list of models: did you mean {near}?")
        lines.append(f"{name}, by litellm's tables: {'; '.join(f'{trait}: {traits[trait]}' for trait in _TRAITS)}.")
    return lines
