"""From a spec to an optimization that can begin: which questions teach, which choose, and what it may cost.

No exam teaches and chooses or is tested, and no question is shown again in other words. It asks no model;
`medexam optimize SPEC --plan` prints what this finds.
"""

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast, get_args

import dspy
from dspy.teleprompt import BetterTogether
from dspy.teleprompt.bootstrap_finetune import FinetuneTeleprompter
from dspy.teleprompt.teleprompt import Teleprompter

from medexam.datasets import load_exam_set
from medexam.errors import EngineError, SpecError
from medexam.experiments.optimize.optimization import Optimization, OptimizationFolder
from medexam.experiments.plan.cells import PlannedCell
from medexam.experiments.plan.leakage import check_apart, check_demonstrations, digest_golds, near_duplicates
from medexam.experiments.plan.lookup import nearest_identity
from medexam.experiments.plan.planner import name_model, plan_experiment, resolve_cells
from medexam.plugins import hash_source, load_object
from medexam.programs import AskingProgram
from medexam.programs.asking import AnsweringProgram
from medexam.programs.own import OwnProgram
from medexam.questions import ExamSet, Question
from medexam.serve.build import known_model
from medexam.specs import CellSpec
from medexam.specs.base import OPTIMIZERS, OWN_METRICS, short_name
from medexam.specs.experiment import OptimizerSpec
from medexam.specs.identity import digest
from medexam.specs.programs.needs import MODULE, Metric, OptimizerKind

GIVEN = ("trainset", "valset", "seed", "max_demos", "prompt_model", "reflection_lm")
"""What an optimizer that is named by its class is given, beside a metric, where it takes it."""
_OTHERWISE = {"max_calls", "max_tokens", "train", "validation", "encoder", "prompt_model"}
"""Fields of the spec that are its budget, or name what stands in the identity by its content."""


@dataclass(frozen=True)
class OptimizationPlan:
    """An optimization, ready to begin or to continue."""

    optimization: Optimization
    """What is asked for, without what was tried before."""
    train: ExamSet
    validation: PlannedCell
    """The program, as it is written, over the questions that candidates are chosen by."""
    calls: Mapping[str, int | None]
    """`calls_per_trial`: of a program that is asked every validation question. `most_calls`: of trials and
    bootstrapping; `least_calls` instead where it is known only afterwards how often a module or a model asks."""

    @property
    def program(self) -> AskingProgram:
        """The program as it is written."""
        return cast("AskingProgram", self.validation.program)


def plan_optimization(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    runs_dir: Path,
    fresh: bool = False,
    only_look: bool = False,
) -> OptimizationPlan:
    """Plan what optimizing `document` under `overrides` would do.

    `fresh` starts another optimization beside one that exists; `only_look` makes a plan that is not carried out. Raises
    `SpecError` without exactly one cell and an optimizer, where exams overlap, or where the budget is too small.
    """
    experiment, cells = resolve_cells(document, overrides, only_look=only_look)
    if (optimizer := experiment.optimizer) is None:
        raise SpecError(
            "the spec has no optimizer: add `optimizer: {kind: random_search}`, or --set optimizer.kind=random_search"
        )
    if len(cells) != 1:
        raise SpecError(f"the matrix makes {len(cells)} programs, and one is optimized at a time: choose it with --set")
    (cell,) = cells
    if optimizer.prompt_model is not None:
        writer = name_model(optimizer.prompt_model, only_look=only_look) if optimizer.writes_instructions else None
        optimizer = optimizer.model_copy(update={"prompt_model": None if writer == cell.model else writer})
    _check_fit(cell, optimizer)
    tested, train = load_exam_set(cell.dataset), load_exam_set(cell.dataset.part(optimizer.train))
    dataset = cell.dataset.part(optimizer.validation).model_dump(mode="json")
    document = {**cell.model_dump(mode="json"), "dataset": dataset}
    validation = plan_experiment(document, {}, runs_dir=runs_dir / "trials", only_look=only_look).runs[0]
    # What can be optimized asks a model, and answers exams.
    validation_set, program = cast("ExamSet", validation.question_set), cast("AskingProgram", validation.program)
    check_apart({"optimizer.train": train, "optimizer.validation": validation_set, "dataset": tested})
    near = near_duplicates(train.questions, [*validation_set.questions, *tested.questions])
    dropped = {question.key for question in near}
    train = replace(train, questions=tuple(one for one in train.questions if one.key not in dropped))
    if not train.questions:
        raise SpecError("optimizer.train: every question is nearly one that is tested; choose other exams")
    check_demonstrations(cell.program, program, tested.questions)
    if optimizer.is_class:
        lm = dspy.LM("medexam/run")
        arguments = dict.fromkeys(GIVEN, lm) | {"metric": lambda *_: 0.0}
        with dspy.context(lm=lm):
            make_optimizer(optimizer, load_object(optimizer.kind, OPTIMIZERS), arguments)
    if optimizer.metric == "log_probability":
        for _, module in program.named_sub_modules(AnsweringProgram):
            module.weighs = True
    identity = {
        **validation.identity,
        "optimizer": _identity(optimizer, only_look=only_look),
        # Optimizers sample candidates at temperatures of their own.
        "seed": cell.model.seed,
        "train": digest_golds(train),
        "validation": digest_golds(validation_set),
    }
    words = [cell.name, short_name(optimizer.kind), cell.model.label, cell.program.label, cell.dataset.language]
    trial, most = _count_calls(program, optimizer, validation_set.questions, train.questions)
    candidates = max(count for count, calls in most.items() if calls <= (optimizer.max_calls or calls))
    optimization = Optimization(
        work=OptimizationFolder.last_or_new(words, digest(identity), runs_dir, fresh=fresh),
        cell=cell,
        optimizer=optimizer,
        description=experiment.description,
        identity=identity,
        train=len(train.questions),
        validation=len(validation_set.questions),
        tested=len(tested.questions),
        dropped=tuple(sorted(dropped)),
        candidates=candidates,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    asks_again = any(part.may_ask_again for _, part in program.named_sub_modules(OwnProgram))
    bound, other = ("least", "most") if optimizer.writes_instructions or asks_again else ("most", "least")
    calls = {"calls_per_trial": trial, f"{bound}_calls": most[candidates], f"{other}_calls": None}
    return OptimizationPlan(optimization, train, validation, calls)


def _check_fit(cell: CellSpec, optimizer: OptimizerSpec) -> None:
    asking, flow = cell.program.asking, cell.program.flow
    repeats = flow and flow.sole and asking.votes
    refusals = {
        "shows no demonstrations and has no instructions to optimize: choose zero_shot, few_shot, chain_of_thought, "
        "retrieve_then_answer, signature or a module of your own": not asking.optimizable,
        "asks several models, and an optimizer asks one: leave model out of its steps": bool(cell.asked_models),
        "asks each question several times, and an optimizer asks once: leave samples and orders out, and set them when "
        "you run the program with program.load": repeats,
        "shows pictures, which an optimizer's demonstrations do not have: set program.images to hidden": bool(
            asking.pictures
        ),
    }
    for refusal, is_due in refusals.items():
        if is_due:
            raise SpecError(f"program {cell.program.label} {refusal}")
    # A solved question says nothing of what predictors are asked.
    left_out = ("labeled", "knn", "log_probability") if asking.saved_as.get("kind") == MODULE else ()
    for name, every in (("kind", OptimizerKind), ("metric", Metric)):
        value, choices = getattr(optimizer, name), [one for one in get_args(every) if one not in left_out]
        if value not in choices and ":" not in value:
            raise SpecError(f"optimizer.{name} {value} is not for {cell.program.label}: choose {', '.join(choices)}")
    if optimizer.metric == "log_probability" and not asking.engine_needs.guided:
        raise SpecError(
            "optimizer.metric log_probability reads the options' probabilities: set program.answer_format=guided"
        )


def make_optimizer(
    optimizer: OptimizerSpec, make: Any, given: Mapping[str, Any]
) -> tuple[Teleprompter, dict[str, Any]]:
    """Make an optimizer of a class with what it takes of `given`; return it with the arguments of its `compile`."""
    kind = optimizer.kind
    if not (isinstance(make, type) and issubclass(make, Teleprompter)):
        raise SpecError(f"optimizer.kind {kind} is not a subclass of dspy.teleprompt.Teleprompter")
    takes = inspect.signature(cast("Any", make).compile).parameters
    if issubclass(make, FinetuneTeleprompter | BetterTogether):
        raise SpecError(f"optimizer.kind {kind} trains the model's weights, which no program.json holds")
    if not {"student", "trainset"} <= takes.keys():
        raise SpecError(
            f"optimizer.kind {kind} does not compile a student from a trainset (it takes {', '.join([*takes][1:])}): "
            "choose knn for the nearest demonstrations, or another"
        )
    parameters = inspect.signature(make).parameters
    hands_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    made_with = {name: value for name, value in given.items() if name in parameters or (hands_on and name == "metric")}
    called_with = {name: value for name, value in given.items() if name in takes}
    for name, value in optimizer.args.items():
        (called_with if name in takes and name not in parameters else made_with)[name] = value
    try:
        return make(**made_with), called_with
    except Exception as error:
        raise SpecError(f"optimizer.kind {kind}: making it failed: {type(error).__name__}: {error}") from error


def _identity(optimizer: OptimizerSpec, *, only_look: bool) -> dict[str, Any]:
    """Return what the trials depend on; models and encoders by what they are. The questions stand beside it."""
    identity = optimizer.model_dump(mode="json", exclude=_OTHERWISE)
    for field, group in {"kind": OPTIMIZERS, "metric": OWN_METRICS}.items():
        if ":" in identity[field]:
            identity[field] = hash_source(identity[field], group)
    if optimizer.kind == "knn":
        identity["nearest"] = nearest_identity(optimizer.demos, optimizer.encoder)
    if (writer := optimizer.prompt_model) is not None:
        with suppress(*[EngineError] * only_look):
            identity["prompt_model"] = known_model(writer)
        identity["prompt_sampling"] = writer.model_dump(mode="json", include={"temperature", "max_tokens", "seed"})
    return identity


def _count_calls(
    program: AskingProgram, optimizer: OptimizerSpec, validation: Sequence[Question], train: Sequence[Question]
) -> tuple[int, dict[int, int]]:
    """Return the calls of a trial, and by how many programs are tried the most that trials and bootstrapping take."""
    trial, once = sum(map(program.calls_for, validation)), max(map(program.calls_for, train))
    predictors, rounds = len(program.predictors()), optimizer.rounds if optimizer.kind == "copro" else 1
    if optimizer.kind == "copro" and predictors > 1:
        # Each round tries all instructions of the rounds before again, for one predictor after the other.
        rounds = predictors * rounds * (rounds + 1) // 2
    tries = optimizer.kind in ("bootstrap", "random_search", "mipro")  # replies of the model as demonstrations
    attempt = min(optimizer.attempts, len(train)) * once if tries else 0
    most = {count: count * rounds * trial + (count - 1) * attempt for count in range(2, optimizer.programs + 1)}
    if optimizer.max_calls is not None and most[2] > optimizer.max_calls:
        raise SpecError(
            f"optimizer.max_calls {optimizer.max_calls} is too small for one round: the program as written and one "
            f"candidate take up to {most[2]} calls; raise it, or lower optimizer.validation.limit or optimizer.attempts"
        )
    return trial, most
