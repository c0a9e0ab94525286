"""A program: a DSPy module."""

import dspy


class SecondThought(dspy.Module):
    """Answer, then answer again with the first answer in view."""

    def __init__(self) -> None:
        super().__init__()
        self.first = dspy.Predict("question, options -> answer: int")
        self.second = dspy.Predict("question, options, first_answer -> answer: int")

    def forward(self, stem: str, options: str) -> dspy.Prediction:
        """Return a `dspy.Prediction` whose `answer` is the printed number of an option."""
        first = self.first(question=stem, options=options)
        return self.second(question=stem, options=options, first_answer=str(first.answer))
