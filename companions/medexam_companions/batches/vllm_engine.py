"""The `batch` engine of open models: vLLM's `run-batch` on this machine, with the flags of the model's profile.

No server answers before the first wave, so nothing can be asked of the model beforehand: the profile says what its chat
template takes, and a choice is a pattern for the reply, opening words included, which vLLM enforces by its grammar.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from medexam.errors import EngineError, LogprobsUnavailableError, ProviderError, ServerError, UnsupportedFeatureError
from medexam.model_calls import Dialogue, Generation
from medexam.model_identity import ModelIdentity
from medexam.serve import EngineInfo, RequestSettings, TemplateRules, load_profile, put_pictures, read_chat
from medexam.specs import EngineNeeds, ModelSpec
from medexam_companions.batches.batching import BatchingEngine
from medexam_companions.batches.run_batch import VLLMBatches

_GRAMMAR_TOKENS = 64
"""Room for a choice of several tokens and its opening words; the grammar ends the reply."""
_CONTINUES = "engine batch cannot continue given words, plain text or a model's own thinking; use engine vllm"


def build_vllm_batches(spec: ModelSpec, needs: EngineNeeds) -> "VLLMBatchEngine":
    """Build the engine of a spec; raises as `build_engine` does, also where vLLM or the GPUs are not here."""
    if needs.logprobs:
        raise LogprobsUnavailableError("engine batch reports no log-probabilities of given texts; use engine vllm")
    if needs.plain or needs.closes:
        raise EngineError(_CONTINUES)
    return VLLMBatchEngine(spec)


class VLLMBatchEngine(BatchingEngine):
    """An engine of vLLM's batches."""

    def __init__(self, spec: ModelSpec) -> None:
        """Build the engine of a spec; raises `EngineError` for a profile that is none."""
        assert spec.profile is not None  # noqa: S101 - `BatchEngine.from_spec` has looked
        batches = VLLMBatches(spec.profile)
        batches.plan(Path("requests"), Path("results"))
        super().__init__(batches.work, self.reply, resumes=False)
        self._profile = load_profile(spec.profile)
        self.model: str = self._profile.name
        self._settings = RequestSettings.of(spec)
        takes_system = self._profile.system_turn is not False
        self._rules = TemplateRules(
            system=takes_system, repeats=self._profile.alternating_turns is not True, empty_system=takes_system
        )

    async def reply(self, dialogue: Dialogue) -> list[Generation]:
        """Return the reply to one dialogue, alone in a list."""
        fields = {**dialogue.sampling.fields(), **dialogue.fields, **self._settings.sampling}
        if dialogue.turns is not None:
            return [await self._chat(dialogue.turns, fields)]
        messages = put_pictures(self._rules.fit(dialogue.messages), dialogue.pictures)
        opening, choices = dialogue.opening, dialogue.choices
        if choices is not None:
            pattern = f"{_escape(opening)}({'|'.join(map(_escape, choices))})"
            fields = {**dialogue.sampling.drawing(), **self._settings.choosing}
            constraint = {"max_tokens": _GRAMMAR_TOKENS, "structured_outputs": {"regex": pattern}}
            generation = await self._chat(messages, {**fields, **constraint})
            if generation.withheld:
                return [generation]
            choice = next((choice for choice in choices if generation.words == opening + choice), None)
            if choice is None:
                raise ProviderError(f"vLLM replied {generation.words!r}, not {opening!r} and one of {list(choices)}")
            return [replace(generation, reply=choice, text=None, thinking=None, source=None)]
        if opening or dialogue.plain:
            raise UnsupportedFeatureError(_CONTINUES, feature="messages")
        return [await self._chat(messages, fields)]

    async def _chat(self, messages: list[dict[str, Any]], fields: dict[str, Any]) -> Generation:
        body = {**self._settings.chat, **fields, "model": self.model, "messages": messages}
        reply = await self.waves.ask(body)
        try:
            return read_chat(reply, self.model)[0]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ServerError(f"the reply cannot be read: {error}") from error

    async def aclose(self) -> None:
        """Do nothing: a process ends with its batch."""

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


def _escape(text: str) -> str:
    """Escape the text as a pattern; `re.escape` would also escape spaces, which grammar engines refuse."""
    return re.sub(r"([\\.^$*+?{}\[\]|()/-])", r"\\\1", text)
