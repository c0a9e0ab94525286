"""What litellm's own tables say of a hosted model, as the record that the probe corrects.

The tables come with litellm, so nothing is asked. This module knows litellm's names of providers and fields.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from medexam.errors import EngineError
from medexam.serve.discovery.capabilities import HostedCapabilities
from medexam.serve.engines.litellm_calls import get_litellm

_THINK_WHEN_TOLD = ("anthropic", "bedrock", "databricks")
_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "azure": ("AZURE_API_KEY", "AZURE_API_BASE", "AZURE_API_VERSION"),
        "azure_ai": ("AZURE_AI_API_KEY", "AZURE_AI_API_BASE"),
        "bedrock": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME"),
        "cohere": ("COHERE_API_KEY",),
        "cohere_chat": ("COHERE_API_KEY",),
        "databricks": ("DATABRICKS_API_KEY", "DATABRICKS_API_BASE"),
        "gemini": ("GEMINI_API_KEY",),
        "ollama": ("OLLAMA_API_BASE",),
        "ollama_chat": ("OLLAMA_API_BASE",),
        "perplexity": ("PERPLEXITYAI_API_KEY",),
        "sagemaker": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME"),
        "together_ai": ("TOGETHERAI_API_KEY",),
        "vertex_ai": ("VERTEXAI_PROJECT", "VERTEXAI_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS"),
        "watsonx": ("WATSONX_APIKEY", "WATSONX_URL", "WATSONX_PROJECT_ID"),
    }
)
"""Provider -> the variables that litellm reads, where they are not its name and `_API_KEY`."""


def find_provider(model: str, address: str | None = None) -> tuple[str, str]:
    """Return the provider's own name of a model, and the provider; `address` is an endpoint of one's own.

    Raises `EngineError` if litellm knows no provider for it.
    """
    try:
        name, provider, *_ = get_litellm().get_llm_provider(model=model, api_base=address)
    except Exception as error:
        raise EngineError(
            f"litellm knows no provider for {model!r}: {_suggest(model)}write PROVIDER/MODEL, such as "
            f"openai/gpt-4o-mini or hosted_vllm/NAME with an endpoint; hf:{model} is a model of the hub in this process"
        ) from error
    return name, provider


def _suggest(model: str) -> str:
    """Suggest providers that are written nearly like the model's first part; empty if there is none."""
    first, _, rest = model.partition("/")
    providers = sorted(str(provider) for provider in get_litellm().models_by_provider)
    meant = [f"{provider}/{rest or model}" for provider in get_close_matches(first, providers, n=2, cutoff=0.7)]
    return f"did you mean {' or '.join(meant)}? " if meant else ""


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
    facts = _facts(model)
    return HostedCapabilities(
        model=model,
        provider=provider,
        fields=fields,
        seeds="seed" in fields,
        stops="stop" in fields,
        takes_schema="response_format" in fields and bool(litellm.supports_response_schema(model)),
        takes_tools="tools" in fields and bool(litellm.supports_function_calling(model)),
        thinks=bool(litellm.supports_reasoning(model)) and not _thinks_when_told(provider, facts),
        sees=facts.get("supports_vision"),
        prefills=facts.get("supports_assistant_prefill"),
        prompt_usd=facts.get("input_cost_per_token") or None,
        completion_usd=facts.get("output_cost_per_token") or None,
        variables=_VARIABLES.get(provider, (f"{provider.upper()}_API_KEY",)),
        missing=tuple(litellm.validate_environment(model=model)["missing_keys"]),
    )


def _thinks_when_told(provider: str, facts: Mapping[str, Any]) -> bool:
    """Return whether its models think only if a request says so."""
    return provider in _THINK_WHEN_TOLD or "anthropic" in str(facts.get("litellm_provider"))


def _facts(model: str) -> Mapping[str, Any]:
    """Return litellm's entry of a model; empty where it has none."""
    try:
        facts: Mapping[str, Any] = get_litellm().get_model_info(model)
    except Exception:  # litellm raises nothing more special for a model that its list lacks
        return {}
    return facts
