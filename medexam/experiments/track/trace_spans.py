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

from medexam.items import Gold
from medexam.predictions import Prediction, Status
from medexam.questions import Question
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
        cls, name: str, messages: Sequence[Mapping[str, Any]], reply: str | None, said: Prediction, *, share: float
    ) -> Self:
        """One call of a model: the rendered chat messages and what it wrote, as a conversation.

        What one of several calls read of the options is not on disk, only what came of all.
        """
        alone = said.option_scores is not None and share == 1
        outputs: dict[str, Any] = {"option_scores": said.option_scores} if alone else {}
        if reply is not None:
            message = {"role": "assistant", "content": reply}
            outputs = {"choices": [{"message": message, "finish_reason": said.finish_reason}]}
        return cls(
            name,
            "CHAT_MODEL",
            {"messages": [dict(message) for message in messages]},
            outputs,
            share,
            {"mlflow.llm.model": said.model, "mlflow.message.format": "openai"},
            f"{said.failure.kind}: {said.failure.message}" if said.failure else None,
        )

    def to_json(self) -> list[Any]:
        """What the step shows."""
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
        said, gold = self.prediction, self.gold
        if said.status is Status.FAILED:
            return f"failed: {said.failure.kind}" if said.failure else "failed"
        if said.answer is None:
            return f"no answer ({said.reason}); right is {gold.number}"
        return f"{said.answer}: right" if gold.accepts(said.answer) else f"{said.answer}: wrong, right is {gold.number}"

    def trace_id(self, mlflow_run_id: str) -> str:
        """32 hexadecimal digits over the run and all that the trace shows."""
        shown = [mlflow_run_id, self.verdict, self.prediction.to_json(), [step.to_json() for step in self.steps]]
        return hashlib.sha256(json.dumps(shown, sort_keys=True, default=str).encode()).hexdigest()[:32]


def build_spans(trace_id: str, traced: QuestionTrace, start_ns: int) -> Iterator[Any]:
    """MLflow's spans, the root first; `trace_id` is 32 hexadecimal digits."""
    said, question = traced.prediction, traced.question
    whole_ns = round(1e9 * (said.latency_s or 0))
    failed = said.status is Status.FAILED
    root = _span_id(trace_id, "question")
    attributes: dict[str, Any] = {"question": question.key, "spec_digest": said.spec_digest}
    if said.prompt_tokens is not None and said.completion_tokens is not None:
        attributes["mlflow.chat.tokenUsage"] = {
            "input_tokens": said.prompt_tokens,
            "output_tokens": said.completion_tokens,
            "total_tokens": said.prompt_tokens + said.completion_tokens,
        }
    shown = {"question": render_question(question), "key": question.key, "exam": question.exam.name}
    outcome = {"answer": said.answer, "verdict": traced.verdict}
    whole = Step("question", "CHAIN", shown, outcome, 1.0, attributes, "failed" if failed else None)
    yield _span(trace_id, root, None, whole, start_ns, start_ns + whole_ns)
    at = start_ns + round(1e9 * (said.waiting_s or 0))
    if at > start_ns:
        yield _span(trace_id, _span_id(trace_id, "wait"), root, Step("wait", "TASK", {}, {}), start_ns, at)
    asking_ns = start_ns + whole_ns - at
    for number, step in enumerate(traced.steps):
        end = at + round(step.share * asking_ns)
        yield _span(trace_id, _span_id(trace_id, f"{number} {step.name}"), root, step, at, end)
        at = end


def _span_id(trace_id: str, name: str) -> str:
    """16 hexadecimal digits, the same whenever the trace is sent."""
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
