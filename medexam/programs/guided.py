"""DSPy's chat format with outputs that cannot be anything but a legal value, for any signature.

An output is a choice if its type is a `Literal`, an enum or a bool, or if it is the int `answer` of a question with
numbered options. Each output is one call: the model writes it freely, or the engine chooses among its legal values, or
tells how likely each of these is (the paper's section 3.2.3).
"""

from collections.abc import Mapping, Set
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import dspy

from medexam.model_calls import ContinuationRequest, Dialogue, Sampling
from medexam.predictions import normalise_scores
from medexam.programs.lm import ask_model, run_blocking
from medexam.signatures.adapter import Fields, Signature, call_settings

_NEXT = "[[ ## "
"""Opens the next output."""
OPTIONS = "medexam_option_numbers"
"""Setting of DSPy's context: the numbers of which an int output called `answer` is one, for guided adapters."""


class GuidedAdapter(dspy.ChatAdapter):
    """Formats as `dspy.ChatAdapter` does, and fills choices with legal values; it asks nothing a second time."""

    def __init__(self, *, weighs: bool = False) -> None:
        """Make an adapter; with `weighs`, a choice is the value that the model finds likeliest, and predictions carry
        `probabilities`: output -> value -> its share of the probability, 0 to 1.
        """
        super().__init__(use_json_adapter_fallback=False)
        self._weighs = weighs

    def __call__(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Return one dictionary of outputs."""
        return run_blocking(self.acall(lm, lm_kwargs, signature, demos, inputs))

    async def acall(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Return one dictionary of outputs, without blocking."""
        settings = call_settings(lm, lm_kwargs)
        chat = self.format(signature, demos, inputs)
        if not all(isinstance(message["content"], str) for message in chat):
            raise dspy.LMUnsupportedFeatureError("guided answers take text alone; ask with answer_format: free")
        transcript, probabilities = "", {}
        texts: dict[str, str] = {}
        chosen: set[str] = set()
        for name, field in signature.output_fields.items():
            # Each output is begun for the model, so none is missing, also where the one before it was cut off.
            opening = f"{transcript}[[ ## {name} ## ]]\n"
            choices = _choices(name, field.annotation)
            sampling = Sampling.of(settings if choices else {**settings, "stop": [_NEXT, *settings.get("stop", ())]})
            extras: dict[str, Any] = {"choices": choices} if choices else {}
            if choices and self._weighs:
                extras = {"continuations": ContinuationRequest(texts=choices, given_opening=True, template=True)}
            (generation,) = await ask_model(lm, Dialogue(chat, opening, sampling, **extras))
            if choices and generation.reading is not None:
                scores = {place: one.total for place, one in enumerate(generation.reading.continuations)}
                probabilities[name] = dict(zip(choices, normalise_scores(scores).values(), strict=True))
            # Servers differ in whether the text at which they stopped is part of the reply.
            texts[name] = generation.words if choices else generation.words.split(_NEXT)[0].rstrip()
            chosen |= {name} if choices else set()
            transcript = f"{opening}{texts[name]}\n\n"
        outputs = self._read(signature, transcript, texts, chosen)
        return [{**outputs, **({"probabilities": probabilities} if self._weighs else {})}]

    def _read(self, signature: Signature, transcript: str, texts: Mapping[str, str], chosen: Set[str]) -> Fields:
        """Parse all outputs; where one does not parse, those that were chosen keep their values and it is None.

        Raises `dspy.AdapterParseError` if none was chosen.
        """
        try:
            parsed: Fields = self.parse(signature, transcript)
        except dspy.AdapterParseError:
            if not chosen:
                raise
        else:
            return parsed
        outputs: Fields = {}
        for name, text in texts.items():
            alone = signature
            for other in texts.keys() - {name}:
                alone = alone.delete(other)
            try:
                outputs |= self.parse(alone, f"[[ ## {name} ## ]]\n{text}\n\n")
            except dspy.AdapterParseError:
                outputs[name] = None
        return outputs


def _choices(name: str, kind: Any) -> tuple[str, ...]:
    """Return the legal texts of an output; empty if any text is."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(member.value) for member in kind)
    if kind is bool:
        return ("True", "False")
    return tuple(map(str, dspy.settings.get(OPTIONS, ()))) if kind is int and name == "answer" else ()


class OptionProbabilities(dspy.Module):
    """Chooses the likeliest value of each choice of a signature; the model writes only what is no choice.

    A prediction carries the outputs and `probabilities`: output -> value as text -> its share of the probability, 0 to
    1. In a program of a spec, an int output called `answer` is one of the question's option numbers; elsewhere its type
    says what may be chosen, such as `Literal["yes", "no"]`. The spec needs `logprobs: true`.
    """

    def __init__(self, signature: str | type[dspy.Signature]) -> None:
        super().__init__()
        self.weigh = dspy.Predict(signature)
        self._adapter = GuidedAdapter(weighs=True)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Choose by the inputs of the signature."""
        with dspy.context(adapter=self._adapter):
            prediction: dspy.Prediction = self.weigh(**inputs)
        return prediction

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Choose without blocking."""
        with dspy.context(adapter=self._adapter):
            prediction: dspy.Prediction = await self.weigh.acall(**inputs)
        return prediction
