"""From what a user asks for to what is still to be translated; it reads data sets and folders and asks no model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field

from medexam import Prediction
from medexam.datasets import load_exam_set
from medexam.errors import RunFolderError, SpecError
from medexam.experiments import AnyCell, Plan, plan_experiment
from medexam.predictions import Status
from medexam.questions import ExamSet
from medexam.serve import known_model, with_profile, with_served_name
from medexam.specs import IDENTITY_SCHEMA, DatasetSpec, ModelSpec, Spec, differing_keys, validate
from medexam_companions.translation.benchmark import add_texts, dataset_part, judge_task
from medexam_companions.translation.folder import RECORD, Role, TranslationFolder
from medexam_companions.translation.layout import QuestionText, source_key, text_of
from medexam_companions.translation.program import PROGRAM, REPLY_TOKENS, SETUPS, SetupWords, load_setups
from medexam_companions.translation.validity import TranslationCandidate

FORWARD = "translate"
"""The name of the runs of the way there."""
WAYS_OUT = "or translate into another folder with --out DIR"


class TranslationSpec(Spec):
    """What is translated by which model."""

    dataset: DatasetSpec
    """Its language is that of the source."""
    target: str
    """A code, or the name of a language that the words have no code for."""
    setups: tuple[str, ...] = Field(default=SETUPS, min_length=1)
    model: ModelSpec = ModelSpec()
    base: ModelSpec | None = None
    """A model without a chat template that continues the set-ups without a system message, as the paper's base model
    does; None: `model` answers all set-ups in dialogues."""
    words: Path | None = None
    """A file with words of one's own; None takes the shipped ones."""

    def role(self, words: SetupWords) -> Role:
        """Return which model answers in these words."""
        return "base" if self.base is not None and words.system is None else "model"

    def model_of(self, role: Role) -> ModelSpec:
        """Return the model of a role."""
        return self.base if role == "base" and self.base is not None else self.model


@dataclass(frozen=True)
class SetupRun:
    """The run that asks for texts in the words of one set-up."""

    words: SetupWords
    role: Role
    cell: AnyCell

    @cached_property
    def predictions(self) -> dict[str, Prediction]:
        """The reply to each of its texts that has one, by question; failed ones are pending."""
        predictions = self.cell.folder.read_predictions()
        return {
            source_key(task.key): prediction
            for task in self.cell.question_set.questions
            if (prediction := predictions.get(task.key)) is not None and prediction.status is not Status.FAILED
        }

    @cached_property
    def candidates(self) -> dict[str, TranslationCandidate]:
        """What each reply made of its question, by question in the order of the texts."""
        tasks = {source_key(task.key): task for task in self.cell.question_set.questions}
        return {key: judge_task(self.words.setup, tasks[key], reply) for key, reply in self.predictions.items()}


@dataclass(frozen=True)
class TranslationPlan:
    """A translation, ready to be carried out or looked at."""

    spec: TranslationSpec
    exam_set: ExamSet
    runs: Plan
    """The runs of its set-ups, as every command plans runs."""
    setups: tuple[SetupRun, ...]
    """One for each set-up, in the order in which they were named."""
    folder: TranslationFolder
    identity: Mapping[str, Any]
    """What the folder holds replies for."""

    @property
    def sources(self) -> dict[str, QuestionText]:
        """The texts to be translated, by key."""
        return {question.key: text_of(question) for question in self.exam_set.questions}

    @property
    def pending(self) -> int:
        """Replies still to be asked for."""
        return sum(len(setup.cell.pending) for setup in self.setups)

    def record(self) -> dict[str, Any]:
        """Build what `translation.json` holds."""
        return {
            "schema": IDENTITY_SCHEMA,
            "spec": self.spec.model_dump(mode="json"),
            "identity": dict(self.identity),
            "dataset_source": self.exam_set.source,
            "dataset_fingerprint": self.exam_set.fingerprint,
            "setups": {run.words.setup: run.words.to_json() for run in self.setups},
            "questions": list(self.sources),
        }


def build_spec(settings: Mapping[str, Any], **parts: Any) -> TranslationSpec:
    """Build a spec of `parts` under `--set` settings with dotted keys; its model gets its profile's and server's name.

    Raises `SpecError` naming the key that is wrong, and `EngineError` where a server does not tell its model.
    """
    tree: dict[str, Any] = {name: dict(part) if isinstance(part, Mapping) else part for name, part in parts.items()}
    for path, value in settings.items():
        part, _, key = path.partition(".")
        if part not in ("model", "base", "dataset") or not key or "." in key:
            raise SpecError(f"--set {path}: only keys of model, base and dataset may be set, such as model.engine=vllm")
        if tree.setdefault(part, {}).get(key) is not None:
            raise SpecError(f"--set {path}: another flag sets this key; leave out --set {path}")
        tree[part][key] = value
    spec = validate(TranslationSpec, tree)
    models = {"model": spec.model, "base": spec.base}
    resolved_models = {
        name: with_served_name(with_profile(model)) for name, model in models.items() if model is not None
    }
    return spec.model_copy(update=resolved_models)


def plan_translation(spec: TranslationSpec, *, runs_dir: Path, out: Path | None = None) -> TranslationPlan:
    """Plan what translating as `spec` says would do: an existing folder is continued.

    `out` None: the folder of `runs_dir` that holds the same translation, else one named after data set, languages and
    model. Raises `SpecError`, `DatasetError`, `EngineError` where the model is not there, or `RunFolderError` where the
    folder holds the translation of something else.
    """
    exam_set, source = load_exam_set(spec.dataset), spec.dataset.language
    words = load_setups(spec.setups, source, spec.target, spec.words)
    identity = _identity(spec, exam_set)
    folder = TranslationFolder(out) if out is not None else _folder(spec, identity, runs_dir)
    if folder.exists() and (changes := differing_keys(identity, folder.read_record().get("identity", {}))):
        raise RunFolderError(
            f"{folder.path} holds another translation (it differs in {', '.join(changes)}); choose another folder "
            "with --out"
        )
    keys = add_texts(folder.path, [text_of(question) for question in exam_set.questions], source)
    runs, setups = plan_runs(spec, folder, FORWARD, source, keys, words)
    return TranslationPlan(spec, exam_set, runs, setups, folder, identity)


def load_plan(path: Path) -> TranslationPlan:
    """Plan the translation that the folder at `path` holds, as it was last asked for.

    Raises `RunFolderError` if there is none, `DatasetError` if its data cannot be read or have changed.
    """
    spec = validate(TranslationSpec, TranslationFolder(path).read_record().get("spec") or {})
    return plan_translation(spec, runs_dir=path.parent, out=path)


def plan_runs(
    spec: TranslationSpec,
    folder: TranslationFolder,
    name: str,
    language: str,
    keys: Sequence[str],
    setups: Sequence[SetupWords],
) -> tuple[Plan, tuple[SetupRun, ...]]:
    """Plan a run called `name` for each set-up, on the texts with these keys as items."""
    cells = []
    for words in setups:
        plain, model = spec.role(words) == "base", spec.model_of(spec.role(words))
        setup_words = words.to_json() | ({"plain": True} if plain else {})
        program = {"kind": PROGRAM, "args": {"setup": words.setup, "words": setup_words}, "plain": plain}
        budget = {"max_tokens": model.max_tokens or REPLY_TOKENS}
        cells.append({"program": program, "model": model.model_dump(mode="json") | budget})
    dataset = dataset_part(folder.path, language)
    document = {"name": name, "dataset": dataset, "trace_questions": 0, "matrix": {"cells": cells}}
    plan = plan_experiment(document, {}, runs_dir=folder.replies)
    runs = tuple(
        SetupRun(words, spec.role(words), replace(cell, question_set=cell.question_set.only(keys)).updated())
        for cell, words in zip(plan.cells, setups, strict=True)
    )
    return replace(plan, cells=tuple(run.cell for run in runs)), runs


def _identity(spec: TranslationSpec, exam_set: ExamSet) -> dict[str, Any]:
    """Build what a folder holds replies for; it also holds a wider selection and other set-ups."""
    return {
        "dataset": {"name": exam_set.name, "language": exam_set.language, "fingerprint": exam_set.fingerprint},
        "target": spec.target,
        "model": _model(spec.model),
        **({"base": _model(spec.base)} if spec.base is not None else {}),
    }


def _model(model: ModelSpec) -> dict[str, Any]:
    """Build what of a model a reply depends on; where it lies or listens is no part of that."""
    return {
        **known_model(model),
        "temperature": model.temperature,
        "max_tokens": model.max_tokens,
        "seed": model.seed if model.temperature else None,
    }


def _folder(spec: TranslationSpec, identity: Mapping[str, Any], runs_dir: Path) -> TranslationFolder:
    """Find the folder in `runs_dir` of the same translation, whatever its name; the usual name if there is none."""
    for path in sorted(runs_dir.glob("translate-*")):
        folder = TranslationFolder(path)
        if folder.exists():
            record = folder.read_json(RECORD)
            if record.get("schema") == IDENTITY_SCHEMA and record.get("identity") == identity:
                return folder
    models = [model.label for model in (spec.base, spec.model) if model is not None]
    words = ["translate", spec.dataset.name, spec.dataset.language, spec.target, *models]
    return TranslationFolder(runs_dir / re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(words)))
