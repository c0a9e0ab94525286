"""What the core knows of engine `batch`: how it is built, and what tells it from engines that answer at once."""

from typing import Any

from medexam.errors import EngineError, SpecError
from medexam.serve import Engine, build_engine
from medexam.specs import EngineNeeds, ModelSpec


class BatchEngine:
    """Engine `batch`: a provider's batches at half the price."""

    works_in_folder = True

    @staticmethod
    async def from_spec(spec: ModelSpec, needs: EngineNeeds) -> Engine:
        """Connect to the provider; raises as `build_engine` does."""
        if not spec.name or spec.profile or spec.endpoints:
            raise SpecError(
                "engine 'batch' needs a provider's model in name, such as openai/gpt-4o-mini, and takes no profile and "
                "no endpoints: else use engine vllm"
            )
        from medexam_companions.batches.provider import HostedBatches
        from medexam_companions.batches.provider_engine import PROVIDER, ProviderBatchEngine

        provider, _, name = spec.name.rpartition("/")
        if provider != PROVIDER:
            raise EngineError(f"{spec.name}: engine batch takes {PROVIDER}/NAME alone; else use engine litellm")
        live = await build_engine(spec.model_copy(update={"engine": "litellm"}), needs)
        return ProviderBatchEngine(live, HostedBatches(spec), name)

    @staticmethod
    def is_billed(_: ModelSpec) -> bool:
        """Whether a provider bills each token."""
        return True

    @staticmethod
    def list_prices(info: dict[str, Any]) -> tuple[float, float]:
        """Take the prices for batches from litellm's entry of a model, or half of the others."""
        ways = ("input_cost_per_token", "output_cost_per_token")
        prompt_usd, completion_usd = (info.get(f"{way}_batches") or info[way] / 2 for way in ways)
        return prompt_usd, completion_usd
