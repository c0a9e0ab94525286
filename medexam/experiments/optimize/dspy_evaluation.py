"""How DSPy's optimizers have their candidates asked by ours, through what DSPy offers for it.

An optimizer scores a candidate by a `dspy.Evaluate` that it makes itself; none takes another. But `Evaluate` tells
DSPy's callbacks before it calls the candidate with one question after the other. There the evaluator asks all questions
at once, and the candidate then repeats what was answered.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from medexam.library_logging import errors_only, quiet_dspy, without_bars
from medexam.programs import AskingProgram
from medexam.questions import Question

Answers = dict[str, dspy.Prediction]
"""Key of a question -> what was answered, with the `score` that the optimizer is to see."""
Ask = Callable[[AskingProgram, Sequence[dspy.Example]], Answers]
"""Has a program answer questions, and waits."""


class CandidateProgram(dspy.Module):
    """A program as optimizers hold it: they copy it, change its predictors, and call it with one question."""

    def __init__(self, program: AskingProgram) -> None:
        super().__init__()
        self.program = program
        self.answers: Answers = {}
        """What the evaluator has asked for the evaluation that is going on; empty outside one."""

    def forward(self, question: Question) -> dspy.Prediction:
        """Return what is answered already; else, as when demonstrations are bootstrapped, what the program answers."""
        answer = self.answers.get(question.key)
        return self.program(question=question) if answer is None else answer


class EvaluationError(BaseException):
    """Carries the error of an evaluation out of an optimizer.

    No `Exception`: DSPy's callbacks log those and continue, and its optimizers count them as a program that scores 0.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class EvaluationCallback(BaseCallback):
    """Asks a candidate's questions as soon as an `Evaluate` is about to."""

    def __init__(self, ask: Ask, validation: Set[str]) -> None:
        """Ask by `ask`; `validation` holds the keys of the questions that candidates are chosen by."""
        self._ask = ask
        self._validation = validation
        self._evaluated: dict[str, CandidateProgram] = {}
        """DSPy's id of an evaluation -> its candidate."""

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Ask all questions; raises `StoppedError`, or an `EvaluationError` for whatever else goes wrong."""
        candidate = inputs["program"]
        examples = instance.devset if inputs["devset"] is None else inputs["devset"]
        if not isinstance(candidate, CandidateProgram):
            return
        # GEPA replaces `forward` to trace each call for its reflection on a few training questions, which DSPy then
        # asks itself. It does so on the validation questions too, where it reads the scores alone.
        if "forward" in vars(candidate) and {example.question.key for example in examples} != self._validation:
            return
        # Repeating answers needs no threads and no bar.
        instance.num_threads, instance.display_progress = 1, False
        others = [callback for callback in dspy.settings.callbacks if callback is not self]
        try:
            with dspy.context(callbacks=others):
                candidate.answers = self._ask(candidate.program, examples)
        except Exception as error:
            raise EvaluationError(error) from error
        self._evaluated[call_id] = candidate

    def on_evaluate_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:  # noqa: ARG002
        """Forget the answers: optimizers change a candidate and have it evaluated again."""
        if candidate := self._evaluated.pop(call_id, None):
            candidate.answers = {}


@contextmanager
def evaluating_by(ask: Ask, validation: Set[str]) -> Iterator[None]:
    """Have every `Candidate` that DSPy evaluates in the block asked by `ask`, and nothing shown of DSPy's progress.

    Raises what `ask` raised.
    """
    import_module("gepa.core.engine")  # DSPy imports it too late for its bar to be held back
    callbacks = [*dspy.settings.callbacks, EvaluationCallback(ask, validation)]
    try:
        with (
            dspy.context(callbacks=callbacks),
            redirect_stdout(StringIO()),
            errors_only("dspy"),
            quiet_dspy(),
            without_bars("dspy.teleprompt.bootstrap", "gepa.core.engine"),
        ):
            yield
    except EvaluationError as failed:
        raise failed.error from None
