"""What the adapters share: one call for one question, never a second, and a reply as the engine gave it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import dspy
from dspy.lm15 import (
    Config,
    ImagePart,
    Message,
    RefusalPart,
    Request,
    Response,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)

from medexam.dspy_internals import dspy_errors
from medexam.model_calls import DRAWN_SEED, FINISH_REASON, UNSEEDED, Dialogue, Generation, ToolCall
from medexam.signatures.direct import ask_model, find_writer
from medexam.signatures.thinking import join_thinking

Signature = type[dspy.Signature]
Fields = dict[str, Any]


class SingleCallAdapter(dspy.Adapter):
    """Base of the adapters: `build_request` says what is asked, `read_response` what came out."""

    calls_once: ClassVar[bool] = True
    """Tells `ask_predictor` that all an adapter does is said by these two."""

    def __call__(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Ask once; one dictionary of outputs for each reply."""
        settings = call_settings(lm, lm_kwargs)
        request = self._request(lm, settings, signature, demos, inputs)
        return self._read(settings, lm(request, **_call_options(settings)), signature, inputs)

    async def acall(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Ask once without blocking; one dictionary of outputs for each reply."""
        settings = call_settings(lm, lm_kwargs)
        request = self._request(lm, settings, signature, demos, inputs)
        return self._read(settings, await ask_model(lm, request, _call_options(settings)), signature, inputs)

    async def ask_unheard(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Return what `acall` gives where nobody of DSPy's listens."""
        writer = find_writer(lm)
        settings = call_settings(lm, lm_kwargs)
        if writer is not None and settings.keys().isdisjoint(_OUT_OF_DIALOGUE):
            dialogue = self.build_dialogue(settings, signature, demos, inputs)
            if dialogue is not None and writer.writes(dialogue):
                with dspy_errors(lm.model):
                    generation = await writer.write(dialogue)
                return [self._seeded(settings, self.read_outputs(signature, inputs, generation))]
        request = self._request(lm, settings, signature, demos, inputs)
        return self._read(settings, await ask_model(lm, request, _call_options(settings)), signature, inputs)

    def _request(
        self, lm: dspy.LM, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> Request:
        """Build what is asked, for as many replies as the settings say."""
        request = self.build_request(lm.model, settings, signature, demos, inputs)
        if (samples := settings.get(SAMPLES, 1)) == 1:
            return request
        extensions = {**(request.config.extensions or {}), SAMPLES: samples}
        return replace(request, config=replace(request.config, extensions=extensions))

    def _read(self, settings: Fields, response: Response, signature: Signature, inputs: Fields) -> list[Fields]:
        """Read the outputs of every reply."""
        told = response.provider_data or {}
        settings = {**settings, "seed": None if told.get(UNSEEDED) else told.get(DRAWN_SEED, settings.get("seed"))}
        return [
            self._seeded(settings, self.read_response(signature, inputs, reply), number)
            for number, reply in enumerate(split_samples(response))
        ]

    def _seeded(self, settings: Fields, outputs: Fields, number: int = 0) -> Fields:
        """Return the outputs of the reply with this number; one that was drawn is kept with its seed."""
        seed = settings.get("seed") if settings.get("temperature") else None
        if seed is not None and "generation" in outputs:
            outputs["generation"] = replace(outputs["generation"], seed=seed + number)
        return outputs

    def build_request(
        self, model: str, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> Request:
        """Build what is asked of the model under the language model's settings."""
        raise NotImplementedError

    def read_response(self, signature: Signature, inputs: Fields, response: Response) -> Fields:
        """Read the signature's outputs, and whatever else the programs keep."""
        raise NotImplementedError

    def build_dialogue(
        self,
        settings: Fields,  # noqa: ARG002
        signature: Signature,  # noqa: ARG002
        demos: list[Fields],  # noqa: ARG002
        inputs: Fields,  # noqa: ARG002
    ) -> Dialogue | None:
        """Build the messages and settings of `build_request`; None where a request says more than a dialogue can."""
        return None

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:
        """Read what `read_response` reads from the same reply, where it replies to a dialogue."""
        raise NotImplementedError


def call_settings(lm: dspy.LM, overrides: Fields) -> Fields:
    """Return the settings of a call over the model's own; a reply ends at what either of them names."""
    stop = [*(overrides.get("stop") or ()), *(lm.kwargs.get("stop") or ())]
    return {**lm.kwargs, **overrides, **({"stop": stop} if stop else {})}


def _call_options(settings: Fields) -> Fields:
    return {key: settings[key] for key in ("rollout_id",) if settings.get(key) is not None}


MOST_TOKENS = 10**9
"""More than any context holds: a larger count of tokens is a server's fault, and counts as not reported."""
SAMPLES = "samples"
"""Setting of a call: the number of its replies, each under a seed of its own; for engines that share a prompt alone."""
_OUT_OF_DIALOGUE = {SAMPLES, "rollout_id"}
"""Settings of a call that a dialogue has no room for."""
_CONFIG = ("max_tokens", "temperature", "top_p", "top_k", "seed", "stop")


def chat_request(
    model: str,
    chat: Sequence[Mapping[str, str]],
    settings: Fields,
    extensions: dict[str, Any],
    picture: str | None = None,
) -> Request:
    """Build a request of chat messages, under the settings of the language model; the first may be the system's.

    `extensions` are what engines alone understand. An empty system turn is a part without words: a request takes no
    empty text for it. `picture`, a data URL, stands before the words of the last user turn.
    """
    system = next((turn["content"] for turn in chat if turn["role"] == "system"), None)
    config = {key: settings[key] for key in _CONFIG if settings.get(key) is not None}
    messages = [_message(turn["role"], turn["content"]) for turn in chat if turn["role"] != "system"]
    if picture is not None:
        last = max(place for place, message in enumerate(messages) if message.role == "user")
        messages[last] = Message.user([_image(picture), *messages[last].parts])
    return Request(
        model=model,
        system=[TextPart("")] if system == "" else system,
        messages=tuple(messages),
        config=Config(**config, extensions=extensions) if extensions else Config(**config),
    )


# Instructions and demonstrations stand in every request of a run.
@lru_cache(maxsize=128)
def _message(role: str, content: str) -> Message:
    return {"user": Message.user, "assistant": Message.assistant}[role](content)


def _image(data_url: str) -> ImagePart:
    kind, _, data = data_url.removeprefix("data:").partition(";base64,")
    return ImagePart(media_type=kind, data=data)


def split_samples(response: Response) -> list[Response]:
    """Split a response into its replies, each as a response; those that shared the first one's prompt read none."""
    others = (response.provider_data or {}).get(SAMPLES) or ()
    return [response, *(_one_sample(response, data) for data in others)]


def _one_sample(first: Response, data: Mapping[str, Any]) -> Response:
    thinking = [ThinkingPart(data["thinking"])] if data["thinking"] else []
    usage = Usage(input_tokens=0, output_tokens=data["completion_tokens"], reasoning_tokens=data["thinking_tokens"])
    refusal = [RefusalPart(data["refusal"])] if data.get("refusal") else []
    message = Message.assistant([*thinking, TextPart(data["text"]), *refusal])
    provider_data = {FINISH_REASON: data.get("written_reason")}
    return replace(
        first, message=message, finish_reason=data["finish_reason"], usage=usage, provider_data=provider_data
    )


def read_generation(response: Response) -> Generation:
    """Read the reply of a response."""
    text = read_reply_text(response)
    thinking = "".join(part.text for part in response.message.parts if isinstance(part, ThinkingPart))
    refusal = "".join(part.text for part in response.message.parts if isinstance(part, RefusalPart))
    return Generation(
        reply=join_thinking(thinking, text or refusal) if thinking else text or refusal,
        finish_reason=(response.provider_data or {}).get(FINISH_REASON) or response.finish_reason,
        model=response.model,
        prompt_tokens=_count(response.usage.input_tokens),
        completion_tokens=_count(response.usage.output_tokens),
        thinking_tokens=_count(response.usage.reasoning_tokens),
        refused=bool(refusal),
        tool_calls=tuple(
            ToolCall(id=part.id, name=part.name, args=part.input)
            for part in response.message.parts
            if isinstance(part, ToolCallPart)
        ),
    )


def _count(tokens: int | None) -> int | None:
    """Return the number of tokens that a server reports; None where it reports none, or one that cannot be."""
    return tokens if isinstance(tokens, int) and 0 <= tokens <= MOST_TOKENS else None


def add_usage(generation: Generation, earlier: Generation) -> Generation:
    """Return the generation with the tokens of an earlier one that it continues."""
    return replace(
        generation,
        prompt_tokens=_sum(generation.prompt_tokens, earlier.prompt_tokens),
        completion_tokens=_sum(generation.completion_tokens, earlier.completion_tokens),
        thinking_tokens=_sum_known(generation.thinking_tokens, earlier.thinking_tokens),
    )


def _sum(first: int | None, second: int | None) -> int | None:
    """Return the sum; None if either is unknown."""
    return None if first is None or second is None else first + second


def _sum_known(first: int | None, second: int | None) -> int | None:
    """Return the sum of what is known; None if nothing is."""
    return None if first is None and second is None else (first or 0) + (second or 0)


def read_reply_text(response: Response) -> str:
    """Return what was said, without what was thought."""
    return "".join(part.text for part in response.message.parts if isinstance(part, TextPart))
