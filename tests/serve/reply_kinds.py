"""Replies of every kind, what each counts for, and a server that gives them."""

from dataclasses import dataclass, field
from typing import Any

from wire_server import Wire

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
