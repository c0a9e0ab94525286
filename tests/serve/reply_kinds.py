"""Replies of every kind, what each counts for, and a server that gives them."""

from dataclasses import dataclass, field
from typing import Any

from wire_server import Wire

from table_cases import read_cases

ROWS = [case.values[0] for case in read_cases("reply_kinds")]
KINDS: dict[str, tuple[dict[str, Any], str]] = {row["kind"]: (row["message"], row["finish_reason"]) for row in ROWS}
"""Kind -> message and finish reason of every reply to a question."""
COUNTED = {row["kind"]: tuple(row["counted"]) for row in ROWS}
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
