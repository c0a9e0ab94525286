"""The module of a user's own that `client_capacity.py` has medexam run: what `dspy_driver.py` asks."""

import dspy


class Direct(dspy.Module):
    """One predictor, asked once."""

    def __init__(self, instructions: str) -> None:
        super().__init__()
        self.predict = dspy.Predict(dspy.Signature("question: str -> answer: int", instructions))

    def forward(self, question: str) -> dspy.Prediction:
        """Return what the predictor answers."""
        return self.predict(question=question)
