"""A run that answers in words: for the hub, and as lm-evaluation-harness writes a task that generates.

A sample's score is each measure that is a mean over questions. Questions that failed or are pending are left out.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from medexam import Prediction, __version__
from medexam.errors import SpecError
from medexam.experiments import AnyRun, load_items
from medexam.files import file_name, write_whole
from medexam.metrics import AuditItem
from medexam.predictions import Status
from medexam.questions import Task, TaskSet
from medexam.specs import CellSpec

_COUNTS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True)
class ExportedWords:
    """A run with the questions that it answers in words."""

    run: AnyRun
    items: TaskSet
    answers: tuple[tuple[Task, Prediction], ...]
    """In the order of the questions."""
    scores: Mapping[str, AuditItem]
    """Key of a question -> the scores of its answer; a question without a reply has none."""

    @classmethod
    def read(cls, run: AnyRun) -> "ExportedWords":
        """Read a run's answers and questions; raises `SpecError` if there is none yet, and as `load_items` does."""
        items = load_items(run.folder)
        predictions = run.folder.read_predictions()
        answers = tuple(
            (task, predictions[task.key])
            for task in items.questions
            if task.key in predictions and predictions[task.key].status is not Status.FAILED
        )
        if not answers:
            raise SpecError(f"{run.folder.name} has no answer yet, so there is nothing to export: run its spec first")
        scored = run.benchmark.audit_items(run.folder.name, items, predictions)
        return cls(run, items, answers, {answer.key: answer for answer in scored})

    @property
    def cell(self) -> CellSpec:
        """What was asked for."""
        return self.run.record.cell

    @property
    def model(self) -> str:
        """The model that answered; `medexam/PROGRAM` if none was asked."""
        return self.run.model or f"medexam/{self.run.program}"

    @property
    def accuracy(self) -> float | None:
        """The first measure of the run, 0 to 1; None if nothing is scored."""
        metrics: Any = self.run.metrics
        first = next(iter(metrics.measures.values()), None)
        return None if first is None else first.value

    @property
    def ended_at(self) -> str:
        """When the run was last asked, in ISO 8601 with its time zone."""
        return str(self.run.environment.get("ended_at") or "1970-01-01T00:00:00+00:00")

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each answer, as `words_schema` names its columns."""
        fields = ("text", "reply", "rationale", "alignment", *_COUNTS, "latency_s", "program")
        for task, prediction in self.answers:
            scored, gold = self.scores.get(task.key), self.items.golds[task.key]
            # Where a wrong answer is shown, what is expected is its explanation.
            explanation = [text for text in (*gold.incorrect_step, gold.incorrect_explanation) if text]
            yield {
                **{name: getattr(prediction, name) for name in fields},
                "key": task.key,
                "group": task.group,
                "question": task.question,
                "context": task.context,
                "options": list(task.options),
                "given_answer": task.given_answer,
                "given_reasoning": list(task.given_reasoning),
                "language": task.language,
                "gold": explanation if task.given_answer else list(gold.answers),
                "gold_components": [asdict(component) for component in gold.components],
                "start": None if prediction.span is None else prediction.span[0],
                "end": None if prediction.span is None else prediction.span[1],
                "outputs": None if prediction.outputs is None else json.dumps(prediction.outputs, ensure_ascii=False),
                "scores": list((scored.scores if scored else {}).items()),
                "status": prediction.status.value,
                "reason": prediction.reason.value if prediction.reason else None,
                "model": self.run.model,
            }


def words_schema() -> Any:
    """Return the columns of a run in words, for the hub."""
    texts = ("key", "group", "question", "context", "given_answer", "language", "text", "reply", "rationale")
    types = dict.fromkeys((*texts, "alignment", "outputs", "status", "reason", "program", "model"), pa.string())
    types |= dict.fromkeys(("options", "given_reasoning", "gold"), pa.list_(pa.string()))
    component = pa.struct({"label": pa.string(), "start": pa.int32(), "end": pa.int32()})
    types |= {"gold_components": pa.list_(component), "start": pa.int32(), "end": pa.int32()}
    types |= dict.fromkeys(_COUNTS, pa.int64()) | {"latency_s": pa.float64()}
    types |= {"scores": pa.map_(pa.string(), pa.float64())}
    return pa.schema(list(types.items()))


def write_words_lm_eval(exported: ExportedWords, folder: Path) -> list[Path]:
    """Write `samples_TASK_DATE.jsonl` with `results_DATE.json` into a folder of the run's own; raises `OSError`."""
    dataset = exported.cell.dataset
    task_name = file_name("_".join((dataset.called, dataset.language, exported.run.program)))
    date = datetime.fromisoformat(exported.ended_at).strftime("%Y-%m-%dT%H-%M-%S.%f")
    samples = folder / exported.run.folder.name / f"samples_{task_name}_{date}.jsonl"
    samples.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(sample, ensure_ascii=False) + "\n" for sample in _samples(exported))
    write_whole(samples, "".join(lines))
    results = samples.with_name(f"results_{date}.json")
    metrics: Any = exported.run.metrics
    scores = {f"{name},none": measure.value for name, measure in metrics.measures.items()}
    document = {
        "results": {task_name: {"alias": task_name, **scores}},
        "n-samples": {task_name: {"original": metrics.selected, "effective": len(exported.answers)}},
        "config": {"model": "medexam", "model_args": {"pretrained": exported.model}},
        "lm_eval_version": f"medexam {__version__}",
        "model_name": exported.model,
        "versions": {task_name: exported.run.record.dataset_version},
    }
    write_whole(results, json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    return [samples, results]


def _samples(exported: ExportedWords) -> Iterator[dict[str, Any]]:
    for place, row in enumerate(exported.rows()):
        names = ("key", "question", "context", "options", "given_answer", "given_reasoning", "group")
        scores = dict(row["scores"])
        yield {
            "doc_id": place,
            "doc": {name: row[name] for name in names if row[name]},
            "target": "\n".join(row["gold"]),
            "arguments": {"gen_args_0": {"arg_0": row["question"], "arg_1": {}}},
            "resps": [[row["reply"] if row["reply"] is not None else row["text"] or ""]],
            "filtered_resps": [row["text"] or ""],
            "filter": "none",
            "metrics": list(scores),
            **scores,
        }
