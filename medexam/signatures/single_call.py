"""What the adapters share: a call as an engine takes it, and a reply as the engine gave it."""

from typing import Any

import dspy

from medexam.model_calls import Dialogue, Generation

Signature = type[dspy.Signature]
Fields = dict[str, Any]


class SingleCallAdapter(dspy.Adapter):
    """Base of the adapters: `build_dialogue` says what is asked, `read_outputs` what came out."""

    def build_dialogue(self, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields) -> Dialogue:
        """Build what is asked of the model under the language model's settings."""
        raise NotImplementedError

    def read_outputs(self, signature: Signature, inputs: Fields, generation: Generation) -> Fields:
        """Read the signature's outputs from a reply, and whatever else the programs keep."""
        raise NotImplementedError


def call_settings(lm: dspy.LM, overrides: Fields) -> Fields:
    """Return the settings of a call over the model's own; a reply ends at what either of them names."""
    stops = (overrides.get("stop") or (), lm.kwargs.get("stop") or ())
    stop = [text for texts in stops for text in ([texts] if isinstance(texts, str) else texts)]
    return {**lm.kwargs, **overrides, **({"stop": stop} if stop else {})}
