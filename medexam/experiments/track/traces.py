"""Stored calls as MLflow's traces and prompts: what was sent and what came, read and not rendered again.

MLflow's tracing sends to the store that the process has set, in threads that only log their failures; so the traces
that arrived are counted.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from medexam.errors import TrackingError
from medexam.predictions import Prediction, Status
from medexam.serve.chat_messages import put_pictures

if TYPE_CHECKING:
    from medexam.predictions.calls import ModelCall

_PROMPT = 100_000
"""Characters that MLflow takes of a prompt."""


class Asked(NamedTuple):
    """A stored prediction, and what is known of its answer."""

    prediction: Prediction
    gold: Any = None
    right: bool | None = None
    picture: str | None = None
    """The picture that the question was asked with, as a data URL."""


def sample_keys(keys: Sequence[str], limit: int) -> list[str]:
    """Choose at most `limit` keys, always the same ones: a larger limit keeps those of a smaller one."""
    return sorted(keys, key=lambda key: hashlib.sha256(key.encode()).digest())[:limit]


def send_traces(sample: Sequence[Asked], began: int, experiment_id: str, run_id: str) -> None:
    """Give each question as a trace of a run that `began` at these milliseconds to MLflow's threads."""
    for entry in sample:
        _send_trace(entry, 1_000_000 * began, experiment_id, run_id)


def check_traces(client: Any, expected: Mapping[tuple[str, str], int]) -> None:
    """Wait for MLflow's threads. Raises `TrackingError` unless each experiment's run has as many traces as expected."""
    import mlflow

    if any(expected.values()):
        mlflow.flush_trace_async_logging()
    for (experiment_id, run_id), number in expected.items():
        traces = client.search_traces(locations=[experiment_id], run_id=run_id, include_spans=False) if number else ()
        if len(traces) < number:
            raise TrackingError(f"MLflow took {len(traces)} of {number} traces; `trace_questions: 0` sends none")


def _send_trace(entry: Asked, begin: int, experiment_id: str, run_id: str) -> None:
    """Send a span for the question, and one for each call, which share the question's time in equal parts."""
    import mlflow

    prediction, calls = entry.prediction, entry.prediction.calls
    step = round(1e9 * (prediction.latency_s or 0)) // len(calls)
    outputs = {
        "answer": prediction.answer if prediction.text is None else prediction.text,
        "gold": entry.gold,
        "right": entry.right,
        "reason": prediction.reason,
        "passages": [f"{passage.id} ({passage.score:.4g})" for passage in prediction.passages or ()],
        "failure": prediction.failure and f"{prediction.failure.kind}: {prediction.failure.message}",
    }
    tags = {"medexam.question": prediction.question, "medexam.status": prediction.status.value}
    root = mlflow.start_span_no_context(
        prediction.question,
        "CHAIN",
        inputs=calls[0].messages[-1]["content"] if calls[0].messages else calls[0].prompt,
        tags=tags if entry.right is None else {**tags, "medexam.right": str(entry.right).lower()},
        # MLflow would send the address of the folder's git repository, which may hold a password.
        metadata={"mlflow.sourceRun": run_id, "mlflow.source.git.repoURL": ""},
        experiment_id=experiment_id,
        start_time_ns=begin,
    )
    for number, call in enumerate(calls):
        pictures = [entry.picture] if entry.picture and call.pictures else []
        sent = {"messages": put_pictures(call.messages, pictures)} if call.messages else {"prompt": call.prompt}
        wishes = {"choices": call.choices, "texts": call.texts, **call.fields}
        reply = {
            "role": "assistant",
            "content": call.text,
            **({"tool_calls": call.tool_calls} if call.tool_calls else {}),
        }
        outcome = {"choices": [{"message": reply, "finish_reason": call.finish_reason}]}
        tokens = {"input_tokens": call.prompt_tokens or 0, "output_tokens": call.completion_tokens or 0}
        tokens["total_tokens"] = sum(tokens.values())
        span = mlflow.start_span_no_context(
            f"ask {number + 1} of {len(calls)}" if len(calls) > 1 else "ask",
            "CHAT_MODEL",
            parent_span=root,
            inputs={**sent, **call.sampling, **{name: value for name, value in wishes.items() if value}},
            attributes={
                "mlflow.message.format": "openai",
                "model": call.model,
                "mlflow.chat.tokenUsage": tokens,
            },
            start_time_ns=begin + number * step,
        )
        span.end(
            outputs=call.fault or outcome | ({"logprobs": call.logprobs} if call.logprobs else {}),
            status="ERROR" if call.fault else "OK",
            end_time_ns=begin + (number + 1) * step,
        )
    root.end(
        outputs={name: value for name, value in outputs.items() if value not in (None, [])},
        status="ERROR" if prediction.status is Status.FAILED else "OK",
        end_time_ns=begin + len(calls) * step,
    )


def register_prompts(client: Any, sample: Sequence[Asked], stem: str, run_id: str) -> None:
    """Register what questions were asked with, one version a text, and link it to MLflow's run."""
    templates = _find_templates([entry.prediction.calls for entry in sample])
    for number, template in enumerate(templates, start=1):
        name = stem if len(templates) == 1 else f"{stem}-{number}"
        digest = hashlib.sha256(json.dumps(template).encode()).hexdigest()[:16]
        versions = client.search_prompts(f"name = '{name}'") and client.search_prompt_versions(name)
        prompt = next((one for one in versions if one.tags.get("medexam.digest") == digest), None)
        prompt = prompt or client.register_prompt(name, template, tags={"medexam.digest": digest})
        prompt = client.load_prompt(f"prompts:/{name}/{prompt.version}", cache_ttl_seconds=0)
        client.link_prompt_version_to_run(run_id, prompt)


def _find_templates(questions: "Sequence[Sequence[ModelCall]]") -> list[list[dict[str, str]]]:
    """Find what the calls of several questions share: a prompt for each call, with variables where they differ."""
    templates: list[list[dict[str, str]]] = []
    for place in range(max(map(len, questions), default=0)):
        calls = [calls[place] for calls in questions if len(calls) > place]
        dialogues = [call.messages or ({"role": "user", "content": call.prompt or ""},) for call in calls]
        roles = [turn["role"] for turn in dialogues[0]]
        same_roles = [turns for turns in dialogues if [turn["role"] for turn in turns] == roles]
        template = [
            {"role": role, "content": _common_text({turns[turn]["content"] for turns in same_roles}, role)}
            for turn, role in enumerate(roles)
        ]
        if len(same_roles) > 1 and template not in templates and len(json.dumps(template)) < _PROMPT:
            templates.append(template)
    return templates


def _common_text(texts: set[str], role: str) -> str:
    """Return the lines that all texts begin and end with, and a variable between them."""
    if len(texts) == 1:
        return min(texts)
    lines = [text.split("\n") for text in texts]
    begin = _common_lines(lines)
    end = _common_lines([text[len(begin) :][::-1] for text in lines])[::-1]
    return "\n".join([*begin, "{{reply}}" if role == "assistant" else "{{question}}", *end])


def _common_lines(texts: Sequence[Sequence[str]]) -> list[str]:
    return [lines[0] for lines in takewhile(lambda lines: len(set(lines)) == 1, zip(*texts, strict=False))]
