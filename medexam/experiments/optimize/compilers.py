"""Which of DSPy's optimizers a spec means, and how it is called.

Each function runs in a thread and asks through the evaluator and the language models that DSPy was given; what is
tried is what the evaluator has seen. Nothing of an optimizer is written anew here.
"""

import contextlib
import io
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

import dspy
from dspy.teleprompt import (
    COPRO,
    GEPA,
    BootstrapFewShot,
    BootstrapFewShotWithRandomSearch,
    LabeledFewShot,
    MIPROv2,
)

from medexam.errors import EngineError, MedExamError
from medexam.experiments.optimize.call_log import Purpose, calling_for
from medexam.experiments.optimize.evaluator import Evaluator, evaluating_here
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.programs import ExamProgram, WithNearest
from medexam.specs import OptimizerSpec
from medexam.specs.optimizer import OptimizerKind

AS_WRITTEN = "as written"
BOOTSTRAPPING = "bootstrapping"
INSTRUCTIONS = "instructions"
_NEVER = 10**9
"""Failed training questions after which DSPy would give up: each is one demonstration less, and no more."""


@dataclass(frozen=True)
class Materials:
    """What an optimizer works with."""

    program: ExamProgram
    spec: OptimizerSpec
    train: Sequence[dspy.Example]
    """Questions with `answer`, their right option."""
    validation: Sequence[dspy.Example]
    reasons: bool
    """Whether the program's replies reason, so that an answer alone is no demonstration of them."""
    evaluator: Evaluator
    prompt_lm: dspy.LM
    """Writes instructions."""

    @property
    def labeled(self) -> int:
        """Demonstrations without a reply of the model that may fill a prompt up."""
        return 0 if self.reasons else self.spec.demos

    def sample(self, number: int) -> list[dspy.Example]:
        """The training questions that a candidate may try."""
        return random.Random(f"{self.spec.seed}:{number}").sample(  # noqa: S311 - no secret
            list(self.train), min(self.spec.attempts, len(self.train))
        )


def is_right(example: dspy.Example, said: Any, trace: Any = None) -> bool:  # noqa: ARG001 - DSPy passes it
    """Whether a reply led to the right answer, so that it may be shown."""
    return bool(said.answer == example.answer)


def compile_program(materials: Materials) -> None:
    """Try what the optimizer proposes, and beside that the program as written.

    Raises `StoppedError` where the budget ends it and `EngineError` where the models do not answer.
    """
    with evaluating_here(), contextlib.redirect_stdout(io.StringIO()):
        _beside_each_other([partial(_as_written, materials), partial(_COMPILERS[materials.spec.kind], materials)])


def _as_written(m: Materials) -> None:
    with m.evaluator.trying(AS_WRITTEN, 0):
        m.evaluator.evaluate(m.program, m.validation)


def _labeled(m: Materials) -> None:
    with m.evaluator.trying("labeled", 1):
        m.evaluator.evaluate(LabeledFewShot(k=m.spec.demos).compile(m.program, trainset=m.sample(0)), m.validation)


def _knn(m: Materials) -> None:
    finder = NearestDemonstrations(m.train, m.spec.demos, m.spec.encoder)
    finder.fill([example.question for example in m.validation])
    program = m.program.reset_copy()
    for predictor in program.predictors():
        predictor.demos = list(m.train)
    with m.evaluator.trying("knn", 1):
        m.evaluator.evaluate(WithNearest(program, finder), m.validation)


def _bootstrap(m: Materials) -> None:
    optimizer = BootstrapFewShot(
        metric=is_right, max_bootstrapped_demos=m.spec.demos, max_labeled_demos=m.labeled, max_errors=_NEVER
    )
    with calling_for(Purpose(BOOTSTRAPPING)):
        program = optimizer.compile(m.program, trainset=m.sample(0))
    with m.evaluator.trying("bootstrap", 1):
        m.evaluator.evaluate(program, m.validation)


def _random_search(m: Materials) -> None:
    """All candidates beside each other: DSPy makes and scores the one of each seed in a thread of its own."""
    seeds = range(-2 if m.labeled else -1, m.spec.candidates)[: m.spec.candidates - 1]

    def search(number: int, seed: int) -> None:
        optimizer = BootstrapFewShotWithRandomSearch(
            metric=is_right,
            max_bootstrapped_demos=m.spec.demos,
            max_labeled_demos=m.labeled,
            num_candidate_programs=m.spec.candidates,
            max_errors=_NEVER,
        )
        with m.evaluator.trying(_seed_name(seed), number), calling_for(Purpose(BOOTSTRAPPING)):
            optimizer.compile(m.program, trainset=m.sample(max(0, seed)), valset=list(m.validation), restrict=[seed])

    _beside_each_other([partial(search, number, seed) for number, seed in enumerate(seeds, start=1)])


def _mipro(m: Materials) -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MedExamError("optimizer.kind 'mipro' needs optuna: pip install 'medexam[optimize]'") from None
    optimizer = MIPROv2(
        metric=is_right,
        prompt_model=m.prompt_lm,
        auto=None,
        num_candidates=max(2, m.spec.candidates // 2),
        max_bootstrapped_demos=m.spec.demos,
        max_labeled_demos=m.labeled,
        max_errors=_NEVER,
        seed=m.spec.seed,
    )
    with m.evaluator.trying("mipro"), calling_for(Purpose(INSTRUCTIONS)), _writing_instructions():
        optimizer.compile(
            m.program,
            trainset=m.sample(0),
            valset=list(m.validation),
            num_trials=m.spec.candidates - 1,
            minibatch=False,
            program_aware_proposer=False,
        )


def _copro(m: Materials) -> None:
    optimizer = COPRO(metric=is_right, prompt_model=m.prompt_lm, breadth=m.spec.candidates, depth=m.spec.rounds)
    with m.evaluator.trying("copro"), calling_for(Purpose(INSTRUCTIONS)), _writing_instructions():
        optimizer.compile(m.program, trainset=list(m.validation), eval_kwargs={})


def _gepa(m: Materials) -> None:
    optimizer = GEPA(
        metric=_with_feedback,
        max_metric_calls=m.spec.candidates * len(m.validation),
        reflection_lm=m.prompt_lm,
        seed=m.spec.seed,
    )
    with m.evaluator.trying("gepa"), calling_for(Purpose(INSTRUCTIONS)), _writing_instructions():
        optimizer.compile(m.program, trainset=m.sample(0), valset=list(m.validation))


_COMPILERS: dict[OptimizerKind, Callable[[Materials], None]] = {
    "labeled": _labeled,
    "knn": _knn,
    "bootstrap": _bootstrap,
    "random_search": _random_search,
    "mipro": _mipro,
    "copro": _copro,
    "gepa": _gepa,
}


def _with_feedback(
    example: dspy.Example,
    said: Any,
    trace: Any = None,  # noqa: ARG001
    pred_name: Any = None,  # noqa: ARG001
    pred_trace: Any = None,  # noqa: ARG001
) -> dspy.Prediction:
    """What GEPA's reflection reads of an answer."""
    options = {option.number: option.text for option in example.question.options}
    right = f"The right answer is {example.answer}: {options[example.answer]}"
    if said.answer == example.answer:
        return dspy.Prediction(score=1.0, feedback=f"Right. {right}")
    what = f"answered {said.answer}" if said.answer is not None else "gave no answer in the format that is asked for"
    return dspy.Prediction(score=0.0, feedback=f"Wrong: the reply {what}. {right}")


def _seed_name(seed: int) -> str:
    return {-2: "labeled", -1: "bootstrap"}.get(seed, f"random {seed}")


def _beside_each_other(work: Sequence[Callable[[], None]]) -> None:
    """Do each in a thread of its own; the first error is raised when all have ended."""
    with ThreadPoolExecutor(max_workers=len(work), thread_name_prefix="candidate") as pool:
        futures: list[Future[None]] = [pool.submit(copy_context().run, one) for one in work]
        wait(futures)
    for future in futures:
        future.result()


@contextmanager
def _writing_instructions() -> Iterator[None]:
    """A model that cannot write instructions in DSPy's format is an error of the spec's, told in one line."""
    from dspy.utils.exceptions import AdapterParseError

    try:
        yield
    except AdapterParseError as error:
        raise EngineError(
            f"the model that writes instructions does not keep to their format ({str(error).splitlines()[0]}); "
            "name a larger one as optimizer.prompt_model, or choose optimizer.kind=random_search"
        ) from None
