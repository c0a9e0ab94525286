"""A stored run as one value: what was asked for, what really ran, and how it scored.

Reports, MLflow and `--json` are all made from this. It reads a run folder and computes nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from pydantic import ValidationError

from medexam.errors import RunFolderError
from medexam.experiments.store.environment import (
    AnswererCount,
    are_mixed,
    compute_costs,
    count_answerers,
    describe_answerers,
    read_models,
)
from medexam.experiments.store.run_folder import METRICS, RunFolder, RunRecord
from medexam.measures import Benchmark, Metrics
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.model_identity import ModelIdentity
from medexam.predictions import Prediction
from medexam.specs.base import describe_faults, short_name
from medexam.specs.experiment import is_entry

RUNNING = "running"
"""Begins the note of a run that another process is asking."""
_BOUNDARIES = {
    **dict.fromkeys(("LMTransportError", "LMTimeoutError"), "network"),
    **dict.fromkeys(("LMProviderError", "LMServerError", "LMRateLimitError"), "server"),
    **dict.fromkeys(("LMBillingError", "LMInvalidRequestError"), "server"),
}
"""Class of an error -> where it came from; `client` for all others."""


@dataclass(frozen=True)
class StoredRun:
    """One run, read from its folder."""

    folder: RunFolder
    record: RunRecord
    metrics: Metrics
    environment: dict[str, Any]
    """What really ran; empty where the run stopped before it was known."""
    failures: tuple[dict[str, Any], ...]
    """The faults that left selected questions unscored, the commonest kind first, as `count_failures` gives them."""
    note: str | None = None
    """What a reader should know of how the scores were made."""
    model_print: str = ""
    """The print of its model, where another model of the same name stands beside it."""

    @cached_property
    def answerers(self) -> tuple[AnswererCount, ...]:
        """Which models gave how many of the selected questions' answers, as `count_answerers` gives them."""
        return count_answerers(self.folder, self.record)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the results should know; usually empty."""
        return self.record.warnings if self.note is None else (*self.record.warnings, self.note)

    @property
    def program(self) -> str:
        """The program's short name."""
        return self.record.cell.program.label

    @property
    def model(self) -> str | None:
        """The model's name, behind which its print tells it from another one of this name; None for a control."""
        return f"{self.model_name} ({self.model_print})" if self.model_print else self.model_name

    @property
    def model_name(self) -> str | None:
        """The short name of the model that really ran, or of all with their answers; None for a control."""
        cell = self.record.cell
        if not cell.program.asks_model:
            return getattr(cell.program, "answered_by", None)
        if self.mixed:
            return describe_answerers(self.answerers)
        model_name: str = (self.environment.get("engine") or {}).get("model", "")
        return model_name.rsplit("/", 1)[-1] or cell.model.label

    @property
    def title(self) -> str:
        """Program, model, data set and language, for headings and MLflow."""
        return " · ".join(part for part in (self.program, self.model, self.record.cell.dataset.label) if part)

    @property
    def benchmark(self) -> Benchmark[Any, Any]:
        """What scored the run and shows its scores."""
        return find_stored_benchmark(self.record.cell.dataset, in_words=self.metrics.right is None)

    @property
    def costs(self) -> dict[str, Any] | None:
        """What the run took, as `compute_costs` gives it; None for a control, which asks no model."""
        return None if self.model is None else compute_costs(self.metrics, self.environment)

    @property
    def mixed(self) -> bool:
        """Whether the answers are, or may be, of more than one model, so that the scores are of none."""
        return are_mixed(self.answerers)

    @property
    def score(self) -> float | None:
        """The first measure, such as the accuracy, a fraction of 1; None if nothing is scored."""
        return next((measure.value for measure in self.metrics.measures.values()), None)

    @property
    def complete(self) -> bool:
        """Whether every selected question is scored."""
        return self.metrics.complete

    @property
    def running(self) -> bool:
        """Whether another process asks its questions now, as far as `current_run` saw."""
        return self.note is not None and self.note.startswith(RUNNING)

    @property
    def status(self) -> Literal["complete", "incomplete"]:
        """`incomplete` while a selected question is failed or missing."""
        return "complete" if self.complete else "incomplete"

    def document(self) -> dict[str, Any]:
        """Return the run's entry in the list that `--json` prints, JSON-ready."""
        record = self.record
        return {
            "run_id": record.run_id,
            "run_dir": str(self.folder.path.resolve()),
            "spec_digest": record.spec_digest,
            "dataset": record.cell.dataset.name,
            "language": record.cell.dataset.language,
            "program": self.program,
            "model": self.model_name,
            "answered_by": [answerer._asdict() for answerer in self.answerers],
            "mixed": self.mixed,
            "status": self.status,
            "warnings": list(self.warnings),
            "failures": list(self.failures),
            "costs": self.costs,
            "metrics": self.metrics.model_dump(mode="json"),
        }


def stored_metrics(folder: RunFolder) -> Metrics:
    """Read the scores in `folder`, fresh or not; raises `RunFolderError` when it holds none that can be read."""
    try:
        return Metrics.model_validate(folder.read_json(METRICS))
    except ValidationError as error:
        raise RunFolderError(
            f"{folder.path / METRICS} holds no metrics of this version ({describe_faults(error)}); run its spec "
            "again; answered questions are not asked again"
        ) from None


def stored_run(folder: RunFolder, metrics: Metrics | None = None, record: RunRecord | None = None) -> StoredRun:
    """Build the run in `folder` under `metrics`; None: those that it holds, fresh or not: `current_run` knows."""
    record, metrics = record or folder.read_record(), metrics or stored_metrics(folder)
    unscored = [
        f"metric {short_name(name)} is not scored: `medexam report --rescore {folder.path}` runs its code"
        for name in record.cell.metrics
        if not any(is_entry(entry, name) for entry in metrics.own)
    ]
    environment = folder.read_environment()
    engine_warnings = ((environment.get("engine") or {}).get("details") or {}).get("warnings") or ()
    record = replace(record, warnings=(*record.warnings, *map(str, engine_warnings), *unscored))
    failures = count_failures(folder.read_predictions().values() if metrics.failed else (), set(record.questions))
    return StoredRun(folder, record, metrics, environment, failures)


def tell_models_apart(runs: Sequence[StoredRun]) -> tuple[list[StoredRun], list[str]]:
    """Return the runs, models of one name with their prints, and notes without a full stop on what tells these apart.

    A run whose folder names no model, or that mixes several, has the model's name alone.
    """
    models: dict[str | None, list[ModelIdentity]] = {}
    identities: list[ModelIdentity | None] = []
    for run in runs:
        entries = {} if run.model_name is None or run.mixed else read_models(run.folder)
        identity, others = next((entry.identity for entry in entries.values()), None), models.get(run.model_name, [])
        same = next((other for other in others if identity is None or not other.differences(identity)), identity)
        identities.append(same if identity else None)
        if same is identity and identity is not None:
            models[run.model_name] = [*others, identity]
    notes = [
        f"the model {name} ({other.print}) is not {name} ({first.print}): {'; '.join(first.differences(other))}"
        for name, (first, *rest) in models.items()
        for other in rest
    ]
    return [
        replace(run, model_print=identity.print) if identity and len(models[run.model_name]) > 1 else run
        for run, identity in zip(runs, identities, strict=True)
    ], notes


def count_failures(predictions: Iterable[Prediction], questions: Collection[str]) -> tuple[dict[str, Any], ...]:
    """Count the failures among the `questions`, by key, for each class of error, the commonest first.

    Its `boundary` is `network` (no reply came), `server` (it replied with an error) or `client`; then come its `kind`,
    how many `questions`, and the last message as its `example`.
    """
    failures = [each.failure for each in predictions if each.failure is not None and each.question in questions]
    examples = {failure.kind: " ".join(failure.message.split()) for failure in failures}
    return tuple(
        {"boundary": _BOUNDARIES.get(kind, "client"), "kind": kind, "questions": count, "example": examples[kind]}
        for kind, count in Counter(failure.kind for failure in failures).most_common()
    )
