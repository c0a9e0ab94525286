"""From a spec to an optimization that can begin: which questions teach, which choose, and what it may cost.

No exam teaches and chooses or is tested, and no question is shown again in other words. It asks no model;
`medexam optimize SPEC --plan` prints what this finds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medexam.datasets import load_exam_set
from medexam.errors import EngineError, SpecError
from medexam.experiments.optimize.folder import PROGRAMS, OptimizationFolder
from medexam.experiments.plan.cells import ExamCell
from medexam.experiments.plan.leakage import check_apart, check_demonstrations, digest_golds, near_duplicates
from medexam.experiments.plan.nearest_demonstrations import nearest_identity
from medexam.experiments.plan.planner import plan_experiment
from medexam.experiments.plan.resolve import resolve_cells, resolve_optimizer
from medexam.plugins import hash_source
from medexam.programs import AskingProgram
from medexam.programs.base import ExamProgram
from medexam.programs.own import OwnProgram
from medexam.questions import ExamSet, Question
from medexam.serve.naming import known_model
from medexam.specs import CellSpec, DatasetSpec, ModelSpec, ProgramSpec
from medexam.specs.identity import digest
from medexam.specs.names import OWN_METRICS, short_name
from medexam.specs.optimizer import OPTIMIZERS, OptimizerSpec


@dataclass(frozen=True)
class ExamSplit:
    """The questions of an optimization."""

    train: ExamSet
    """Those that may be shown."""
    validation: ExamSet
    """Those that candidates are chosen by."""
    tested: ExamSet
    """Those that the program is for; none of them is asked or shown."""
    duplicates: tuple[str, ...]
    """Keys of training questions that are nearly tested or validation questions; never shown."""


def load_exam_split(dataset: DatasetSpec, optimizer: OptimizerSpec) -> ExamSplit:
    """Read the questions; raises `SpecError` if two parts share an exam, or none is left to teach."""
    tested = load_exam_set(dataset)
    train = load_exam_set(optimizer.train.of(dataset))
    validation = load_exam_set(optimizer.validation.of(dataset))
    check_apart({"optimizer.train": train, "optimizer.validation": validation, "dataset": tested})
    near = near_duplicates(train.questions, [*validation.questions, *tested.questions])
    duplicates = {question.key for question in near}
    questions = tuple(question for question in train.questions if question.key not in duplicates)
    if not questions:
        raise SpecError("optimizer.train: every question is nearly one that is tested; choose other exams")
    return ExamSplit(replace(train, questions=questions), validation, tested, duplicates=tuple(sorted(duplicates)))


_DESCRIPTIONS = 12
"""Calls by which DSPy's `MIPROv2` describes the training questions, at most."""
_STEP = 3
"""Training questions that DSPy's `GEPA` asks before and after it writes an instruction."""
_BUDGET = {"max_calls", "max_tokens", "max_minutes"}
_BY_CONTENT = {"train", "validation", "encoder", "prompt_model"}
"""What an optimizer's spec names; what is meant by it stands in the identity."""


@dataclass(frozen=True)
class CallEstimate:
    """Calls of the models, none of them repeated."""

    trial: int
    """Of a program that is asked every validation question."""
    attempt: int
    """Of a candidate's search for demonstrations."""
    rounds: int
    """How often each candidate is asked anew."""
    writing: int
    """About how many beside these write all instructions, and of `gepa` try them further; 0 where none are written."""
    is_least: bool
    """Whether more may come: how often a module of the user's own asks, or an optimizer that is named by its class, is
    known when it has."""

    def most(self, candidates: int) -> int:
        """Count the calls of this number of programs at most, the first as it is written; see `is_least`."""
        return candidates * self.rounds * self.trial + (candidates - 1) * self.attempt


@dataclass(frozen=True)
class OptimizationPlan:
    """An optimization, ready to begin or to continue."""

    cell: CellSpec
    """The program as it is written, and the tested questions."""
    spec: ProgramSpec
    """The cell's program."""
    program: AskingProgram
    """The same, built."""
    optimizer: OptimizerSpec
    description: str
    validation: ExamCell
    """The program over the questions that candidates are chosen by."""
    exams: ExamSplit
    identity: dict[str, Any]
    folder: OptimizationFolder
    calls: CallEstimate
    candidates: int
    """Programs that the budget allows, the one as written included."""

    @property
    def most_calls(self) -> int:
        """Calls that trials and bootstrapping take at most; at least where `calls.is_least` says so."""
        return self.calls.most(self.candidates)

    @property
    def prompt_model(self) -> ModelSpec | None:
        """The model that writes instructions; None if none are written, or the model that answers writes them."""
        return _prompt_model(self.optimizer, self.cell.model)


def plan_optimization(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    runs_dir: Path,
    fresh: bool = False,
    only_look: bool = False,
) -> OptimizationPlan:
    """Plan what optimizing `document` under `overrides` would do.

    `fresh` starts another optimization beside one that exists; `only_look` makes a plan that is not carried out, as
    `plan_experiment` does. Raises `SpecError` where the spec has no optimizer or
    more than one cell, where its exams overlap, or where the budget does not allow two trials; `DatasetError` where
    questions cannot be read.
    """
    experiment, cells = resolve_cells(document, overrides, only_look=only_look)
    if experiment.optimizer is None:
        raise SpecError(
            "the spec has no optimizer: add `optimizer: {kind: random_search}`, or --set optimizer.kind=random_search"
        )
    if len(cells) != 1:
        raise SpecError(
            f"the matrix makes {len(cells)} programs, and one is optimized at a time: choose it with --set, such as "
            "--set program.kind=few_shot"
        )
    optimizer = resolve_optimizer(experiment.optimizer, only_look=only_look)
    return _plan(cells[0], optimizer, experiment.description, runs_dir, fresh=fresh, only_look=only_look)


def _plan(
    cell: CellSpec,
    optimizer: OptimizerSpec,
    description: str,
    runs_dir: Path,
    *,
    fresh: bool,
    only_look: bool,
) -> OptimizationPlan:
    _check_fit(cell, optimizer)
    exams = load_exam_split(cell.dataset, optimizer)
    validation_spec = optimizer.validation.of(cell.dataset)
    document = {**cell.model_dump(mode="json"), "dataset": validation_spec.model_dump(mode="json")}
    planned = plan_experiment(document, {}, runs_dir=runs_dir / PROGRAMS, only_look=only_look).cells[0]
    program = planned.program
    assert isinstance(program, AskingProgram)  # noqa: S101 - what can be optimized asks
    check_demonstrations(cell.program, program, exams.tested.questions)
    if optimizer.metric == "log_probability":
        for _, module in program.named_sub_modules(ExamProgram):
            module.adapter.weighs = True
    identity = {
        **planned.identity,
        "optimizer": _identity(optimizer, cell.model, only_look=only_look),
        # Optimizers sample candidates at temperatures of their own.
        "seed": cell.model.seed,
        "train": digest_golds(exams.train),
        "validation": digest_golds(exams.validation),
    }
    words = [cell.name, short_name(optimizer.kind), cell.model.label, cell.program.label, cell.dataset.language]
    calls = _estimate(program, optimizer, exams.validation.questions, exams.train.questions)
    return OptimizationPlan(
        cell=cell,
        spec=cell.program,
        program=program,
        optimizer=optimizer,
        description=description,
        validation=planned,
        exams=exams,
        identity=identity,
        folder=OptimizationFolder.last_or_new(words, digest(identity), runs_dir, fresh=fresh),
        calls=calls,
        candidates=_affordable(optimizer, calls),
    )


def _check_fit(cell: CellSpec, optimizer: OptimizerSpec) -> None:
    """Raise `SpecError` where the program cannot be optimized so."""
    if not cell.program.optimizers:
        raise SpecError(
            f"program.kind {cell.program.kind!r} shows no demonstrations and has no instructions to optimize; choose "
            "zero_shot, few_shot, chain_of_thought, retrieve_then_answer, signature or a module of your own"
        )
    if cell.asked_models:
        raise SpecError(
            f"program {cell.program.label} asks several models, and an optimizer asks one: leave model out of its steps"
        )
    if cell.program.asks_repeatedly:
        raise SpecError(
            f"{cell.program.label} asks each question several times, and an optimizer asks once: leave samples and "
            "orders out, and set them when you run the program with program.load"
        )
    if cell.program.pictures is not None:
        raise SpecError("program.images: an optimizer's demonstrations have no pictures: set it to hidden")
    options = {"kind": cell.program.optimizers, "metric": cell.program.optimized_for}
    for name, value in {"kind": optimizer.kind, "metric": optimizer.metric}.items():
        if value not in options[name] and value not in optimizer.code:
            choices = ", ".join(options[name])
            raise SpecError(f"optimizer.{name} {value} is not for {cell.program.label}: choose {choices}")
    if optimizer.metric == "log_probability" and not cell.program.engine_needs.guided:
        raise SpecError(
            "optimizer.metric log_probability reads the options' probabilities, which a free reply does not have: set "
            "program.answer_format=guided, or choose accuracy or exam_score"
        )


def _identity(optimizer: OptimizerSpec, model: ModelSpec, *, only_look: bool) -> dict[str, Any]:
    """Return what the trials depend on; models and encoders by what they are. The questions stand beside it."""
    identity = optimizer.model_dump(mode="json", exclude=_BUDGET | _BY_CONTENT)
    for field, group in {"kind": OPTIMIZERS, "metric": OWN_METRICS}.items():
        if identity[field] in optimizer.code:
            identity[field] = hash_source(identity[field], group)
    if optimizer.kind == "knn":
        identity["nearest"] = nearest_identity(optimizer.demos, optimizer.encoder)
    writer = _prompt_model(optimizer, model)
    if writer is not None:
        try:
            identity["prompt_model"] = known_model(writer)
        except EngineError:
            if not only_look:
                raise
        identity["prompt_sampling"] = writer.model_dump(mode="json", include={"temperature", "max_tokens", "seed"})
    return identity


def _prompt_model(optimizer: OptimizerSpec, model: ModelSpec) -> ModelSpec | None:
    writer = optimizer.prompt_model
    return writer if optimizer.writes_instructions and writer != model else None


def _estimate(
    program: AskingProgram, optimizer: OptimizerSpec, validation: Sequence[Question], train: Sequence[Question]
) -> CallEstimate:
    attempts = min(optimizer.attempts, len(train))
    trial, once = sum(map(program.calls_for, validation)), max(map(program.calls_for, train))
    predictors, candidates, rounds = len(program.predictors()), optimizer.programs, optimizer.asked_rounds
    if optimizer.kind == "copro" and predictors > 1:
        # Each round tries all instructions of the rounds before again, for one predictor after the other.
        rounds = predictors * rounds * (rounds + 1) // 2
    writing = {
        # The training questions are described by tens, then summed up.
        "mipro": min(_DESCRIPTIONS, math.ceil(attempts / 10) + 1) + predictors * max(2, candidates // 2),
        "copro": predictors * candidates * optimizer.rounds,
        # It ends after the step in which its budget of answers is spent; each step writes one instruction.
        "gepa": math.ceil(candidates * len(validation) / (2 * _STEP)) + trial + 2 * _STEP * once,
    }
    return CallEstimate(
        trial=trial,
        attempt=attempts * once if optimizer.bootstraps else 0,
        rounds=rounds,
        writing=writing.get(optimizer.kind, 0),
        is_least=optimizer.is_class
        or any(isinstance(part, OwnProgram) and part.may_ask_again for _, part in program.named_sub_modules()),
    )


def _affordable(optimizer: OptimizerSpec, calls: CallEstimate) -> int:
    """Count the candidates that the calls allow; raises `SpecError` if those are less than two."""
    program_count, limit = optimizer.programs, optimizer.max_calls
    counts = [count for count in range(2, program_count + 1) if limit is None or calls.most(count) <= limit]
    if not counts:
        raise SpecError(
            f"optimizer.max_calls {limit} is too small for one round: the program as written and one candidate take "
            f"up to {calls.most(2)} calls; raise it, or lower optimizer.validation.limit or optimizer.attempts"
        )
    return counts[-1]
