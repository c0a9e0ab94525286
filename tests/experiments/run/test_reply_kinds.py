"""What a reply is decides how it counts, whichever engine brings it: a server, litellm, or a provider's batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from batch_server import BatchProvider, serving_batches
from wire_server import Wire, serving

import medexam
from medexam.predictions import Status
from medexam.serve import TIMING

KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "stop": ({"content": "{Answer: 3}"}, "stop"),
    "abort": ({"content": "{Answer: 1}"}, "abort"),
    "unknown": ({"content": "{Answer: 1}"}, "gave_up"),
    "refused": ({"content": None, "refusal": "I cannot help."}, "stop"),
    "filtered": ({"content": None}, "content_filter"),
    "filtered in part": ({"content": "{Answer: 1} and"}, "content_filter"),
    "empty": ({"content": ""}, "stop"),
    "null": ({"content": None}, "stop"),
    "cut": ({"content": "Let me see. {Answer: 1}? No,"}, "length"),
    "cut thought": ({"content": "<think>Perhaps {Answer: 1}"}, "length"),
    "thought": ({"content": "[THINK]{Answer: 1}[/THINK]{Answer: 3}"}, "stop"),
    "thought of MedGemma": ({"content": "<unused94>thought\n{Answer: 1}<unused95>{Answer: 3}"}, "stop"),
    "channel": ({"content": "<|channel|>analysis<|message|>{Answer: 1}<|end|>"}, "stop"),
    "run-on": ({"content": "{Answer: 3}<|im_end|>\n<|im_start|>user\nNext?\n{Answer: 1}"}, "stop"),
    "invented turn": ({"content": "Yes.<|im_end|>\n<|im_start|>user\n{Answer: 1}"}, "stop"),
    "denied": ({"content": "not {Answer: 1}"}, "stop"),
    "instruction": ({"content": "Please answer in the form {Answer: 1}"}, "stop"),
    "lenient": ({"content": "The answer is 3."}, "stop"),
}
"""Kind -> message and finish reason of every reply to a question."""
COUNTED: dict[str, tuple[str, int | None, str | None, int | None]] = {
    **dict.fromkeys(("stop", "thought", "thought of MedGemma", "run-on"), ("answered", 3, None, None)),
    **dict.fromkeys(("abort", "unknown"), ("failed", None, None, None)),
    "refused": ("unanswered", None, "refused", None),
    **dict.fromkeys(("filtered", "filtered in part"), ("unanswered", None, "filtered", None)),
    **dict.fromkeys(("empty", "null"), ("unanswered", None, "empty", None)),
    "cut": ("unanswered", None, "truncated", None),
    "cut thought": ("unanswered", None, "truncated_thinking", None),
    **dict.fromkeys(("channel", "invented turn", "denied", "instruction"), ("unanswered", None, "unparsed", None)),
    "lenient": ("unanswered", None, "unparsed", 3),
}
"""Kind -> status, answer, reason, and what only the lenient reader reads."""


@dataclass
class EndingWire(Wire):
    """Answers each question with a reply of another kind; what the probe asks it answers as usual."""

    kinds: tuple[str, ...] = tuple(KINDS)
    replied: dict[str, str] = field(default_factory=dict)
    """Question as it was asked -> kind of its reply."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, reply = super().reply(path, body)
        turns = body.get("messages", [])
        shown = next((turn["content"] for turn in turns if "\n1. " in str(turn["content"])), None)
        if status == 200 and shown is not None and "choices" in reply:
            kind = self.replied.setdefault(shown, self.kinds[len(self.replied) % len(self.kinds)])
            message, reason = KINDS[kind]
            for choice in reply["choices"]:
                choice |= {"message": {"role": "assistant", **message}, "finish_reason": reason}
        return status, reply


@contextmanager
def serving_kinds(engine: str, wire: EndingWire) -> Iterator[dict[str, Any]]:
    """The model of a spec that is asked through an engine and answers as `wire` does."""
    if engine != "batch":
        with serving(wire):
            name = {"name": "openai/tiny"} if engine == "litellm" else {}
            yield {"engine": engine, **name, "endpoints": [wire.address]}
        return
    wire.models = ("gpt-4o-mini",)
    with serving_batches(BatchProvider(wire)) as provider, pytest.MonkeyPatch.context() as patch:
        for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            patch.setenv(variable, provider.address)
        yield {"engine": "batch", "name": "openai/gpt-4o-mini"}


@pytest.fixture
def ask_kinds(ask):
    """Kind -> the prediction of a question whose reply was of that kind."""

    def call(engine: str, wire: EndingWire, **program: Any) -> dict[str, medexam.Prediction]:
        with serving_kinds(engine, wire) as model:
            document = {
                "name": "kinds",
                "dataset": {"name": "headqa_sample", "limit": len(wire.kinds)},
                "model": model,
                "program": {"kind": "zero_shot", **program},
            }
            predictions = ask(document)[0].predictions
        questions = medexam.load_questions("headqa_sample", limit=len(wire.kinds))
        return {wire.replied[one.printed]: predictions[one.key] for one in questions}

    return call


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "first_batch_poll_s", 0.01)
    monkeypatch.setattr(TIMING, "attempts", 1)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


@pytest.mark.parametrize("engine", ["vllm", "litellm", "batch"])
def test_a_reply_counts_for_what_it_is(engine: str, ask_kinds) -> None:
    predictions = ask_kinds(engine, EndingWire())
    counted = {
        kind: (str(one.status), one.answer, one.reason and str(one.reason), one.lenient)
        for kind, one in predictions.items()
    }
    assert counted == COUNTED
    kept = {kind: one.finish_reason for kind, one in predictions.items() if one.status is not Status.FAILED}
    assert kept == {kind: KINDS[kind][1] for kind in kept}


@pytest.mark.parametrize("engine", ["litellm", "batch"])
def test_a_filtered_choice_is_filtered(engine: str, ask_kinds) -> None:
    predictions = ask_kinds(engine, EndingWire(kinds=("filtered",)), answer_format="guided")
    assert {str(one.reason) for one in predictions.values()} == {"filtered"}
