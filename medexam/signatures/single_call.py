"""What the adapters share: one call for one question, never a second, whatever came back."""

from typing import Any

import dspy
from dspy.lm15 import Request, Response

Signature = type[dspy.Signature]
Fields = dict[str, Any]


class SingleCallAdapter(dspy.Adapter):
    """Base of the adapters: `build_request` says what is asked, `read_response` what came out."""

    def __call__(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Ask once; one dictionary of outputs."""
        settings = {**lm.kwargs, **lm_kwargs}
        request = self.build_request(lm.model, settings, signature, demos, inputs)
        return [self.read_response(signature, inputs, lm(request, **_call_options(settings)))]

    async def acall(
        self, lm: dspy.LM, lm_kwargs: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> list[Fields]:
        """Ask once without blocking; one dictionary of outputs."""
        settings = {**lm.kwargs, **lm_kwargs}
        request = self.build_request(lm.model, settings, signature, demos, inputs)
        return [self.read_response(signature, inputs, await lm.acall(request, **_call_options(settings)))]

    def build_request(
        self, model: str, settings: Fields, signature: Signature, demos: list[Fields], inputs: Fields
    ) -> Request:
        """What is asked of the model under the language model's settings."""
        raise NotImplementedError

    def read_response(self, signature: Signature, inputs: Fields, response: Response) -> Fields:
        """The signature's outputs, and whatever else the programs keep."""
        raise NotImplementedError


def _call_options(settings: Fields) -> Fields:
    return {key: settings[key] for key in ("rollout_id",) if settings.get(key) is not None}
