"""A question as the model reads it: the stem, then each option behind its printed number (the paper's figure 5)."""

from medexam.questions import Question


def render_question(question: Question) -> str:
    """The text of a question; every program shows it in these words.

    Excitatory postsynaptic potentials:
    1. Are all-or-none.
    2. Are hyperpolarizing.
    """
    return "\n".join([question.stem, *(f"{option.number}. {option.text}" for option in question.options)])
