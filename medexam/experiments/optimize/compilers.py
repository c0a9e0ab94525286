"""Which of DSPy's optimizers a spec means, and how it is called; nothing of an optimizer is written anew here."""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import redirect_stdout
from contextvars import copy_context
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from typing import Any, cast

import dspy
from dspy.teleprompt import COPRO, GEPA, BootstrapFewShot, BootstrapFewShotWithRandomSearch, LabeledFewShot, MIPROv2
from dspy.utils.exceptions import AdapterParseError, LMError

from medexam.errors import EngineError, MedExamError
from medexam.experiments.optimize.plan import GIVEN, OptimizationPlan, make_optimizer
from medexam.experiments.optimize.scores import score_output
from medexam.experiments.optimize.trials import NAME, Trials
from medexam.experiments.plan.lookup import NearestDemonstrations
from medexam.plugins import load_object
from medexam.process import errors_only, quiet_dspy
from medexam.programs.wrapping import WithNearest
from medexam.specs.base import OPTIMIZERS, short_name

_NEVER = 10**9
"""Failed questions after which DSPy would give up: each counts as a wrong one, and no more."""


def compile_program(plan: OptimizationPlan, trials: Trials, prompt_lm: dspy.LM) -> None:
    """Try the program as written, and what the optimizer proposes; `prompt_lm` writes instructions.

    Raises `StoppedError` if the budget ends it, and `EngineError` if the model that writes keeps to no format.
    """
    import_module("gepa.core.engine")  # DSPy imports it too late for its bar to be held back
    with (
        dspy.context(max_errors=_NEVER, trace=None),
        redirect_stdout(StringIO()),
        errors_only("dspy"),
        quiet_dspy("dspy.teleprompt.bootstrap", "gepa.core.engine"),
    ):
        _run_at_once(
            [partial(trials.try_program, "as written", trials.student), partial(_compile, plan, trials, prompt_lm)]
        )


def _compile(plan: OptimizationPlan, trials: Trials, prompt_lm: dspy.LM) -> None:
    optimization, spec = plan.optimization, plan.optimization.optimizer
    candidates, kind = optimization.candidates, spec.kind
    train = list(trials.train)
    random.Random(spec.seed).shuffle(train)  # noqa: S311 - no secret

    def sample(number: int) -> list[dspy.Example]:
        """Draw the training questions that a candidate may try."""
        return random.Random(f"{spec.seed}:{number}").sample(train, min(spec.attempts, len(train)))  # noqa: S311

    labeled = spec.demos if optimization.cell.program.asking.takes_labels else 0
    arguments: dict[str, Any] = {
        "metric": score_output,
        **dict(zip(GIVEN, (sample(0), trials.validation, spec.seed, spec.demos, prompt_lm, prompt_lm), strict=True)),
    }
    bootstrapping = {
        "metric": score_output,
        "max_bootstrapped_demos": spec.demos,
        "max_labeled_demos": labeled,
        "max_errors": _NEVER,
    }
    if kind == "knn":
        trials.try_program(kind, _show_nearest(plan, trials, train))
        return
    if kind == "random_search":
        seeds = range(-2 if labeled else -1, candidates)[: candidates - 1]

        def search(number: int, seed: int) -> None:
            optimizer = BootstrapFewShotWithRandomSearch(num_candidate_programs=candidates, **bootstrapping)
            name = {-2: "labeled", -1: "bootstrap"}.get(seed, f"random {seed}")
            with dspy.context(**{NAME: (name, number)}):
                optimizer.compile(
                    trials.student, trainset=sample(max(0, seed)), valset=trials.validation, restrict=[seed]
                )

        # DSPy makes and scores the candidate of each seed in a thread of its own.
        _run_at_once([partial(search, number, seed) for number, seed in enumerate(seeds, start=1)])
        return
    ours: dict[str, tuple[type, dict[str, Any]]] = {
        "labeled": (LabeledFewShot, {"k": spec.demos}),
        "bootstrap": (BootstrapFewShot, bootstrapping),
        "mipro": (
            MIPROv2,
            {
                "auto": None,
                "num_candidates": max(2, candidates // 2),
                "num_trials": candidates - 1,
                "minibatch": False,
                "program_aware_proposer": False,
                **bootstrapping,
            },
        ),
        "copro": (
            COPRO,
            {"breadth": candidates, "depth": spec.rounds, "trainset": trials.validation, "eval_kwargs": {}},
        ),
        "gepa": (GEPA, {"max_metric_calls": candidates * len(trials.validation)}),
    }
    if kind == "mipro" and find_spec("optuna") is None:
        raise MedExamError("optimizer.kind 'mipro' needs optuna: pip install 'medexam[optimize]'")
    make, settings = ours[kind] if kind in ours else (load_object(spec.kind, OPTIMIZERS), {})
    optimizer, sets = make_optimizer(spec, make, arguments | settings)
    with dspy.context(**{NAME: (short_name(kind), None)}):
        try:
            proposal = cast("Any", optimizer).compile(trials.student, **sets)
        except AdapterParseError as error:
            raise EngineError(
                f"the model that writes instructions does not follow their format ({str(error).splitlines()[0]}); "
                "name a larger one as optimizer.prompt_model, or choose optimizer.kind=random_search"
            ) from None
        except LMError as error:
            raise EngineError(str(error)) from error
        except MedExamError:
            raise
        except Exception as error:
            raise MedExamError(
                f"optimizer.kind {spec.kind}: {type(error).__name__}: {error}; "
                "`medexam run SPEC --debug` asks the program one question and prints every call"
            ) from error
    trials.try_program(short_name(kind), proposal)


def _show_nearest(plan: OptimizationPlan, trials: Trials, train: Sequence[dspy.Example]) -> dspy.Module:
    """Return the program with the training questions that are nearest to each question as its demonstrations."""
    spec = plan.optimization.optimizer
    finder = NearestDemonstrations(train, spec.demos, spec.encoder)
    program: Any = plan.program.reset_copy()
    for predictor in program.predictors():
        predictor.demos = list(train)
    return trials.watch(WithNearest(program, finder))


def _run_at_once(work: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(max_workers=len(work), thread_name_prefix="candidate") as pool:
        futures = [pool.submit(copy_context().run, task) for task in work]
        wait(futures)
    for future in futures:
        future.result()
