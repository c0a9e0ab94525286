"""DSPy's chat format with outputs that cannot be anything but a legal value, for any signature.

An output is a choice if its type is a `Literal`, an enum or a bool, or if it is the int `answer` of a question with
numbered options. Each output is one call: the model writes it freely, or the engine chooses among its legal values.
"""

from enum import Enum
from typing import Any, Literal, get_args, get_origin

import dspy

from medexam.model_calls import Dialogue
from medexam.programs.base import ask_model, run_blocking, sampling_of

Fields = dict[str, Any]
Signature = type[dspy.Signature]
_NEXT = "[[ ## "
"""Opens the next output."""
OPTIONS = "medexam_option_numbers"
"""Setting of DSPy's context: the numbers of which an int output called `answer` is one, for guided adapters."""


class GuidedAdapter(dspy.ChatAdapter):
    """Formats as `dspy.ChatAdapter` does, and fills choices with legal values; it asks nothing a second time."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)

    def __call__(self, *arguments: Any, **settings: Any) -> list[Fields]:
        """Return one dictionary of outputs."""
        return run_blocking(self.acall(*arguments, **settings))

    async def acall(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Return one dictionary of outputs, without blocking."""
        sampling = sampling_of(lm, lm_kwargs)
        chat = self.format(signature, demos, inputs)
        if not all(isinstance(message["content"], str) for message in chat):
            raise dspy.LMUnsupportedFeatureError("guided answers take text alone; ask with answer_format: free")
        transcript = ""
        texts: dict[str, str] = {}
        values: set[str] = set()
        for name, field in signature.output_fields.items():
            # Each output is begun for the model, so none is missing, also where the one before it was cut off.
            opening = f"{transcript}[[ ## {name} ## ]]\n"
            choices = _choices(name, field.annotation)
            drawn = sampling if choices else {**sampling, "stop": [_NEXT, *sampling.get("stop", ())]}
            generation = await ask_model(lm, Dialogue(chat, opening, drawn, choices or None))
            # Servers differ in whether the text at which they stopped is part of the reply.
            texts[name] = generation.words if choices else generation.words.split(_NEXT)[0].rstrip()
            values |= {name} if choices else set()
            transcript = f"{opening}{texts[name]}\n\n"
        outputs: Fields = {}
        for name in texts:
            alone = signature
            for other in texts.keys() - {name}:
                alone = alone.delete(other)
            try:
                outputs |= self.parse(alone, f"[[ ## {name} ## ]]\n{texts[name]}\n\n")
            except dspy.AdapterParseError:
                # What was chosen keeps its value beside an output that does not parse.
                if not values:
                    raise
                outputs[name] = None
        return [outputs]


def _choices(name: str, kind: Any) -> tuple[str, ...]:
    """Return the legal texts of an output; empty if any text is."""
    if get_origin(kind) is Literal:
        return tuple(map(str, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(member.value) for member in kind)
    if kind is bool:
        return ("True", "False")
    return tuple(map(str, dspy.settings.get(OPTIONS, ()))) if kind is int and name == "answer" else ()
