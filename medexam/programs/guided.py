"""DSPy's chat format with outputs that cannot be anything but a legal value, for any signature.

An output is a choice if its type is a `Literal`, an enum or a bool, or if it is the int `answer` of a question with
numbered options. Each output is one call: the model writes it freely, or the engine chooses among its legal values.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import dspy

from medexam.model_calls import ContinuationRequest, Dialogue, Generation, Sampling
from medexam.predictions import normalise_scores
from medexam.programs.lm import ask_model, run_blocking
from medexam.signatures.single_call import Fields, Signature, call_settings

_NEXT = "[[ ## "
"""Opens the next output."""
_OPTIONS = "medexam_option_numbers"


@contextmanager
def asked_options(numbers: Sequence[int]) -> Iterator[None]:
    """Have an int output called `answer` be one of these numbers, for every guided adapter in the block."""
    with dspy.context(**{_OPTIONS: tuple(numbers)}):
        yield


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
        chat = [_checked(message) for message in self.format(signature, demos, inputs)]
        transcript, probabilities = "", {}
        texts: dict[str, str] = {}
        choice_names: set[str] = set()
        for name, field in signature.output_fields.items():
            # Each output is begun for the model, so none is missing, also where the one before it was cut off.
            opening = f"{transcript}[[ ## {name} ## ]]\n"
            choices = self._choices(name, field.annotation)
            own_settings = settings if choices else {**settings, "stop": [_NEXT, *settings.get("stop", ())]}
            extras: dict[str, Any] = {"choices": choices} if choices else {}
            if choices and self._weighs:
                extras = {"continuations": ContinuationRequest(texts=choices, given_opening=True, template=True)}
            (generation,) = await ask_model(lm, Dialogue(chat, opening, Sampling.of(own_settings), **extras))
            if choices and self._weighs:
                probabilities[name] = _shares(choices, generation)
            # Servers differ in whether the text at which they stopped is part of the reply.
            text = generation.words if choices else generation.words.split(_NEXT)[0].rstrip()
            texts[name] = text
            choice_names |= {name} if choices else set()
            transcript = f"{opening}{text}\n\n"
        outputs = self._read(signature, transcript, texts, choice_names)
        return [{**outputs, **({"probabilities": probabilities} if self._weighs else {})}]

    def _read(self, signature: Signature, transcript: str, texts: Mapping[str, str], choice_names: Set[str]) -> Fields:
        """Parse all outputs; where one does not parse, those that were chosen keep their values and it is None.

        Raises `dspy.AdapterParseError` if none was chosen.
        """
        try:
            parsed: Fields = self.parse(signature, transcript)
        except dspy.AdapterParseError:
            if not choice_names:
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

    def _choices(self, name: str, kind: Any) -> tuple[str, ...]:
        """Return the legal texts of an output; empty if any text is."""
        if get_origin(kind) is Literal:
            return tuple(str(value) for value in get_args(kind))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return tuple(str(member.value) for member in kind)
        if kind is bool:
            return ("True", "False")
        if kind is int and name == "answer":
            return tuple(map(str, dspy.settings.get(_OPTIONS, ())))
        return ()


def _shares(choices: Sequence[str], generation: Generation) -> dict[str, float]:
    assert generation.reading is not None  # noqa: S101 - it was asked for
    totals = {place: continuation.total for place, continuation in enumerate(generation.reading.continuations)}
    return dict(zip(choices, normalise_scores(totals).values(), strict=True))


def _checked(message: dict[str, Any]) -> dict[str, str]:
    if not isinstance(message["content"], str):
        raise dspy.LMUnsupportedFeatureError("guided answers take text alone; ask with answer_format: free")
    return message
