"""DSPy's chat adapter for bulk runs: the same messages and the same outputs, for a fraction of a client's time.

Where nobody listens to calls, an engine of ours gets the messages as a dialogue, without DSPy's request around them.
The system message of a signature is written once. Everything else is DSPy's own way.
"""

from functools import lru_cache
from typing import Any, cast

import dspy
from dspy.utils.exceptions import AdapterParseError

from medexam.dspy_internals import current_settings, dspy_errors
from medexam.model_calls import Dialogue, Sampling
from medexam.signatures.direct import DialogueWriter, find_writer
from medexam.signatures.single_call import call_settings

Signature = type[dspy.Signature]
Fields = dict[str, Any]
_SAMPLING = frozenset({"max_tokens", "temperature", "top_p", "top_k", "seed", "stop"})
"""Settings of a call that a dialogue has room for."""


class ChatInBulk(dspy.ChatAdapter):
    """DSPy's chat adapter, whose calls go to the engine directly where nobody listens to them."""

    async def acall(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Return what DSPy's own adapter returns."""
        writer = None if self.callbacks or _is_heard() else find_writer(lm)
        if writer is not None:
            try:
                outputs = await self._ask(writer, lm, dict(lm_kwargs), signature, demos, inputs)
            except AdapterParseError:
                if not self.use_json_adapter_fallback:
                    raise
                adapter = dspy.JSONAdapter(
                    use_native_function_calling=self.use_native_function_calling,
                    parallel_tool_calls=self.parallel_tool_calls,
                )
                outputs = await adapter.acall(lm, lm_kwargs, signature, demos, inputs)
            if outputs is not None:
                return outputs
        own_outputs: list[Fields] = await super().acall(lm, lm_kwargs, signature, demos, inputs)
        return own_outputs

    async def _ask(
        self,
        writer: DialogueWriter,
        lm: dspy.LM,
        options: Fields,
        signature: Signature,
        demos: list[Fields],
        inputs: Fields,
    ) -> list[Fields] | None:
        """Ask by a dialogue; None where it says less than DSPy's request, and nothing was asked."""
        processed = self._call_preprocess(lm, options, signature, inputs)
        settings = {name: value for name, value in call_settings(lm, options).items() if value is not None}
        if settings.keys() - _SAMPLING:
            return None
        messages = self.format(processed, demos, inputs)
        if not all(isinstance(message["content"], str) and len(message) == 2 for message in messages):
            return None
        dialogue = Dialogue.of(messages, Sampling.of(settings))
        if dialogue is None or not writer.writes(dialogue):
            return None
        with dspy_errors(lm.model):
            generation = await writer.write(dialogue)
        outputs: list[Fields] = self._call_postprocess(processed, signature, [generation.reply or ""], lm, options)
        return outputs

    def format_system_message(self, signature: Signature) -> str:
        """Return the system message, which is written once for a signature."""
        return _system_message(cast("Any", signature), signature.instructions)


@lru_cache(maxsize=256)
def _system_message(signature: Any, instructions: str) -> str:  # noqa: ARG001 - they may be set anew
    message: str = dspy.ChatAdapter().format_system_message(signature)
    return message


def _is_heard() -> bool:
    """Return whether anything of DSPy's listens to calls of a model; a trace hears of predictors alone."""
    settings = current_settings()
    listeners = settings["callbacks"] or settings["track_usage"] or settings["usage_tracker"] or settings["send_stream"]
    return bool(listeners) or not settings["disable_history"]
