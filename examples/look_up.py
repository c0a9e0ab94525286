"""A strategy that decides itself what to look up: DSPy's ReAct, with the spec's retriever as its tool."""

import dspy
from dspy.utils.exceptions import AdapterParseError


class LookUp(dspy.Module):
    """Think, search, read, and think again, at most `steps` times; then answer."""

    def __init__(self, steps: int = 2, k: int = 2) -> None:
        super().__init__()
        self.k = k
        self.react = dspy.ReAct("question -> answer: int", tools=[self.search], max_iters=steps)

    def search(self, query: str) -> str:
        """Passages of medical literature about a query."""
        return "\n\n".join(dspy.Retrieve(k=self.k)(query).passages)

    def forward(self, question: str) -> dspy.Prediction:
        """Answer behind what was looked up; `rationale` is its reasoning."""
        try:
            return self.react(question=question)
        except AdapterParseError:
            # A small model's tool call may be no JSON: it answers without having looked anything up.
            return self.react.extract(question=question, trajectory="")
