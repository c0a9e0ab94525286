"""MLflow receives a copy of an optimization: a parent run with the curve, and below it one run for each trial.

The best program is logged as a model that MLflow can serve, and its words as versions of prompts. The folder stays the
truth: sending it again updates what is there, and whatever happens here, the optimization is complete on disk.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any, Literal

from medexam import __version__
from medexam.experiments.optimize.folder import CURVE, DEMONSTRATIONS, PROMPT_MODELS, RECORD, REPORT, TRIALS
from medexam.experiments.optimize.logged_model import log_best_program
from medexam.experiments.optimize.optimization import Ending, Optimization
from medexam.experiments.optimize.registered_prompts import register_prompts
from medexam.experiments.optimize.trials import Trial
from medexam.experiments.store.answerers import MODELS
from medexam.experiments.store.run_folder import PREDICTIONS
from medexam.experiments.track.copies import create_run, end_run, find_runs
from medexam.experiments.track.payload import DIGEST_LENGTH, PARAM_LENGTH, TAG_LENGTH
from medexam.experiments.track.store import experiment_id, open_store
from medexam.formatting import flatten
from medexam.programs.loading import PROGRAM

ARTIFACTS = (RECORD, MODELS, PROMPT_MODELS, TRIALS, PROGRAM, DEMONSTRATIONS, REPORT, CURVE)
SEND_LATER = "the optimization is complete on disk; send it later with `medexam track FOLDER`"
_BUDGET = ("max_calls", "max_tokens", "max_minutes")
_STATUS = {Ending.INTERRUPTED: "KILLED", Ending.FAILED: "FAILED"}


def track_optimization(optimization: Optimization, *, tracking_uri: str) -> str:
    """Send an optimization to the MLflow store at `tracking_uri`; MLflow's id of its parent run.

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
    """Number of each trial -> the highest score up to there.

    While trials are missing, only as far as there is no gap: MLflow keeps every value of a curve, and one that was
    true for a while would stay in it.
    """
    scores = {trial.number: trial.score for trial in optimization.trials}
    if optimization.ending is not Ending.COMPLETE:
        whole = next(number for number in count() if number not in scores)
        scores = {number: score for number, score in scores.items() if number < whole}
    return {number: max(score for at, score in scores.items() if at <= number) for number in sorted(scores)}


@dataclass(frozen=True)
class _Store:
    """One optimization and how it gets into an MLflow experiment."""

    client: Any
    experiment_id: str
    optimization: Optimization

    @property
    def _known(self) -> dict[str, str]:
        done = self.optimization
        return {"medexam.optimization": done.folder.name, "medexam.started_at": done.started_at}

    def _find(self, tags: Mapping[str, str]) -> str | None:
        """MLflow's id of the run that carries these tags; None where there is none."""
        found = find_runs(self.client, self.experiment_id, tags)
        return str(found[0].info.run_id) if found else None

    @property
    def _began(self) -> int:
        return round(1000 * datetime.fromisoformat(self.optimization.started_at).timestamp())

    @property
    def _ended(self) -> int:
        return self._began + round(1000 * self.optimization.seconds)

    def put_parent(self) -> str:
        """The run that stands for the whole optimization: what was asked for, what it cost, and the curve."""
        done = self.optimization
        known = {**self._known, "medexam.kind": "optimization"}
        run_id = self._find(known) or create_run(
            self.client, self.experiment_id, f"optimize · {done.title}", known, self._began
        )
        params = {key: value for key, value in done.identity.items() if key != "words"}
        self._log(run_id, flatten(params), {**known, **self._parent_tags()}, [*self._sums(), *self._curve()])
        self.client.log_inputs(run_id, datasets=[self._dataset("training"), self._dataset("validation")])
        for name in ARTIFACTS:
            path = done.folder.path / name
            if path.exists():
                self.client.log_artifact(run_id, str(path))
        if done.best is not None:
            self._send_files(run_id, done.best, PREDICTIONS)
        return run_id

    def put_trial(self, trial: Trial, parent: str) -> None:
        """One program under its parent; when it was tried is not kept, so a millisecond each keeps them in order."""
        done = self.optimization
        known = {**self._known, "medexam.kind": "trial", "medexam.program_digest": trial.digest}
        parentage = {"mlflow.parentRunId": parent}
        name = f"trial {trial.number} · {trial.name}"
        run_id = self._find(known) or create_run(
            self.client, self.experiment_id, name, {**known, **parentage}, self._began + trial.number
        )
        low, high = trial.accuracy_interval
        values = {
            "score": trial.score,
            "accuracy": trial.accuracy,
            "accuracy_low": low,
            "accuracy_high": high,
            "right": trial.right,
            "unanswered": trial.unanswered,
            "n": trial.n,
            "demos": trial.demos,
            "calls": trial.calls,
            "tokens": trial.tokens,
        }
        metrics = [(key, float(value), self._began, 0) for key, value in values.items()]
        tags = {
            **known,
            **parentage,
            "mlflow.runName": name,
            "mlflow.source.name": "medexam",
            "mlflow.source.type": "LOCAL",
            "medexam.trial": str(trial.number),
            "medexam.best": str(trial == done.best).lower(),
            "medexam.program": done.cell.program.label,
            "medexam.model": done.cell.model.label,
        }
        params = {
            "name": trial.name,
            "demos": str(trial.demos),
            "digest": trial.digest,
            "optimizer.kind": done.optimizer.kind,
            "program.kind": done.cell.program.kind,
        }
        self._log(run_id, params, tags, metrics)
        self.client.log_inputs(run_id, datasets=[self._dataset("validation")])
        self._send_files(run_id, trial, PROGRAM, PREDICTIONS)
        end_run(self.client, run_id, "FINISHED", self._began + trial.number)

    def end(self, run_id: str, model_id: str | None) -> None:
        """Close the parent; the best trial's scores belong to the model as well, where there is one."""
        best = self.optimization.best
        if model_id is not None and best is not None:
            from mlflow.entities import Metric

            scores = {"validation_score": best.score, "validation_accuracy": best.accuracy}
            dataset = self._dataset("validation").dataset
            about = {"dataset_name": dataset.name, "dataset_digest": dataset.digest, "model_id": model_id}
            self.client.log_batch(
                run_id,
                metrics=[Metric(key, value, self._ended, 0, run_id=run_id, **about) for key, value in scores.items()],
            )
        end_run(self.client, run_id, _STATUS.get(self.optimization.ending, "FINISHED"), self._ended)

    def _sums(self) -> Iterator["_Point"]:
        done = self.optimization
        values: dict[str, float] = {
            "trials": len(done.trials),
            "calls": done.spent.calls,
            "tokens": done.spent.tokens,
            "calls_beside_trials": done.beside.calls,
            "seconds": done.seconds,
        }
        if done.best is not None:
            low, high = done.best.accuracy_interval
            values |= {
                "best_score": done.best.score,
                "best_accuracy": done.best.accuracy,
                "best_trial": done.best.number,
            }
            values |= {"best_accuracy_low": low, "best_accuracy_high": high}
        written = [trial for trial in done.trials if trial.number == 0]
        if written:
            values |= {"written_score": written[0].score, "written_accuracy": written[0].accuracy}
        for key, value in values.items():
            yield key, float(value), self._ended, 0

    def _curve(self) -> Iterator["_Point"]:
        """Dated by the beginning, which stays, so that sending a longer curve later adds only what is new."""
        for trial in self.optimization.trials:
            yield "score", trial.score, self._began, trial.number
        for number, score in best_so_far(self.optimization).items():
            yield "best_so_far", score, self._began, number

    def _parent_tags(self) -> dict[str, str]:
        done, best = self.optimization, self.optimization.best
        budget = done.optimizer.model_dump(mode="json", include=set(_BUDGET))
        dataset = done.cell.dataset.model_dump(mode="json")
        tags = {
            "medexam.status": done.ending.value,
            "medexam.why": done.why or "",
            "medexam.run_dir": str(done.folder.path.resolve()),
            "medexam.program": done.cell.program.label,
            "medexam.model": done.cell.model.label,
            "medexam.engine": done.cell.model.engine,
            "medexam.best": f"trial {best.number}, {best.name}" if best else "",
            "medexam.program_digest": best.digest if best else "",
            "medexam.version": __version__,
            "mlflow.source.name": "medexam",
            "mlflow.source.type": "LOCAL",
            "mlflow.note.content": "\n\n".join(part for part in (done.description, _headline(done)) if part),
        }
        tags |= {f"medexam.{key}": value for key, value in flatten({"optimizer": budget, "tested": dataset}).items()}
        return {key: value for key, value in tags.items() if value}

    def _log(
        self, run_id: str, params: Mapping[str, str], tags: Mapping[str, str], metrics: Sequence["_Point"]
    ) -> None:
        """One batch; a parameter that is there stays as it is, for MLflow never lets one change."""
        from mlflow.entities import Metric, Param, RunTag

        there = self.client.get_run(run_id).data.params
        self.client.log_batch(
            run_id,
            metrics=[Metric(*point) for point in metrics],
            params=[Param(key, value[:PARAM_LENGTH]) for key, value in params.items() if key not in there],
            tags=[RunTag(key, value[:TAG_LENGTH]) for key, value in tags.items()],
        )

    def _dataset(self, context: Literal["training", "validation"]) -> Any:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        done, chosen = self.optimization, self.optimization.cell.dataset
        teaches = context == "training"
        part = done.optimizer.train if teaches else done.optimizer.validation
        dataset = Dataset(
            name=f"{chosen.name}-{chosen.language}-{context}",
            digest=str(done.identity["train" if teaches else "validation"])[:DIGEST_LENGTH],
            source_type="local",
            source=json.dumps({"uri": chosen.name, **part.model_dump(mode="json", exclude_defaults=True)}),
            profile=json.dumps({"num_rows": done.train if teaches else done.validation}),
        )
        return DatasetInput(dataset, [InputTag("mlflow.data.context", context)])

    def _send_files(self, run_id: str, trial: Trial, *names: str) -> None:
        for name in names:
            path = self.optimization.folder.programs / trial.digest / name
            if path.exists():
                self.client.log_artifact(run_id, str(path))


_Point = tuple[str, float, int, int]
"""A metric's name, value, time in milliseconds since 1970, and step."""


def _headline(done: Optimization) -> str:
    """How the best compares with the program as written, in one line of Markdown."""
    best, written = done.best, next((trial for trial in done.trials if trial.number == 0), None)
    if best is None or written is None:
        return "Nothing was tried to the end."
    low, high = best.accuracy_interval
    return (
        f"Best of {len(done.trials)}: **{best.name}** (trial {best.number}), {100 * best.accuracy:.1f} % right "
        f"[{low * 100:.1f}, {high * 100:.1f}] of {best.n} validation questions; as written "
        f"{100 * written.accuracy:.1f} %. The best of several looks better on these than it is: compare both on the "
        "tested questions."
    )
