"""Log-probability selection for any DSPy signature (the paper's section 3.2.3), as a module among a user's own."""

from typing import Any

import dspy

from medexam.programs.guided import GuidedAdapter


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
