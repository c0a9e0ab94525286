"""The `batch` engine of open models: vLLM's `run-batch` on this machine, with the flags of the model's profile.

No server answers before the first wave, so nothing can be asked of the model beforehand: the profile says what its chat
template takes, and a choice is a pattern for the reply, opening words included, which vLLM enforces by its grammar.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from medexam.errors import UnsupportedFeatureError
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import ModelIdentity
from medexam.serve.chat_messages import TemplateRules, chat_fields, put_pictures, tool_turns
from medexam.serve.contract import EngineInfo
from medexam.serve.engines.hosted import HostedEngine, check_needs
from medexam.serve.engines.litellm_calls import read_chat, reading_reply
from medexam.serve.engines.thinking_count import count_thinking
from medexam.serve.engines.vllm_wire import chosen_in_chat, escape_pattern
from medexam.serve.launch.profile import load_profile
from medexam.serve.pool.adaptive_limit import AdaptiveLimit
from medexam.serve.request_settings import RequestSettings
from medexam.specs import EngineNeeds, ModelSpec
from medexam_companions.batches.batching import CONCURRENCY, Batching
from medexam_companions.batches.run_batch import VLLMBatches

_GRAMMAR_TOKENS = 64
"""Room for a choice of several tokens and its opening words; the grammar ends the reply."""


def build_vllm_batches(spec: ModelSpec, needs: EngineNeeds) -> "VLLMBatchEngine":
    """Build the engine of a spec; raises as `build_engine` does, also where vLLM or the GPUs are not here."""
    check_needs(spec, needs)
    engine = VLLMBatchEngine(spec)
    engine.batches.plan(Path("requests"), Path("results"))
    return engine


class VLLMBatchEngine(HostedEngine):
    """An engine of vLLM's batches."""

    def __init__(self, spec: ModelSpec) -> None:
        """Build the engine of a spec; raises `EngineError` for a profile that is none."""
        assert spec.profile is not None  # noqa: S101 - `BatchEngine.from_spec` has looked
        super().__init__(AdaptiveLimit(spec.timeout_s))
        self._profile = load_profile(spec.profile)
        self.model: str = self._profile.name
        self._settings = RequestSettings.of(spec)
        self.batches = VLLMBatches(spec.profile)
        """What answers a file of requests."""
        self._batching = Batching(self.batches)
        takes_system = self._profile.system_turn is not False
        self._rules = TemplateRules(
            system=takes_system, repeats=self._profile.alternating_turns is not True, empty_system=takes_system
        )

    @property
    def concurrency(self) -> int:
        """All questions of a cell."""
        return CONCURRENCY

    def work_in(
        self, folder: Path, in_flight: Callable[[], int], submitted: Callable[[], object] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Work in the run's folder, as `contract.FolderEngine` says."""
        return self._batching.work_in(folder, in_flight, submitted)

    async def answer(self, dialogue: Dialogue) -> list[Generation]:
        """Return the reply to one dialogue, alone in a list."""
        if dialogue.plain:
            raise UnsupportedFeatureError("engine batch cannot continue plain text", feature="config.extensions.plain")
        fields = chat_fields(dialogue) | self._settings.sampling
        if (turns := tool_turns(dialogue)) is not None:
            return [await self._chat(turns, fields)]
        messages = put_pictures(self._rules.fit(dialogue.messages), dialogue.pictures)
        opening, choices = dialogue.opening, dialogue.choices
        if choices is not None:
            pattern = f"{escape_pattern(opening)}({'|'.join(escape_pattern(choice) for choice in choices)})"
            fields = {**dialogue.sampling.drawing(), **self._settings.choosing}
            constraint = {"max_tokens": _GRAMMAR_TOKENS, "structured_outputs": {"regex": pattern}}
            return [chosen_in_chat(await self._chat(messages, {**fields, **constraint}), opening, choices)]
        if opening:
            raise UnsupportedFeatureError(
                "engine batch cannot make a model continue given words; use engine vllm", feature="messages"
            )
        return [await self._chat(messages, fields)]

    async def _chat(self, messages: list[dict[str, Any]], fields: dict[str, Any]) -> Generation:
        body = await self._batching.ask({**self._settings.chat, **fields, "model": self.model, "messages": messages})
        with reading_reply():
            (generation,) = read_chat(body, self.model)
        return await count_thinking(generation, None, opened=False)

    def info(self) -> EngineInfo:
        """Describe what really runs, as far as the profile says it."""
        revision = self._profile.revision
        return EngineInfo(
            engine="batch",
            model=self.model,
            identity=ModelIdentity(engine="batch", name=self.model, hub_id=self._profile.model, commit=revision),
            revision=revision,
            max_context=max(layout.max_context for layout in self._profile.layouts),
            system_turn="kept" if self._rules.system else "merged",
            guided_by="structured_outputs",
            details={"by": "vLLM's run-batch", **self._rules.details},
        )

    async def close(self) -> None:
        """Do nothing: a batch's process ends with the batch."""
