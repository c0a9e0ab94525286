"""The spans of one traced question, as MLflow keeps them: a root for the question, and below it one for each step.

A run folder says how long a question took, and not when: spans begin with the run, a span for the wait before anything
was sent comes first, calls share the rest of the question's latency in equal parts, and everything else takes no time.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from medexam.predictions import Prediction, Status
from medexam.questions import Gold, Question
from medexam.signatures import render_question


@dataclass(frozen=True)
class Step:
    """One thing that was done for a question."""

    name: str
    kind: str
    """One of MLflow's kinds of span: `CHAT_MODEL`, `RETRIEVER`, `PARSER`, `EVALUATOR` or `TOOL`."""
    inputs: Any
    outputs: Any
    share: float = 0.0
    """The part of the question's latency that it took."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    """What broke it; None where nothing did."""

    @classmethod
    def ask(
        cls,
        name: str,
        messages: Sequence[Mapping[str, Any]],
        reply: str | None,
        prediction: Prediction,
        *,
        share: float,
    ) -> Self:
        """Build the step of one call of a model: the rendered chat messages and what it wrote, as a conversation.

        What one of several calls read of the options is not on disk, only what came of all.
        """
        alone = prediction.option_scores is not None and share == 1
        outputs: dict[str, Any] = {"option_scores": prediction.option_scores} if alone else {}
        if reply is not None:
            message = {"role": "assistant", "content": reply}
            outputs = {"choices": [{"message": message, "finish_reason": prediction.finish_reason}]}
        return cls(
            name,
            "CHAT_MODEL",
            {"messages": [dict(message) for message in messages]},
            outputs,
            share,
            {"mlflow.llm.model": prediction.model, "mlflow.message.format": "openai"},
            f"{prediction.failure.kind}: {prediction.failure.message}" if prediction.failure else None,
        )

    def to_json(self) -> list[Any]:
        """List what the step shows."""
        return [self.name, self.inputs, self.outputs, self.error]


@dataclass(frozen=True)
class QuestionTrace:
    """What is to be told of one question."""

    question: Question
    gold: Gold
    prediction: Prediction
    steps: tuple[Step, ...]

    @property
    def verdict(self) -> str:
        """What came out, in words."""
        prediction, gold = self.prediction, self.gold
        if prediction.status is Status.FAILED:
            return f"failed: {prediction.failure.kind}" if prediction.failure else "failed"
        if prediction.answer is None:
            return f"no answer ({prediction.reason}); right is {gold.number}"
        return (
            f"{prediction.answer}: right"
            if gold.accepts(prediction.answer)
            else f"{prediction.answer}: wrong, right is {gold.number}"
        )

    def trace_id(self, mlflow_run_id: str) -> str:
        """Hash the run and all that the trace shows into 32 hexadecimal digits."""
        contents = [mlflow_run_id, self.verdict, self.prediction.to_json(), [step.to_json() for step in self.steps]]
        return hashlib.sha256(json.dumps(contents, sort_keys=True, default=str).encode()).hexdigest()[:32]


def build_spans(trace_id: str, trace: QuestionTrace, start_ns: int) -> Iterator[Any]:
    """Build MLflow's spans, the root first; `trace_id` is 32 hexadecimal digits."""
    prediction, question = trace.prediction, trace.question
    latency_ns = round(1e9 * (prediction.latency_s or 0))
    failed = prediction.status is Status.FAILED
    root = _span_id(trace_id, "question")
    attributes: dict[str, Any] = {"question": question.key, "spec_digest": prediction.spec_digest}
    if prediction.prompt_tokens is not None and prediction.completion_tokens is not None:
        attributes["mlflow.chat.tokenUsage"] = {
            "input_tokens": prediction.prompt_tokens,
            "output_tokens": prediction.completion_tokens,
            "total_tokens": prediction.prompt_tokens + prediction.completion_tokens,
        }
    inputs = {"question": render_question(question), "key": question.key, "exam": question.exam.name}
    outcome = {"answer": prediction.answer, "verdict": trace.verdict}
    question_step = Step("question", "CHAIN", inputs, outcome, 1.0, attributes, "failed" if failed else None)
    yield _span(trace_id, root, None, question_step, start_ns, start_ns + latency_ns)
    begin_ns = start_ns + round(1e9 * (prediction.waiting_s or 0))
    if begin_ns > start_ns:
        yield _span(trace_id, _span_id(trace_id, "wait"), root, Step("wait", "TASK", {}, {}), start_ns, begin_ns)
    asking_ns = start_ns + latency_ns - begin_ns
    for number, step in enumerate(trace.steps):
        end = begin_ns + round(step.share * asking_ns)
        yield _span(trace_id, _span_id(trace_id, f"{number} {step.name}"), root, step, begin_ns, end)
        begin_ns = end


def _span_id(trace_id: str, name: str) -> str:
    """Hash a name into 16 hexadecimal digits, the same whenever the trace is sent."""
    return hashlib.sha256(f"{trace_id} {name}".encode()).hexdigest()[:16]


def _span(trace_id: str, span_id: str, parent: str | None, step: Step, start_ns: int, end_ns: int) -> Any:
    from mlflow.entities import Span

    attributes = {
        "mlflow.traceRequestId": f"tr-{trace_id}",
        "mlflow.spanType": step.kind,
        "mlflow.spanInputs": step.inputs,
        "mlflow.spanOutputs": step.outputs,
        **step.attributes,
    }
    return Span.from_dict(
        {
            "trace_id": _bytes(trace_id),
            "span_id": _bytes(span_id),
            "parent_span_id": _bytes(parent) if parent else None,
            "name": step.name,
            "start_time_unix_nano": start_ns,
            "end_time_unix_nano": end_ns,
            "status": {"code": "ERROR" if step.error else "OK", "message": step.error or ""},
            "attributes": {
                key: json.dumps(value, ensure_ascii=False) for key, value in attributes.items() if value is not None
            },
            "events": [],
        }
    )


def _bytes(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()
