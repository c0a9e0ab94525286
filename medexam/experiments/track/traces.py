"""Complete traces of a run's questions, or of a sample, in MLflow: prompt, reply, answer, passages and score.

They are made from what is on disk when a run is sent, so tracing costs no call and changes no answer: the program is
planned again, its prompts are rendered again, and replies come from `predictions.jsonl`. A trace's id is a hash of all
that it shows. Sending a run again therefore adds none, and what has changed takes the place of what it was.

MLflow's own tracing calls send to whichever store the process has set, from a thread that only logs its failures.
These traces go to the store that the run went to, and an outage is an outage.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import dspy

from medexam.errors import MedExamError, RunFolderError
from medexam.experiments.plan.cells import ExamCell
from medexam.experiments.plan.conversations import conversation
from medexam.experiments.plan.passage_lookup import Preview, Retrieval
from medexam.experiments.plan.planner import plan_stored
from medexam.experiments.store.stored_run import ExamRun
from medexam.experiments.track.copies import find_traces
from medexam.experiments.track.payload import count_traced, describe_sample
from medexam.experiments.track.store import start_traces, tracing_client
from medexam.experiments.track.trace_spans import QuestionTrace, Step, build_spans
from medexam.predictions import FollowUp, Prediction, RetrievedPassage, Status
from medexam.questions import Question
from medexam.retrievers.base import Hit
from medexam.serve.chat_messages import put_pictures
from medexam.signatures import render_question
from medexam.text import count_of

_BATCH = 50
"""Traces that travel together."""
_PREVIEW = 1_000
"""Characters of a question or an answer in MLflow's table of traces."""
_PICTURE = 2_000_000
"""Characters of a picture as a data URL; a larger one is left out of a trace."""
_log = logging.getLogger(__name__)


def collect_traces(runs: Iterable[ExamRun]) -> dict[int, list[QuestionTrace]]:
    """Collect the traces of each run's sampled questions, by the `id` of the run.

    A run that cannot be planned as it was (its data or its words have changed) is left out with a logged warning: its
    traces would show what was not asked.
    """
    traces_by_run: dict[int, list[QuestionTrace]] = {}
    errors: dict[str, MedExamError] = {}
    for run in runs:
        try:
            traces_by_run[id(run)] = list(read_traces(run))
        except MedExamError as error:
            errors[run.record.run_id] = error
    if errors:
        run_id, first_error = next(iter(errors.items()))
        others = f" and {count_of(len(errors) - 1, 'other run')}, the first because" if len(errors) > 1 else ""
        _log.warning("no traces of %s%s: %s", run_id, others, first_error)
    return traces_by_run


def send_traces(
    client: Any,
    run: ExamRun,
    traces: Iterable[QuestionTrace],
    *,
    mlflow_run_id: str,
    experiment_id: str,
    tracking_uri: str,
) -> None:
    """Send the run's traces, linked to its MLflow run, which has these and no other then."""
    traces_by_id = {f"tr-{trace.trace_id(mlflow_run_id)}": trace for trace in traces}
    stored_traces = find_traces(client, experiment_id, mlflow_run_id)
    current_ids = {trace_id for trace_id, whole in stored_traces.items() if whole and trace_id in traces_by_id}
    outdated = sorted(stored_traces.keys() - current_ids)
    for start in range(0, len(outdated), _BATCH):
        client.delete_traces(experiment_id, trace_ids=outdated[start : start + _BATCH])
    missing = [trace for trace_id, trace in traces_by_id.items() if trace_id not in current_ids]
    _send(missing, run, mlflow_run_id, experiment_id, tracing_client(client, tracking_uri))


def sample_keys(keys: Iterable[str], limit: int) -> list[str]:
    """Choose at most `limit` of the keys, always the same ones: a larger limit keeps those of a smaller one."""
    return sorted(keys, key=lambda key: hashlib.sha256(key.encode()).digest())[:limit]


def read_traces(run: ExamRun) -> Iterator[QuestionTrace]:
    """Read the traces of the sampled questions that have a prediction.

    Raises `MedExamError` where the run cannot be planned as it was.
    """
    if "answers" in run.record.identity:
        raise RunFolderError("its answers are stored without prompts and replies")
    planned = plan_stored(run.folder.path)
    questions = {question.key: question for question in planned.question_set.questions}
    with run.folder.opened_predictions() as predictions:
        sample = [key for key in sample_keys(questions, count_traced(run)) if key in predictions]
        sample_predictions = {key: predictions[key] for key in sample}
        program = planned.build_preview([questions[key] for key in sample], sample_predictions)
        for key in sample:
            prediction, gold = sample_predictions[key], planned.question_set.golds[key]
            yield QuestionTrace(questions[key], gold, prediction, _steps(planned, program, questions[key], prediction))


def _steps(planned: ExamCell, program: dspy.Module, question: Question, prediction: Prediction) -> tuple[Step, ...]:
    """List what was done for the question, in order; the score is the last."""
    steps: list[Step] = []
    if planned.retrieval is not None and prediction.rounds is not None:
        steps += _search(planned.retrieval, prediction.rounds)
    elif planned.retrieval is not None and prediction.passages is not None:
        steps.append(_retrieve(planned.retrieval, question, prediction.passages))
    calls = conversation(program, question, prediction)
    for number, (turns, reply) in enumerate(calls, start=1):
        name = "ask" if len(calls) == 1 else f"ask {number} of {len(calls)}"
        messages = put_pictures(turns, _small_enough(question.picture))
        steps.append(Step.ask(name, messages, reply, prediction, share=1 / len(calls)))
    if prediction.status is not Status.FAILED:
        outcome: dict[str, Any] = {"answer": prediction.answer, "status": prediction.status.value}
        if prediction.reason is not None:
            outcome["reason"] = prediction.reason.value
        if prediction.rationale is not None:
            outcome["rationale"] = prediction.rationale
        if (choice := prediction.choice_trace) is not None:
            steps.append(Step("choose", "PARSER", choice[0], {**outcome, **choice[1]}))
        elif calls:
            inputs = {"reply": prediction.reply, "finish_reason": prediction.finish_reason}
            steps.append(Step("parse", "PARSER", inputs, outcome))
        else:
            steps.append(Step("choose", "TOOL", {"options": list(question.option_numbers)}, outcome))
    gold = planned.question_set.golds[question.key]
    right = None if prediction.status is Status.FAILED else gold.accepts(prediction.answer)
    steps.append(Step("score", "EVALUATOR", {"answer": prediction.answer, "gold": gold.number}, {"right": right}))
    return tuple(steps)


def _small_enough(picture: str | None) -> list[str]:
    return [] if picture is None or len(picture) > _PICTURE else [picture]


def _retrieve(retrieval: Retrieval, question: Question, passages: Sequence[RetrievedPassage]) -> Step:
    preview = Preview(retrieval)
    hits = [*preview.find(question), *(hit for hits in preview.find_per_option(question).values() for hit in hits)]
    queries = list(retrieval.queries(question).values())
    inputs = {"queries": queries, "k": retrieval.settings.k}
    return Step("retrieve", "RETRIEVER", inputs, _documents(passages, hits))


def _search(retrieval: Retrieval, rounds: Sequence[Sequence[FollowUp]]) -> Iterator[Step]:
    """Yield a step for each query that the model wrote."""
    preview, k = Preview(retrieval), retrieval.settings.k
    for number, queries in enumerate(rounds, start=1):
        for follow_up in queries:
            (hits,) = preview.search([follow_up.query], k)
            inputs = {"queries": [follow_up.query], "k": k}
            yield Step(f"retrieve in round {number}", "RETRIEVER", inputs, _documents(follow_up.passages, hits))


def _documents(passages: Sequence[RetrievedPassage], hits: Iterable[Hit]) -> list[dict[str, Any]]:
    """Convert passages to what MLflow shows, with the texts that are known."""
    texts = {hit.passage.id: hit.passage.text for hit in hits}
    return [
        {
            "id": passage.id,
            "page_content": texts.get(passage.id, ""),
            "metadata": {"doc_uri": passage.id, "score": passage.score, "source": passage.source},
        }
        for passage in passages
    ]


def _send(traces: Sequence[QuestionTrace], run: ExamRun, mlflow_run_id: str, experiment_id: str, client: Any) -> None:
    """Send summaries before spans, which takes MLflow a third of the time; a trace without spans is sent again."""
    from mlflow.entities import (
        AssessmentSource,
        AssessmentSourceType,
        Expectation,
        Feedback,
        TraceInfo,
        TraceLocation,
        TraceState,
    )

    began = run.environment.get("started_at")
    start_ns = round(1e9 * datetime.fromisoformat(began).timestamp()) if began else 0
    code = AssessmentSource(source_type=AssessmentSourceType.CODE, source_id="medexam")
    key = AssessmentSource(source_type=AssessmentSourceType.HUMAN, source_id="answer key")
    sample_tag = {"medexam.sample": sample} if (sample := describe_sample(run)) else {}

    def summary(trace: QuestionTrace) -> Any:
        prediction, duration_ms = trace.prediction, round(1000 * (trace.prediction.latency_s or 0))
        failed = prediction.status is Status.FAILED
        marks: list[Any] = [Expectation(name="gold", value=trace.gold.number, source=key)]
        if not failed:
            marks.append(Feedback(name="right", value=trace.gold.accepts(prediction.answer), source=code))
        return TraceInfo(
            trace_id=f"tr-{trace.trace_id(mlflow_run_id)}",
            trace_location=TraceLocation.from_experiment_id(experiment_id),
            request_time=start_ns // 1_000_000,
            state=TraceState.ERROR if failed else TraceState.OK,
            request_preview=render_question(trace.question)[:_PREVIEW],
            response_preview=trace.verdict[:_PREVIEW],
            execution_duration=duration_ms,
            trace_metadata={"mlflow.sourceRun": mlflow_run_id},
            tags={
                "mlflow.traceName": trace.question.key,
                "medexam.question": trace.question.key,
                "medexam.spec_digest": prediction.spec_digest,
                "medexam.run_id": run.record.run_id,
                "medexam.program": prediction.program,
                "medexam.status": prediction.status.value,
                **sample_tag,
            },
            assessments=marks,
        )

    for start in range(0, len(traces), _BATCH):
        batch = traces[start : start + _BATCH]
        start_traces(client, [summary(trace) for trace in batch])
        spans = [span for trace in batch for span in build_spans(trace.trace_id(mlflow_run_id), trace, start_ns)]
        client.log_spans(experiment_id, spans)
