"""Two strategies of one's own, as DSPy modules: a spec names them as `./my_strategies.py:Debate`."""

import dspy


class Debate(dspy.Module):
    """Argue for two options, then judge between the arguments."""

    def __init__(self, rounds: int = 1) -> None:
        super().__init__()
        self.rounds = rounds
        self.argue = dspy.Predict("question, options, arguments -> argument")
        self.judge = dspy.Predict("question, options, arguments -> answer: int")

    def forward(self, stem: str, options: str) -> dspy.Prediction:
        """Return a prediction with `answer`, here the printed number of an option."""
        arguments = ""
        for _ in range(self.rounds):
            arguments += self.argue(question=stem, options=options, arguments=arguments).argument + "\n"
        return self.judge(question=stem, options=options, arguments=arguments)


def explain_first(words: int = 30) -> dspy.Module:
    """Make the module, as a function may: here one of DSPy's own, with a signature of one's own."""
    instructions = f"Explain in at most {words} words which option is right, then give its number."
    return dspy.ChainOfThought(dspy.Signature("question, options -> answer: int", instructions))
