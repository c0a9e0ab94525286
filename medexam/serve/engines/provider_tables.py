"""What litellm's own tables say of a hosted model, as the record that the probe corrects.

The tables come with litellm, so nothing is asked.
"""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from medexam.errors import EngineError
from medexam.serve.discovery.capabilities import HostedCapabilities
from medexam.serve.engines.litellm_calls import get_litellm

_THINK_WHEN_TOLD = ("anthropic", "bedrock", "databricks")
"""Providers whose models think only if a request says so."""


def find_provider(model: str, address: str | None = None) -> tuple[str, str]:
    """Return the provider's own name of a model, and the provider; `address` is an endpoint of one's own.

    Raises `EngineError` if litellm knows no provider for it.
    """
    litellm = get_litellm()
    try:
        name, provider, *_ = litellm.get_llm_provider(model=model, api_base=address)
    except Exception as error:
        first, _, rest = model.partition("/")
        near = get_close_matches(first, sorted(map(str, litellm.models_by_provider)), n=2, cutoff=0.7)
        hint = f"did you mean {' or '.join(f'{provider}/{rest or model}' for provider in near)}? " if near else ""
        raise EngineError(
            f"litellm knows no provider for {model!r}: {hint}write PROVIDER/MODEL, such as "
            f"openai/gpt-4o-mini or hosted_vllm/NAME with an endpoint; hf:{model} is a model of the hub in this process"
        ) from error
    return name, provider


def nearest_model(model: str) -> str | None:
    """Return the model of the same provider that is written nearly like this one; None if that one is listed."""
    name, provider = find_provider(model)
    listed = {str(each).removeprefix(f"{provider}/") for each in get_litellm().models_by_provider.get(provider, ())}
    nearest = [] if name in listed else get_close_matches(name, sorted(listed), n=1, cutoff=0.8)
    return f"{provider}/{nearest[0]}" if nearest else None


def read_tables(model: str, address: str | None = None) -> HostedCapabilities:
    """Return what the tables say of a model; at an `address` of one's own the server alone knows, and all is taken.

    Raises `EngineError` if litellm knows no provider for it.
    """
    name, provider = find_provider(model, address)
    litellm = get_litellm()
    fields = tuple(sorted(litellm.get_supported_openai_params(model=name, custom_llm_provider=provider) or ()))
    if address is not None:
        return HostedCapabilities(model=model, provider=provider, fields=fields)
    try:
        facts: dict[str, Any] = litellm.get_model_info(model)
    except Exception:  # litellm raises nothing more special for a model that its list lacks
        facts = {}
    waits_for_word = provider in _THINK_WHEN_TOLD or "anthropic" in str(facts.get("litellm_provider"))
    variables = yaml.safe_load(Path(__file__).with_name("provider_variables.yaml").read_text(encoding="utf-8"))
    return HostedCapabilities(
        model=model,
        provider=provider,
        fields=fields,
        seeds="seed" in fields,
        stops="stop" in fields,
        takes_schema="response_format" in fields and bool(litellm.supports_response_schema(model)),
        takes_tools="tools" in fields and bool(litellm.supports_function_calling(model)),
        thinks=bool(litellm.supports_reasoning(model)) and not waits_for_word,
        sees=facts.get("supports_vision"),
        prefills=facts.get("supports_assistant_prefill"),
        prompt_usd=facts.get("input_cost_per_token") or None,
        completion_usd=facts.get("output_cost_per_token") or None,
        variables=tuple(variables.get(provider, (f"{provider.upper()}_API_KEY",))),
        missing=tuple(litellm.validate_environment(model=model)["missing_keys"]),
    )
