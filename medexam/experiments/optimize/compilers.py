"""Which of DSPy's optimizers a spec means, and how it is called.

Each function runs in a thread and asks through the evaluator and the language models that DSPy was given; what is
tried is what the evaluator has seen. Nothing of an optimizer is written anew here.
"""

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any

import dspy
from dspy.teleprompt import COPRO, GEPA, BootstrapFewShot, BootstrapFewShotWithRandomSearch, LabeledFewShot, MIPROv2
from dspy.teleprompt.teleprompt import Teleprompter
from dspy.utils.exceptions import AdapterParseError, LMError

from medexam.errors import EngineError, MedExamError, SpecError
from medexam.experiments.optimize.dspy_evaluation import CandidateProgram, evaluating_by
from medexam.experiments.optimize.evaluator import Evaluator
from medexam.experiments.optimize.logged_engine import CallGroup, call_group
from medexam.experiments.optimize.own_metric import gold_of
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.plugins import load_object
from medexam.programs import AskingProgram, build_prediction
from medexam.programs.module_faults import own_place
from medexam.programs.nearest import WithNearest
from medexam.specs.names import short_name
from medexam.specs.optimizer import OPTIMIZERS, OptimizerSpec

AS_WRITTEN = "as written"
BOOTSTRAPPING = "bootstrapping"
INSTRUCTIONS = "instructions"
_NEVER = 10**9
"""Failed training questions after which DSPy would give up: each is one demonstration less, and no more."""


@dataclass(frozen=True)
class OptimizerInputs:
    """What an optimizer works with."""

    program: AskingProgram
    spec: OptimizerSpec
    train: Sequence[dspy.Example]
    """Questions with `answer`, their right option."""
    validation: Sequence[dspy.Example]
    labels: bool
    """Whether a question with its answer alone is a demonstration of what the program asks."""
    evaluator: Evaluator
    prompt_lm: dspy.LM
    """Writes instructions."""

    @property
    def candidate(self) -> CandidateProgram:
        """The program for an optimizer that evaluates by itself what it proposes."""
        return CandidateProgram(self.program)

    @property
    def labeled(self) -> int:
        """Demonstrations without a reply of the model that may fill a prompt up."""
        return self.spec.demos if self.labels else 0

    @property
    def bootstrapping(self) -> dict[str, Any]:
        """What DSPy's optimizers that bootstrap are made with."""
        return {
            "metric": self.metric if self.spec.own_metric else score_answer,
            "max_bootstrapped_demos": self.spec.demos,
            "max_labeled_demos": self.labeled,
            "max_errors": _NEVER,
        }

    def metric(
        self,
        example: dspy.Example,
        prediction: Any,
        trace: Any = None,  # noqa: ARG002 - DSPy's names
        pred_name: Any = None,  # noqa: ARG002
        pred_trace: Any = None,  # noqa: ARG002
    ) -> dspy.Prediction:
        """Return the score of an answer and what is to be said of it, by the spec's metric."""
        if "score" in prediction:
            return _Scored(score=prediction.score, feedback=prediction.get("feedback") or "")
        if self.spec.own_metric is None:
            return _Scored(**_explain(example, prediction))
        kept = build_prediction(example.question, prediction, program="", spec_digest="", latency_s=0.0)
        score = self.evaluator.score(example.question, gold_of(example), kept)
        return _Scored(score=score.score, feedback=score.feedback or "")

    def try_program(self, name: str, number: int | None, program: AskingProgram) -> None:
        """Have a program answer the validation questions, as a trial of this name and number."""
        with self.evaluator.naming(name, number):
            self.evaluator.evaluate(program, self.validation)

    def sample(self, number: int) -> list[dspy.Example]:
        """Draw the training questions that a candidate may try."""
        return random.Random(f"{self.spec.seed}:{number}").sample(  # noqa: S311 - no secret
            list(self.train), min(self.spec.attempts, len(self.train))
        )


def score_answer(example: dspy.Example, prediction: Any, trace: Any = None) -> float:  # noqa: ARG001 - DSPy passes it
    """Return the score of an answer that the evaluator gave; of another, 1 if it is right and may be shown, else 0."""
    return float(prediction.get("score", prediction.answer == example.answer))


def compile_program(inputs: OptimizerInputs) -> None:
    """Try what the optimizer proposes, and beside that the program as written.

    Raises `StoppedError` if the budget ends it and `EngineError` if the models do not answer.
    """
    validation = {example.question.key for example in inputs.validation}
    with evaluating_by(inputs.evaluator.answer, validation):
        as_written = partial(inputs.try_program, AS_WRITTEN, 0, inputs.program)
        compiler = _by_class if inputs.spec.is_class else _COMPILERS[inputs.spec.kind]
        _run_at_once([as_written, partial(compiler, inputs)])


def _labeled(inputs: OptimizerInputs) -> None:
    program = LabeledFewShot(k=inputs.spec.demos).compile(inputs.program, trainset=inputs.sample(0))
    inputs.try_program("labeled", 1, program)


def _knn(inputs: OptimizerInputs) -> None:
    finder = NearestDemonstrations(inputs.train, inputs.spec.demos, inputs.spec.encoder)
    finder.fill([example.question for example in inputs.validation])
    program = inputs.program.reset_copy()
    for predictor in program.predictors():
        predictor.demos = list(inputs.train)
    inputs.try_program("knn", 1, WithNearest(program, finder))


def _bootstrap(inputs: OptimizerInputs) -> None:
    with call_group(CallGroup(BOOTSTRAPPING)):
        program = BootstrapFewShot(**inputs.bootstrapping).compile(inputs.program, trainset=inputs.sample(0))
    inputs.try_program("bootstrap", 1, program)


def _random_search(inputs: OptimizerInputs) -> None:
    """Search all candidates beside each other: DSPy makes and scores the one of each seed in a thread of its own."""
    seeds = range(-2 if inputs.labeled else -1, inputs.spec.candidates)[: inputs.spec.candidates - 1]

    def search(number: int, seed: int) -> None:
        optimizer = BootstrapFewShotWithRandomSearch(
            num_candidate_programs=inputs.spec.candidates, **inputs.bootstrapping
        )
        name = {-2: "labeled", -1: "bootstrap"}.get(seed, f"random {seed}")
        with inputs.evaluator.naming(name, number), call_group(CallGroup(BOOTSTRAPPING)):
            optimizer.compile(
                inputs.candidate, trainset=inputs.sample(max(0, seed)), valset=list(inputs.validation), restrict=[seed]
            )

    _run_at_once([partial(search, number, seed) for number, seed in enumerate(seeds, start=1)])


def _mipro(inputs: OptimizerInputs) -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MedExamError("optimizer.kind 'mipro' needs optuna: pip install 'medexam[optimize]'") from None
    optimizer = MIPROv2(
        prompt_model=inputs.prompt_lm,
        auto=None,
        num_candidates=max(2, inputs.spec.candidates // 2),
        seed=inputs.spec.seed,
        **inputs.bootstrapping,
    )
    with _writing_instructions(inputs):
        optimizer.compile(
            inputs.candidate,
            trainset=inputs.sample(0),
            valset=list(inputs.validation),
            num_trials=inputs.spec.candidates - 1,
            minibatch=False,
            program_aware_proposer=False,
        )


def _copro(inputs: OptimizerInputs) -> None:
    optimizer = COPRO(
        metric=score_answer,  # what the evaluator gave, by whatever metric
        prompt_model=inputs.prompt_lm,
        breadth=inputs.spec.candidates,
        depth=inputs.spec.rounds,
    )
    with _writing_instructions(inputs):
        optimizer.compile(inputs.candidate, trainset=list(inputs.validation), eval_kwargs={})


def _gepa(inputs: OptimizerInputs) -> None:
    optimizer = GEPA(
        metric=inputs.metric if inputs.spec.own_metric else _with_feedback,
        max_metric_calls=inputs.spec.candidates * len(inputs.validation),
        reflection_lm=inputs.prompt_lm,
        seed=inputs.spec.seed,
    )
    with _writing_instructions(inputs):
        optimizer.compile(inputs.candidate, trainset=inputs.sample(0), valset=list(inputs.validation))


def _by_class(inputs: OptimizerInputs) -> None:
    """Have an optimizer that a spec names by its class work as DSPy's do, and try what it returns."""
    kind, name = inputs.spec.kind, short_name(inputs.spec.kind)
    make = load_object(kind, OPTIMIZERS)
    if not (isinstance(make, type) and issubclass(make, Teleprompter)):
        raise SpecError(f"optimizer.kind {kind} is not a subclass of dspy.teleprompt.Teleprompter")
    given = {
        "metric": inputs.metric,
        "seed": inputs.spec.seed,
        "trainset": inputs.sample(0),
        "prompt_model": inputs.prompt_lm,
        "reflection_lm": inputs.prompt_lm,
        # Questions are asked by the evaluator, or here, where threads of DSPy's gain nothing.
        "num_threads": 1,
    }
    with _writing_instructions(inputs):
        try:
            optimizer = make(**_taken(make, given) | inputs.spec.args)
        except Exception as error:
            raise SpecError(f"optimizer.kind {kind}: making it failed: {type(error).__name__}: {error}") from error
        sets = {"trainset": inputs.sample(0), "valset": list(inputs.validation), "seed": inputs.spec.seed}
        try:
            proposal = optimizer.compile(inputs.candidate, **_taken(optimizer.compile, sets))
        except (MedExamError, LMError, AdapterParseError):
            raise
        except Exception as error:
            place = own_place(error, make.__module__.partition(".")[0])
            raise MedExamError(
                f"optimizer.kind {kind}{f', {place}' if place else ''}: {type(error).__name__}: {error}; "
                "`medexam run SPEC --debug` asks the program one question and prints every call"
            ) from error
    inputs.try_program(name, None, getattr(proposal, "program", proposal))


def _taken(call: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return those of the arguments that it names, and the metric if it hands on what it does not name."""
    parameters = inspect.signature(call).parameters
    hands_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return {name: value for name, value in arguments.items() if name in parameters or (hands_on and name == "metric")}


_COMPILERS: dict[str, Callable[[OptimizerInputs], None]] = {
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
    prediction: Any,
    trace: Any = None,  # noqa: ARG001
    pred_name: Any = None,  # noqa: ARG001
    pred_trace: Any = None,  # noqa: ARG001
) -> dspy.Prediction | float:
    """Return what GEPA's reflection reads of an answer; the score alone where the evaluator gave the answer."""
    return prediction.score if "score" in prediction else dspy.Prediction(**_explain(example, prediction))


class _Scored(dspy.Prediction):
    """A score with what is said of it; DSPy's bootstrapping takes whatever counts as true for a success."""

    def __bool__(self) -> bool:
        return float(self) > 0


def _explain(example: dspy.Example, prediction: Any) -> dict[str, Any]:
    """Return 1 for a right answer and 0 for another, with the right option in words."""
    options = {option.number: option.text for option in example.question.options}
    right = f"The right answer is {example.answer}: {options[example.answer]}"
    if prediction.answer == example.answer:
        return {"score": 1.0, "feedback": f"Right. {right}"}
    mistake = (
        f"answered {prediction.answer}"
        if prediction.answer is not None
        else "gave no answer in the format that is asked for"
    )
    return {"score": 0.0, "feedback": f"Wrong: the reply {mistake}. {right}"}


def _run_at_once(work: Sequence[Callable[[], None]]) -> None:
    """Do each in a thread of its own; the first error is raised when all have ended."""
    with ThreadPoolExecutor(max_workers=len(work), thread_name_prefix="candidate") as pool:
        futures: list[Future[None]] = [pool.submit(copy_context().run, task) for task in work]
        wait(futures)
    for future in futures:
        future.result()


@contextmanager
def _writing_instructions(inputs: OptimizerInputs) -> Iterator[None]:
    """Name the trials of the block after the optimizer; raises `EngineError` if the model keeps to no format."""
    try:
        with inputs.evaluator.naming(short_name(inputs.spec.kind)), call_group(CallGroup(INSTRUCTIONS)):
            yield
    except AdapterParseError as error:
        raise EngineError(
            f"the model that writes instructions does not follow their format ({str(error).splitlines()[0]}); "
            "name a larger one as optimizer.prompt_model, or choose optimizer.kind=random_search"
        ) from None
