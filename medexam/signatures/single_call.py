"""What the adapters share: one call for one question, never a second, and a reply as the engine gave it."""

from typing import Any, ClassVar

import dspy

from medexam.model_calls import Dialogue, Generation
from medexam.signatures.direct import ask_blocking, ask_dialogue, is_heard

Signature = type[dspy.Signature]
Fields = dict[str, Any]


class SingleCallAdapter(dspy.Adapter):
    """Base of the adapters: `build_dialogue` says what is asked, `read_outputs` what came out."""

    calls_once: ClassVar[bool] = True
    """Tells `ask_predictor` that all an adapter does is said by these two."""

    def __call__(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Ask once; one dictionary of outputs for each reply."""
        settings = call_settings(lm, lm_kwargs)
        generations = ask_blocking(lm, self.build_dialogue(settings, signature, demos, inputs), settings)
        return [self.read_outputs(signature, inputs, generation) for generation in generations]

    async def acall(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Ask once without blocking; one dictionary of outputs for each reply."""
        return await self.ask(lm, lm_kwargs, signature, demos, inputs, heard=is_heard())

    async def ask(
        self,
        lm: dspy.LM,
        lm_kwargs: Fields,
        signature: Signature,
        demos: list[Fields],
        inputs: Fields,
        *,
        heard: bool = False,
    ) -> list[Fields]:
        """Return what `acall` gives, which DSPy wraps to tell listeners of it; `heard` says whether there are any."""
        settings = call_settings(lm, lm_kwargs)
        dialogue = self.build_dialogue(settings, signature, demos, inputs)
        generations = await ask_dialogue(lm, dialogue, settings, heard=heard)
        return [self.read_outputs(signature, inputs, generation) for generation in generations]

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
