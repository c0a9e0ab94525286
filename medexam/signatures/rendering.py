"""A question as the model reads it: the stem, then each option behind its printed number (the paper's figure 5).

Passages stand before it, a blank line apart.
"""

from medexam.questions import Question


def render_question(question: Question) -> str:
    """Render the text of a question; every program shows it in these words.

    Excitatory postsynaptic potentials:
    1. Are all-or-none.
    2. Are hyperpolarizing.
    """
    return question.printed


def put_passages_before(passages: str | None, question_text: str) -> str:
    """Return the question's text, behind passages if there are any."""
    return f"{passages}\n\n{question_text}" if passages else question_text
