"""From what a user asks for to what is still to be translated; it reads data sets and folders and asks no model.

The folder of a translation holds `translation.json`, which says what was asked for, `texts.jsonl`, the texts as items,
and `replies/`, a run for each set-up. From them `selection.json`, `quality.json` and the data set are made. Asked
again, it continues where it stopped.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from medexam.datasets import load_exam_set
from medexam.errors import RunFolderError, SpecError
from medexam.experiments import Plan, PlannedCell, WorkFolder, plan_spec
from medexam.predictions import Status
from medexam.questions import ExamSet, Language
from medexam.serve import known_model, with_profile, with_served_name
from medexam.specs import IDENTITY_SCHEMA, DatasetSpec, ModelSpec, Spec, differing_keys, put, validate
from medexam_companions.translation.benchmark import BENCHMARK, judge_task, write_texts
from medexam_companions.translation.layout import QuestionText, source_key, text_of
from medexam_companions.translation.program import PROGRAM, REPLY_TOKENS, SETUPS, SetupWords, load_setups
from medexam_companions.translation.validity import TranslationCandidate

SELECTION = "selection.json"
QUALITY = "quality.json"


class TranslationSpec(Spec):
    """What is translated by which model."""

    dataset: DatasetSpec
    """Its language is that of the source."""
    target: Language
    setups: tuple[str, ...] = Field(default=SETUPS, min_length=1)
    model: ModelSpec = ModelSpec()
    base: ModelSpec | None = None
    """A model without a chat template that continues the set-ups without a system message, as the paper's base model
    does; None: `model` answers all set-ups in dialogues."""
    words: Path | None = None
    """A file with words of one's own; None takes the shipped ones."""


class TranslationFolder(WorkFolder):
    """The files of one translation."""

    kind = "translation"
    record = "translation.json"


@dataclass(frozen=True)
class TranslationPlan:
    """A translation, ready to be carried out or looked at."""

    spec: TranslationSpec
    exam_set: ExamSet
    folder: TranslationFolder
    runs: Plan
    """The runs of its set-ups, in the order in which they were named."""
    identity: Mapping[str, Any]
    """What the folder holds replies for."""

    @property
    def sources(self) -> dict[str, QuestionText]:
        """The texts to be translated, by key."""
        return {question.key: text_of(question) for question in self.exam_set.questions}

    def save(self) -> None:
        """Write what is asked for; raises `RunFolderError` where that is not possible."""
        self.folder.create()
        record = {"spec": self.spec.model_dump(mode="json"), "identity": dict(self.identity)}
        self.folder.write_json(self.folder.record, record)


def build_spec(settings: Mapping[str, Any], **parts: Any) -> TranslationSpec:
    """Build a spec of `parts` under `--set` settings with dotted keys; its model gets its profile's and server's name.

    Raises `SpecError` naming the key that is wrong, and `EngineError` where a server does not tell its model.
    """
    tree: dict[str, Any] = {name: dict(part) if isinstance(part, Mapping) else part for name, part in parts.items()}
    for path, value in settings.items():
        part, _, key = path.partition(".")
        if part not in ("model", "base", "dataset") or not key:
            raise SpecError(f"--set {path}: only keys of model, base and dataset may be set, such as model.engine=vllm")
        if tree.get(part, {}).get(key) is not None:
            raise SpecError(f"--set {path}: another flag sets this key; leave out --set {path}")
        put(tree, path, value)
    spec = validate(TranslationSpec, tree)
    models = {"model": spec.model, "base": spec.base}
    return spec.model_copy(
        update={name: with_served_name(with_profile(model)) for name, model in models.items() if model is not None}
    )


def plan_translation(spec: TranslationSpec, *, runs_dir: Path, out: Path | None = None) -> TranslationPlan:
    """Plan what translating as `spec` says would do: an existing folder is continued.

    `out` None: the folder of `runs_dir` named after data set, languages and model. Raises `SpecError`, `DatasetError`,
    `EngineError` where the model is not there, or `RunFolderError` where the folder holds the translation of something
    else.
    """
    exam_set, source = load_exam_set(spec.dataset), spec.dataset.language
    words = load_setups(spec.setups, source, spec.target, spec.words, plain=spec.base is not None)
    identity = {
        "schema": IDENTITY_SCHEMA,
        "dataset": {"name": exam_set.name, "language": source, "fingerprint": exam_set.fingerprint},
        "target": spec.target,
        "model": _describe(spec.model),
        "base": spec.base and _describe(spec.base),
    }
    models = [model.label for model in (spec.base, spec.model) if model is not None]
    name = "-".join(["translate", spec.dataset.name, source, spec.target, *models])
    folder = TranslationFolder(out or runs_dir / re.sub(r"[^A-Za-z0-9._-]+", "_", name))
    if folder.exists() and (changes := differing_keys(identity, folder.read_json(folder.record).get("identity", {}))):
        raise RunFolderError(
            f"{folder.path} holds another translation (it differs in {', '.join(changes)}); choose another folder "
            "with --out"
        )
    runs = plan_texts(spec, folder.path, "texts", map(text_of, exam_set.questions), source, words)
    return TranslationPlan(spec, exam_set, folder, runs, identity)


def load_plan(path: Path) -> TranslationPlan:
    """Plan the translation that the folder at `path` holds, as it was last asked for.

    Raises `RunFolderError` if there is none, `DatasetError` if its data cannot be read or have changed.
    """
    spec = validate(TranslationSpec, TranslationFolder(path).read_json(TranslationFolder.record).get("spec") or {})
    return plan_translation(spec, runs_dir=path.parent, out=path)


def plan_texts(
    spec: TranslationSpec,
    folder: Path,
    name: str,
    texts: Iterable[QuestionText],
    language: str,
    setups: Mapping[str, SetupWords],
) -> Plan:
    """Plan runs called `name` on texts in a language, one for each set-up; the texts are written as their items."""
    path = folder / f"{name}.jsonl"
    write_texts(path, texts, language)
    cells = []
    for setup, words in setups.items():
        model = spec.base if words.plain and spec.base is not None else spec.model
        args = {"setup": setup, "words": words.model_dump(mode="json")}
        budget = {"max_tokens": model.max_tokens or REPLY_TOKENS}
        cells.append(
            {
                "program": {"kind": PROGRAM, "args": args, "plain": words.plain},
                "model": model.model_dump(mode="json") | budget,
            }
        )
    dataset = {"name": BENCHMARK, "language": language, "path": str(path.absolute())}
    document = {"name": name, "dataset": dataset, "trace_questions": 0, "matrix": {"cells": cells}}
    return plan_spec(document, {}, runs_dir=folder / "replies")


def read_candidates(setup: str, cell: PlannedCell) -> dict[str, TranslationCandidate]:
    """Judge each reply of a set-up's run, by question in the order of the texts; failed ones are pending."""
    predictions = cell.folder.read_predictions()
    return {
        source_key(task.key): judge_task(setup, task, prediction)
        for task in cell.question_set.questions
        if (prediction := predictions.get(task.key)) is not None and prediction.status is not Status.FAILED
    }


def _describe(model: ModelSpec) -> dict[str, Any]:
    """Build what of a model a reply depends on; where it lies or listens is no part of that."""
    return {
        **known_model(model),
        "temperature": model.temperature,
        "max_tokens": model.max_tokens,
        "seed": model.seed if model.temperature else None,
    }
