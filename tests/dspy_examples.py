"""Examples of DSPy with one answer each, and the metric that compares it."""

import dspy


def build_devset(size):
    return [dspy.Example(question=f"q{n:04d}", answer=str(n % 3)).with_inputs("question") for n in range(size)]


def exact(example, prediction, trace=None):
    return example.answer == prediction.answer
