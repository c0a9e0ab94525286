"""From a spec to an optimization that can begin: which questions teach, which choose, and what it may cost.

It asks no model. `medexam optimize SPEC --plan` prints what this finds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dspy

from medexam.datasets import load_exam_set
from medexam.errors import EngineError, RunFolderError, SpecError
from medexam.experiments.optimize.folder import PROGRAMS, RECORD, OptimizationFolder
from medexam.experiments.plan.cells import ExamCell
from medexam.experiments.plan.leakage import near_duplicates
from medexam.experiments.plan.nearest_demonstrations import nearest_identity
from medexam.experiments.plan.planner import plan_experiment
from medexam.experiments.plan.resolve import resolve_cells, resolve_optimizer
from medexam.experiments.store.work_folder import folders_of, name_part
from medexam.items import ExamSet
from medexam.programs import ExamProgram
from medexam.questions import Exam, Question
from medexam.serve.naming import known_model
from medexam.specs import CellSpec, ModelSpec, OptimizerSpec, ReplySpec
from medexam.specs.identity import IDENTITY_SCHEMA, differences, digest
from medexam.specs.validation import validate

_BUDGET = {"max_calls", "max_tokens", "max_minutes"}
_BY_CONTENT = {"train", "validation", "encoder", "prompt_model"}
"""What an optimizer's spec names; what is meant by it stands in the identity."""


@dataclass(frozen=True)
class OptimizationPlan:
    """An optimization, ready to begin or to go on."""

    cell: CellSpec
    """The program as it is written, and the tested questions."""
    program: ReplySpec
    optimizer: OptimizerSpec
    description: str
    validation: ExamCell
    """The program over the questions that candidates are chosen by."""
    train: ExamSet
    """The questions that may be shown."""
    tested: int
    """Questions that the program is for; none of them is asked or shown."""
    dropped: tuple[str, ...]
    """Keys of training questions that are nearly tested or validation questions; never shown."""
    identity: dict[str, Any]
    folder: OptimizationFolder
    candidates: int
    """Programs that the budget allows, the one as written included."""

    @property
    def wanted(self) -> int:
        """Programs that the spec asks for, whatever the budget allows."""
        return self.optimizer.programs

    @property
    def trial_calls(self) -> int:
        """Calls of the model that one trial takes."""
        program = self.validation.program
        assert isinstance(program, ExamProgram)  # noqa: S101 - only such programs are planned
        return sum(program.calls_for(question) for question in self.validation.question_set.questions)

    @property
    def most_calls(self) -> int:
        """Calls that trials and bootstrapping take at most; writing instructions takes more."""
        return self.calls_for(self.candidates)

    def calls_for(self, candidates: int) -> int:
        """The same for so many candidates."""
        return _most_calls(self.optimizer, candidates, self.trial_calls, self.attempt_calls)

    @property
    def prompt_model(self) -> ModelSpec | None:
        """The model that writes instructions; None where none are written, or the model that answers writes them."""
        return _prompt_model(self.optimizer, self.cell.model)

    @property
    def attempt_calls(self) -> int:
        """Calls that one candidate's search for demonstrations takes at most."""
        return _attempt_calls(self.optimizer, self.validation, self.train)


def plan_optimization(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    runs_dir: Path,
    fresh: bool = False,
    only_look: bool = False,
) -> OptimizationPlan:
    """What optimizing `document` under `overrides` would do.

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


def plan_resumed(folder: OptimizationFolder, changes: Mapping[str, Any]) -> OptimizationPlan:
    """What going on with one optimization would do; `changes` are overrides of its budget.

    Raises `RunFolderError` where what it depends on is not what it was, or something else shall be changed.
    """
    record = folder.read_json(RECORD)
    beyond = [key for key in changes if key not in {f"optimizer.{name}" for name in _BUDGET}]
    if beyond:
        raise RunFolderError(
            f"{folder.name} goes on under its own spec, and only its budget may change (optimizer.max_calls, "
            f"max_tokens, max_minutes): leave out {beyond[0]}, or optimize the spec anew"
        )
    if record.get("schema") != IDENTITY_SCHEMA:
        raise RunFolderError(
            f"{folder.name} cannot go on: an earlier version made it, whose identity covers less, so nobody knows "
            "whether the same models would answer; program.load takes it as it is; optimize its spec to start anew"
        )
    try:
        cell = validate(CellSpec, record["cell"])
        budget = {key.removeprefix("optimizer."): value for key, value in changes.items()}
        optimizer = validate(OptimizerSpec, {**record["optimizer"], **budget})
        description, known = record["description"], record["identity"]
    except (KeyError, TypeError, SpecError) as error:
        raise RunFolderError(f"{folder.path / RECORD} is not of this version: {error}; optimize again") from None
    plan = _plan(cell, optimizer, description, folder.path.parent, at=folder)
    if plan.identity != known:
        keys = ", ".join(differences(plan.identity, known))
        raise RunFolderError(
            f"{folder.name} cannot go on: what it depends on has changed ({keys}); restore it, or optimize its spec "
            "to start one of it as it is now"
        )
    return plan


def _plan(
    cell: CellSpec,
    optimizer: OptimizerSpec,
    description: str,
    runs_dir: Path,
    *,
    fresh: bool = False,
    only_look: bool = False,
    at: OptimizationFolder | None = None,
) -> OptimizationPlan:
    if not isinstance(cell.program, ReplySpec):
        raise SpecError(
            f"program.kind {cell.program.kind!r} shows no demonstrations and has no instructions to optimize; choose "
            "zero_shot, few_shot, chain_of_thought or retrieve_then_answer"
        )
    if optimizer.metric == "log_probability" and cell.program.answer_format != "guided":
        raise SpecError(
            "optimizer.metric log_probability reads the options' probabilities, which a free reply does not tell: set "
            "program.answer_format=guided, or choose accuracy or exam_score"
        )
    tested = load_exam_set(cell.dataset)
    train = load_exam_set(optimizer.train.of(cell.dataset))
    chosen = optimizer.validation.of(cell.dataset)
    validation = load_exam_set(chosen)
    _check_apart({"optimizer.train": train, "optimizer.validation": validation, "dataset": tested})
    near = near_duplicates(train.questions, [*validation.questions, *tested.questions])
    dropped = {question.key for question in near}
    train = _without(train, dropped)
    document = {**cell.model_dump(mode="json"), "dataset": chosen.model_dump(mode="json")}
    planned = plan_experiment(document, {}, runs_dir=runs_dir / PROGRAMS, only_look=only_look).cells[0]
    if optimizer.metric == "log_probability":
        for program in _programs(planned.program):
            program.adapter.weighs = True
    known = {
        **planned.identity,
        "optimizer": _identity(optimizer, cell.model, only_look=only_look),
        # Optimizers sample candidates at temperatures of their own.
        "seed": cell.model.seed,
        "readings": cell.program.readings,
        "train": _digest_golds(train),
        "validation": _digest_golds(validation),
    }
    return OptimizationPlan(
        cell=cell,
        program=cell.program,
        optimizer=optimizer,
        description=description,
        validation=planned,
        train=train,
        tested=len(tested.questions),
        dropped=tuple(sorted(dropped)),
        identity=known,
        folder=at or _folder(cell, optimizer, known, runs_dir, fresh),
        candidates=_affordable(optimizer, planned, train),
    )


def _identity(optimizer: OptimizerSpec, model: ModelSpec, *, only_look: bool) -> dict[str, Any]:
    """What is tried depends on it; models and encoders by what they are. The questions stand beside it."""
    known = optimizer.model_dump(mode="json", exclude=_BUDGET | _BY_CONTENT)
    if optimizer.kind == "knn":
        known["nearest"] = nearest_identity(optimizer.demos, optimizer.encoder)
    writer = _prompt_model(optimizer, model)
    if writer is not None:
        try:
            known["prompt_model"] = known_model(writer)
        except EngineError:
            if not only_look:
                raise
        known["prompt_sampling"] = writer.model_dump(mode="json", include={"temperature", "max_tokens", "seed"})
    return known


def _prompt_model(optimizer: OptimizerSpec, model: ModelSpec) -> ModelSpec | None:
    writer = optimizer.prompt_model
    return writer if optimizer.writes_instructions and writer != model else None


def _digest_golds(exam_set: ExamSet) -> str:
    """A digest of the questions and of the golds that teach or choose."""
    return digest({"golds": [[question.key, exam_set.golds[question.key].number] for question in exam_set.questions]})


def _programs(program: dspy.Module) -> list[ExamProgram]:
    return [module for _, module in program.named_sub_modules(ExamProgram)]


def _check_apart(sets: Mapping[str, ExamSet]) -> None:
    """Raises `SpecError` where an exam stands in two of the sets."""
    seen: dict[Exam, str] = {}
    for name, exam_set in sets.items():
        for exam in {question.exam for question in exam_set.questions}:
            other = seen.setdefault(exam, name)
            if other != name:
                held = exam.name if exam.year is None else f"{exam.discipline} {exam.year}"
                raise SpecError(
                    f"{other} and {name} both hold questions of {held}: an exam teaches, "
                    "chooses or is tested; give each its own years or split, such as train, dev and test"
                )


def _without(exam_set: ExamSet, keys: set[str]) -> ExamSet:
    kept: tuple[Question, ...] = tuple(question for question in exam_set.questions if question.key not in keys)
    if not kept:
        raise SpecError("optimizer.train: every question is nearly one that is tested; choose other exams")
    return replace(exam_set, questions=kept)


def _attempt_calls(optimizer: OptimizerSpec, validation: ExamCell, train: ExamSet) -> int:
    if not optimizer.bootstraps:
        return 0
    program = validation.program
    assert isinstance(program, ExamProgram)  # noqa: S101 - only such programs are planned
    most = max(program.calls_for(question) for question in train.questions)
    return most * min(optimizer.attempts, len(train.questions))


def _most_calls(optimizer: OptimizerSpec, candidates: int, trial: int, attempt: int) -> int:
    return candidates * optimizer.asked_rounds * trial + (candidates - 1) * attempt


def _affordable(optimizer: OptimizerSpec, validation: ExamCell, train: ExamSet) -> int:
    """The candidates that the calls allow; raises `SpecError` where those are less than two."""
    wanted = optimizer.programs
    if optimizer.max_calls is None:
        return wanted
    program = validation.program
    assert isinstance(program, ExamProgram)  # noqa: S101 - only such programs are planned
    trial = sum(program.calls_for(question) for question in validation.question_set.questions)
    attempt = _attempt_calls(optimizer, validation, train)
    fitting = [c for c in range(2, wanted + 1) if _most_calls(optimizer, c, trial, attempt) <= optimizer.max_calls]
    if not fitting:
        least = _most_calls(optimizer, 2, trial, attempt)
        raise SpecError(
            f"optimizer.max_calls {optimizer.max_calls} is too small for one round: the program as written and one "
            f"candidate take up to {least} calls; raise it, or ask less with optimizer.validation.limit or "
            "optimizer.attempts"
        )
    return fitting[-1]


def _folder(
    cell: CellSpec, optimizer: OptimizerSpec, known: dict[str, Any], runs_dir: Path, fresh: bool
) -> OptimizationFolder:
    """The last optimization of this identity, whatever it is called; a new name where there is none, or `fresh`."""
    folders = {
        number: OptimizationFolder(path) for number, path in folders_of(cell.name, digest(known), runs_dir).items()
    }
    found = {number: folder for number, folder in folders.items() if folder.exists()}
    if found and not fresh:
        return found[max(found)]
    words = [cell.name, optimizer.kind, cell.model.label, cell.program.label, cell.dataset.language, digest(known)]
    name = "-".join(map(name_part, words))
    return OptimizationFolder(runs_dir / (f"{name}-{max(found) + 1}" if found else name))
