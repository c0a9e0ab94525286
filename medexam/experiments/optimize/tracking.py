"""MLflow receives a copy of an optimization: a parent run with the curve, and below it one run for each trial.

The best program is logged as a model that MLflow can serve, and its words as versions of prompts. The folder stays the
truth: sending it again updates what is there, and whatever happens here, the optimization is complete on disk.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal

from medexam.experiments.optimize.folder import CURVE, DEMONSTRATIONS, PROMPT_MODELS, RECORD, REPORT, TRIALS
from medexam.experiments.optimize.logged_model import log_best_program
from medexam.experiments.optimize.optimization import Optimization, OptimizationEnding
from medexam.experiments.optimize.registered_prompts import register_prompts
from medexam.experiments.optimize.trials import Trial
from medexam.experiments.report.escaping import disarm, paragraphs
from medexam.experiments.store.answerers import MODELS
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.track.copies import (
    PARENT,
    SOURCE,
    Copy,
    create_run,
    dataset_input,
    end_run,
    find_tracked_runs,
    log_values,
    put_copy,
)
from medexam.experiments.track.names import storable_names
from medexam.experiments.track.payload import DIGEST_LENGTH, PARAM_LENGTH, TAG_LENGTH
from medexam.experiments.track.store import experiment_id, open_store
from medexam.plugins import __version__
from medexam.programs.loading import PROGRAM
from medexam.tables import flatten, percent, with_interval

ARTIFACTS = (RECORD, MODELS, PROMPT_MODELS, TRIALS, PROGRAM, DEMONSTRATIONS, REPORT, CURVE)
SEND_LATER = "the optimization is complete on disk; send it later with `medexam track FOLDER`"
TRIAL_METRICS = ("score", "accuracy", "right", "unanswered", "n", "demos", "calls", "tokens")
Context = Literal["training", "validation"]
_BUDGET = ("max_calls", "max_tokens", "max_minutes")
_STATUS = {OptimizationEnding.INTERRUPTED: "KILLED", OptimizationEnding.FAILED: "FAILED"}


def track_optimization(optimization: Optimization, *, tracking_uri: str) -> str:
    """Send an optimization to the MLflow store at `tracking_uri`. Return MLflow's id of its parent run.

    It is known by its id and the time it was begun, a trial by its program's digest besides. Raises `TrackingError`
    when the store cannot be reached or written.
    """
    with open_store(tracking_uri, way_out=SEND_LATER) as client:
        experiment = experiment_id(client, optimization.cell.name, tracking_uri)
        store = _Store(client, experiment, optimization)
        parent = store.put_parent()
        for trial in optimization.trials:
            store.put_trial(trial, parent)
        model_id = log_best_program(client, optimization, parent, experiment)
        register_prompts(client, optimization, parent, experiment)
        store.end(parent, model_id)
    return parent


def best_so_far(optimization: Optimization) -> dict[int, float]:
    """Return the highest score up to each trial, by the trial's number.

    While trials are missing, only as far as there is no gap: MLflow keeps every value of a curve, and one that was
    true for a while would stay in it.
    """
    scores = {trial.number: trial.score for trial in optimization.trials}
    if optimization.ending is not OptimizationEnding.COMPLETE:
        gap = next(number for number in count() if number not in scores)
        scores = {number: score for number, score in scores.items() if number < gap}
    return {
        number: max(score for trial_number, score in scores.items() if trial_number <= number)
        for number in sorted(scores)
    }


@dataclass(frozen=True)
class _Store:
    """One optimization and how it gets into an MLflow experiment."""

    client: Any
    experiment_id: str
    optimization: Optimization

    @property
    def _identity_tags(self) -> dict[str, str]:
        optimization = self.optimization
        return {"medexam.optimization": optimization.folder.name, "medexam.started_at": optimization.started_at}

    @property
    def _began(self) -> int:
        return round(1000 * datetime.fromisoformat(self.optimization.started_at).timestamp())

    @property
    def _ended(self) -> int:
        return self._began + round(1000 * self.optimization.seconds)

    def put_parent(self) -> str:
        """Write the run that stands for the whole optimization: what was asked for, what it cost, and the curve.

        It is updated and not replaced: its trials, its model and its prompts refer to it.
        """
        optimization, client = self.optimization, self.client
        identity_tags = {**self._identity_tags, "medexam.kind": "optimization"}
        runs = find_tracked_runs(client, self.experiment_id, identity_tags)
        run_id = (
            str(runs[0].info.run_id)
            if runs
            else create_run(client, self.experiment_id, f"optimize · {optimization.title}", identity_tags, self._began)
        )
        params = flatten({key: value for key, value in optimization.identity.items() if key != "words"})
        # MLflow never lets a parameter change.
        stored_params = client.get_run(run_id).data.params
        stored = storable_names(params)
        log_values(
            client,
            run_id,
            [*self._sums(), *self._curve()],
            {key: value[:PARAM_LENGTH] for key, value in params.items() if stored[key] not in stored_params},
            {key: value[:TAG_LENGTH] for key, value in {**identity_tags, **self._tags()}.items()},
        )
        contexts: tuple[Context, ...] = ("training", "validation")
        client.log_inputs(run_id, datasets=[dataset_input(self._dataset(context), context) for context in contexts])
        files = [optimization.folder.path / name for name in ARTIFACTS]
        if optimization.best is not None:
            files.append(self._programs(optimization.best) / PREDICTIONS)
        for path in files:
            if path.exists():
                client.log_artifact(run_id, str(path))
        return run_id

    def put_trial(self, trial: Trial, parent: str) -> None:
        """Write one program under its parent. When it was tried is not kept; a millisecond each keeps them in order."""
        optimization, cell, time_ms = self.optimization, self.optimization.cell, self._began + trial.number
        low, high = trial.accuracy_interval
        values = {name: getattr(trial, name) for name in TRIAL_METRICS} | {"accuracy_low": low, "accuracy_high": high}
        copy = Copy(
            name=f"trial {trial.number} · {trial.name}",
            key_tags={**self._identity_tags, "medexam.kind": "trial", "medexam.program_digest": trial.digest},
            began=time_ms,
            ended=time_ms,
            tags={
                PARENT: parent,
                **SOURCE,
                "medexam.trial": str(trial.number),
                "medexam.best": str(trial == optimization.best).lower(),
                "medexam.program": cell.program.label,
                "medexam.model": cell.model.label,
            },
            params={
                "name": trial.name,
                "demos": str(trial.demos),
                "digest": trial.digest,
                "optimizer.kind": optimization.optimizer.kind,
                "program.kind": cell.program.kind,
            },
            metrics=[(name, float(value), 0) for name, value in values.items()],
            dataset=self._dataset("validation"),
            context="validation",
            files=[path for name in (PROGRAM, PREDICTIONS) if (path := self._programs(trial) / name).exists()],
        )
        put_copy(self.client, self.experiment_id, copy)

    def end(self, run_id: str, model_id: str | None) -> None:
        """Close the parent; the best trial's scores belong to the model as well, if there is one."""
        best = self.optimization.best
        if model_id is not None and best is not None:
            from mlflow.entities import Metric

            scores = {"validation_score": best.score, "validation_accuracy": best.accuracy}
            dataset = self._dataset("validation")
            about = {"dataset_name": dataset["name"], "dataset_digest": dataset["digest"], "model_id": model_id}
            self.client.log_batch(
                run_id,
                metrics=[Metric(key, value, self._ended, 0, run_id=run_id, **about) for key, value in scores.items()],
            )
        end_run(self.client, run_id, _STATUS.get(self.optimization.ending, "FINISHED"), self._ended)

    def _sums(self) -> Iterator["_Point"]:
        optimization, best, as_written = self.optimization, self.optimization.best, self.optimization.written
        values: dict[str, float] = {
            "trials": len(optimization.trials),
            "calls": optimization.spent.calls,
            "tokens": optimization.spent.tokens,
            "calls_beside_trials": optimization.beside.calls,
            "seconds": optimization.seconds,
        }
        if best is not None:
            values |= {"best_score": best.score, "best_accuracy": best.accuracy, "best_trial": best.number}
            values["best_accuracy_low"], values["best_accuracy_high"] = best.accuracy_interval
        if as_written is not None:
            values |= {"written_score": as_written.score, "written_accuracy": as_written.accuracy}
        for key, value in values.items():
            yield key, float(value), self._ended, 0

    def _curve(self) -> Iterator["_Point"]:
        """Yield the points, dated by the beginning, which stays: sending a longer curve later adds only what is new."""
        for trial in self.optimization.trials:
            yield "score", trial.score, self._began, trial.number
        for number, score in best_so_far(self.optimization).items():
            yield "best_so_far", score, self._began, number

    def _tags(self) -> dict[str, str]:
        optimization, best = self.optimization, self.optimization.best
        budget = optimization.optimizer.model_dump(mode="json", include=set(_BUDGET))
        dataset = optimization.cell.dataset.model_dump(mode="json")
        return {
            "medexam.status": optimization.ending.value,
            "medexam.why": optimization.why or "",
            "medexam.run_dir": str(optimization.folder.path.resolve()),
            "medexam.program": optimization.cell.program.label,
            "medexam.model": optimization.cell.model.label,
            "medexam.engine": optimization.cell.model.engine,
            "medexam.best": f"trial {best.number}, {best.name}" if best else "",
            "medexam.program_digest": best.digest if best else "",
            "medexam.version": __version__,
            **SOURCE,
            "mlflow.note.content": disarm(
                "\n\n".join(filter(None, (paragraphs(optimization.description), _headline(optimization))))
            ),
            **{f"medexam.{key}": value for key, value in flatten({"optimizer": budget, "tested": dataset}).items()},
        }

    def _dataset(self, context: Context) -> dict[str, str]:
        optimization, dataset, is_training = self.optimization, self.optimization.cell.dataset, context == "training"
        part = optimization.optimizer.train if is_training else optimization.optimizer.validation
        return {
            "name": f"{dataset.name}-{dataset.language}-{context}",
            "digest": str(optimization.identity["train" if is_training else "validation"])[:DIGEST_LENGTH],
            "source": json.dumps({"uri": dataset.name, **part.model_dump(mode="json", exclude_defaults=True)}),
            "profile": json.dumps({"num_rows": optimization.train if is_training else optimization.validation}),
        }

    def _programs(self, trial: Trial) -> Path:
        return self.optimization.folder.programs / trial.digest


_Point = tuple[str, float, int, int]
"""A metric's name, value, time in milliseconds since 1970, and step."""


def _headline(optimization: Optimization) -> str:
    """Describe how the best compares with the program as written, in one line of Markdown."""
    best, as_written = optimization.best, optimization.written
    if best is None or as_written is None:
        return "No trial was completed."
    accuracy = with_interval(f"{percent(best.accuracy)} % right", best.accuracy_interval)
    return (
        f"Best of {len(optimization.trials)}: **{best.name}** (trial {best.number}), {accuracy} of {best.n} "
        f"validation questions; as written {percent(as_written.accuracy)} %. It looks better on these questions than "
        "on others: compare both on the tested questions."
    )
