"""From what a user asks for to what is still to be translated; it reads data sets and folders and asks no model."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from medexam.companions.serving.launch.profile import with_profile
from medexam.companions.translation.folder import RECORD, Role, StoredReply, TranslationFolder
from medexam.companions.translation.layout import QuestionText, render_layout, text_of
from medexam.companions.translation.program import SETUPS, SetupWords, Translate, load_setups
from medexam.toolkit.asking import known_model, with_served_name
from medexam.toolkit.data import ExamSet, load_exam_set
from medexam.toolkit.errors import RunFolderError, SpecError
from medexam.toolkit.runs import as_asked_before
from medexam.toolkit.specs import IDENTITY_SCHEMA, DatasetSpec, ModelSpec, Spec, differing_keys, digest, validate

_EARLIER = "an earlier version made it, whose identity covers less, so nobody knows whether the same model would reply"


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
class TranslationTask:
    """Texts to be translated in the words of one set-up, and the replies that are there."""

    name: str
    """Of its file of replies: the set-up, and a digest of what a reply depends on."""
    words: SetupWords
    program: Translate
    role: Role
    model: ModelSpec
    """The one that answers it."""
    digest: str
    sources: Mapping[str, QuestionText]
    """By key."""
    replies: Mapping[str, StoredReply]
    """By key; failed ones and those to other texts are not among them."""

    @property
    def pending(self) -> tuple[QuestionText, ...]:
        """Texts without a reply, in order."""
        return tuple(source for key, source in self.sources.items() if key not in self.replies)


@dataclass(frozen=True)
class TranslationPlan:
    """A translation, ready to be carried out or looked at."""

    spec: TranslationSpec
    exam_set: ExamSet
    tasks: tuple[TranslationTask, ...]
    """One for each set-up, in the order in which they were named."""
    folder: TranslationFolder
    identity: Mapping[str, Any]
    """What the folder holds replies for."""
    goes_on: bool = True
    """Whether replies may still be asked for; not in a folder that an earlier version made."""

    @property
    def sources(self) -> dict[str, QuestionText]:
        """The texts to be translated, by key."""
        return {question.key: text_of(question) for question in self.exam_set.questions}

    @property
    def pending(self) -> int:
        """Replies still to be asked for."""
        return sum(len(task.pending) for task in self.tasks)

    def record(self) -> dict[str, Any]:
        """Build what `translation.json` holds."""
        return {
            "schema": IDENTITY_SCHEMA,
            "spec": self.spec.model_dump(mode="json"),
            "identity": dict(self.identity),
            "dataset_source": self.exam_set.source,
            "dataset_fingerprint": self.exam_set.fingerprint,
            "setups": {task.words.setup: {"digest": task.digest, **task.words.to_json()} for task in self.tasks},
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
            raise SpecError(f"--set {path}: the command line says it already; leave out --set {path}")
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
    exam_set = load_exam_set(spec.dataset)
    source = spec.dataset.language
    words = load_setups(spec.setups, source, spec.target, spec.words)
    identity = _identity(spec, exam_set)
    folder = TranslationFolder(out) if out is not None else _folder(spec, identity, runs_dir)
    if folder.exists():
        record = folder.read_json(RECORD)
        if record.get("schema") != IDENTITY_SCHEMA:
            raise RunFolderError(f"{folder.path} cannot continue: {_EARLIER}; translate into another folder with --out")
        if changes := differing_keys(identity, record.get("identity", {})):
            raise RunFolderError(
                f"{folder.path} holds another translation (it differs in {', '.join(changes)}); choose another folder "
                "with --out"
            )
    plan = TranslationPlan(spec, exam_set, (), folder, identity)
    tasks = tuple(
        plan_task(plan, setup_words.setup, setup_words, plan.sources, data=identity["dataset"]) for setup_words in words
    )
    return replace(plan, tasks=tasks)


def load_plan(path: Path) -> TranslationPlan:
    """Plan the translation that the folder at `path` holds, as it was last asked for.

    One that an earlier version made is read and not continued. Raises `RunFolderError` if there is none,
    `DatasetError` if its data cannot be read or have changed.
    """
    folder = TranslationFolder(path)
    record = folder.read_json(RECORD)
    spec = validate(TranslationSpec, as_asked_before(record.get("spec")))
    if record.get("schema") == IDENTITY_SCHEMA:
        return plan_translation(spec, runs_dir=path.parent, out=path)
    plan = TranslationPlan(spec, load_exam_set(spec.dataset), (), folder, record["identity"], goes_on=False)
    words = load_setups(spec.setups, spec.dataset.language, spec.target, spec.words)
    digests = {name: setup["digest"] for name, setup in record["setups"].items()}
    return replace(
        plan,
        tasks=tuple(
            _task(plan, setup_words.setup, digests[setup_words.setup], setup_words, plan.sources)
            for setup_words in words
        ),
    )


def check_goes_on(plan: TranslationPlan) -> None:
    """Raise `RunFolderError` where no further reply may be asked for."""
    if not plan.goes_on:
        raise RunFolderError(
            f"{plan.folder.path} cannot continue: {_EARLIER}; leave out what asks (--no-back), or translate into "
            "another folder with --out"
        )


def plan_task(
    plan: TranslationPlan,
    name: str,
    words: SetupWords,
    sources: Mapping[str, QuestionText],
    *,
    data: Mapping[str, Any],
) -> TranslationTask:
    """Plan what to ask the plan's model for these texts in these words; `data` is what else the texts depend on."""
    role = plan.spec.role(words)
    task_digest = digest({"words": words.to_json(), role: plan.identity[role], "data": dict(data)})
    return _task(plan, name, task_digest, words, sources)


def _task(
    plan: TranslationPlan, name: str, task_digest: str, words: SetupWords, sources: Mapping[str, QuestionText]
) -> TranslationTask:
    file = f"{name}-{task_digest}"
    replies = {
        key: reply
        for key, reply in plan.folder.read_replies(file).items()
        if reply.failure is None and key in sources and reply.source == text_digest(sources[key])
    }
    role = plan.spec.role(words)
    model = plan.spec.model_of(role)
    program = Translate(words, model.max_tokens, plain=role == "base")
    return TranslationTask(file, words, program, role, model, task_digest, dict(sources), replies)


def text_digest(text: QuestionText) -> str:
    """Hash what the model is shown: twelve hexadecimal digits of its SHA-256."""
    return hashlib.sha256(render_layout(text).encode()).hexdigest()[:12]


def keys_of(tasks: Sequence[TranslationTask]) -> list[str]:
    """List the keys that every one of `tasks` has a reply to, in the order of the first."""
    return [key for key in tasks[0].sources if all(key in task.replies for task in tasks)]


def _identity(spec: TranslationSpec, exam_set: ExamSet) -> dict[str, Any]:
    """Build what a folder holds replies for; it also holds a wider selection and other set-ups."""
    return {
        "dataset": {
            "name": exam_set.name,
            "language": exam_set.language,
            "fingerprint": exam_set.fingerprint,
        },
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
