"""DSPy's chat adapter for bulk runs: the same messages and the same outputs, for a fraction of a client's time.

Where nobody listens to calls, an engine of ours gets the messages as a dialogue, without DSPy's request around them.
The system message of a signature is written once. Everything else is DSPy's own way.
"""

from functools import lru_cache
from typing import Any, NamedTuple, cast, get_type_hints

import dspy
from dspy.utils.exceptions import AdapterParseError

from medexam.dspy_internals import DirectCalls, chat_output, current_settings, dspy_errors, is_plain_lm
from medexam.dspy_requests import write_response
from medexam.model_calls import Dialogue, Generation, Sampling
from medexam.signatures.direct import find_direct_engine
from medexam.signatures.single_call import call_settings

Signature = type[dspy.Signature]
Fields = dict[str, Any]
_SAMPLING = frozenset(get_type_hints(Sampling)) - {"samples"}
"""Settings of a call that a dialogue has room for."""


class ChatInBulk(dspy.ChatAdapter):
    """DSPy's chat adapter, whose calls go to the engine directly where nobody listens to them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._direct = DirectCalls()

    async def acall(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Return what DSPy's own adapter returns."""
        call = _Call(lm, dict(lm_kwargs), signature, demos, inputs)
        outputs: list[Fields] | None = None
        try:
            if self._asks_directly(lm):
                outputs = await self._ask(call)
            elif self._asks_plainly(lm, signature):
                processed, messages = self._write(call)
                if (replies := await self._direct.ask(lm, messages, call.options)) is not None:
                    outputs = self._read(call, processed, replies)
        except AdapterParseError:
            if not self.use_json_adapter_fallback:
                raise
            outputs = await self._json_adapter().acall(lm, lm_kwargs, signature, demos, inputs)
        if outputs is not None:
            return outputs
        own_outputs: list[Fields] = await super().acall(lm, lm_kwargs, signature, demos, inputs)
        return own_outputs

    def __call__(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Return what DSPy's own adapter returns, in a thread that waits."""
        call = _Call(lm, dict(lm_kwargs), signature, demos, inputs)
        outputs: list[Fields] | None = None
        try:
            if self._asks_directly(lm):
                outputs = self._ask_blocking(call)
            elif self._asks_plainly(lm, signature):
                processed, messages = self._write(call)
                if (replies := self._direct.ask_blocking(lm, messages, call.options)) is not None:
                    outputs = self._read(call, processed, replies)
        except AdapterParseError:
            if not self.use_json_adapter_fallback:
                raise
            outputs = self._json_adapter()(lm, lm_kwargs, signature, demos, inputs)
        if outputs is not None:
            return outputs
        own_outputs: list[Fields] = super().__call__(lm, lm_kwargs, signature, demos, inputs)
        return own_outputs

    def _json_adapter(self) -> dspy.Adapter:
        return dspy.JSONAdapter(
            use_native_function_calling=self.use_native_function_calling,
            parallel_tool_calls=self.parallel_tool_calls,
        )

    async def _ask(self, call: "_Call") -> list[Fields] | None:
        """Ask by a dialogue; None where it says less than DSPy's request, and nothing was asked."""
        if (written := self._write_dialogue(call)) is None:
            return None
        processed, dialogue = written
        with dspy_errors(call.lm.model):
            (generation,) = await call.lm.direct_engine.reply(dialogue)
        return self._read(call, processed, [_output(generation)])

    def _ask_blocking(self, call: "_Call") -> list[Fields] | None:
        """Ask as `_ask` does, in a thread that waits."""
        if (written := self._write_dialogue(call)) is None:
            return None
        processed, dialogue = written
        with dspy_errors(call.lm.model):
            (generation,) = call.lm.engine.reply(dialogue)
        return self._read(call, processed, [_output(generation)])

    def _write_dialogue(self, call: "_Call") -> tuple[Signature, Dialogue] | None:
        """Return the signature that the reply is read by, and the dialogue to ask; None where DSPy has to ask."""
        processed, messages = self._write(call)
        dialogue = call.dialogue(messages)
        if dialogue is None or find_direct_engine(call.lm, dialogue) is None:
            return None
        return processed, dialogue

    def _write(self, call: "_Call") -> tuple[Signature, list[Fields]]:
        """Return the signature that the reply is read by, and the messages of a call."""
        processed: Signature = self._call_preprocess(call.lm, call.options, call.signature, call.inputs)
        messages: list[Fields] = self.format(processed, call.demos, call.inputs)
        return processed, messages

    def _read(self, call: "_Call", processed: Signature, replies: list[Any]) -> list[Fields]:
        outputs: list[Fields] = self._call_postprocess(processed, call.signature, replies, call.lm, call.options)
        return outputs

    def _asks_directly(self, lm: dspy.LM) -> bool:
        """Return whether a model of ours can be asked by dialogues, since nothing listens."""
        return getattr(lm, "direct_engine", None) is not None and not (self.callbacks or _is_heard())

    def _asks_plainly(self, lm: dspy.LM, signature: Signature) -> bool:
        """Return whether a model of DSPy's can be asked without what DSPy does anew for each call."""
        settings = current_settings()
        return (
            not (self.callbacks or settings["callbacks"] or settings["send_stream"])
            and is_plain_lm(lm)
            and not any(field.annotation in self.native_response_types for field in signature.output_fields.values())
        )

    def format_system_message(self, signature: Signature) -> str:
        """Return the system message, which is written once for a signature."""
        return _system_message(cast("Any", signature), signature.instructions)

    def format_user_message_content(
        self,
        signature: Signature,
        inputs: Fields,
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """Return DSPy's message, for texts without DSPy's way to write other values as JSON."""
        names = [name for name in _input_names(cast("Any", signature)) if name in inputs]
        if not all(type(inputs[name]) is str for name in names):
            message: str = super().format_user_message_content(signature, inputs, prefix, suffix, main_request)
            return message
        fields = [f"[[ ## {name} ## ]]\n{inputs[name]}" for name in names]
        reminder = _reminder(cast("Any", signature)) if main_request else None
        return "\n\n".join([prefix, *fields, *([] if reminder is None else [reminder]), suffix]).strip()


class _Call(NamedTuple):
    """A predictor's call."""

    lm: dspy.LM
    options: Fields
    signature: Signature
    demos: list[Fields]
    inputs: Fields

    def dialogue(self, messages: list[Fields]) -> Dialogue | None:
        """Return the messages as a dialogue; None where it says less than DSPy's request."""
        settings = {name: value for name, value in call_settings(self.lm, self.options).items() if value is not None}
        if settings.keys() - _SAMPLING:
            return None
        if not all(isinstance(message["content"], str) and len(message) == 2 for message in messages):
            return None
        return Dialogue.of(messages, Sampling.of(settings))


def _output(generation: Generation) -> Any:
    """Return a reply as a call of DSPy's chat models does."""
    is_text = generation.text is None and not generation.tool_calls
    return generation.words if is_text else chat_output(write_response([generation]))


@lru_cache(maxsize=256)
def _input_names(signature: Any) -> tuple[str, ...]:
    return tuple(signature.input_fields)


@lru_cache(maxsize=256)
def _reminder(signature: Any) -> str | None:
    reminder: str | None = dspy.ChatAdapter().user_message_output_requirements(signature)
    return reminder


@lru_cache(maxsize=256)
def _system_message(signature: Any, instructions: str) -> str:  # noqa: ARG001 - they may be set anew
    message: str = dspy.ChatAdapter().format_system_message(signature)
    return message


def _is_heard() -> bool:
    """Return whether anything of DSPy's listens to calls of a model; a trace hears of predictors alone."""
    settings = current_settings()
    listeners = settings["callbacks"] or settings["track_usage"] or settings["usage_tracker"] or settings["send_stream"]
    return bool(listeners) or not settings["disable_history"]
