"""A server of OpenAI's wire that stamps and counts every question, and that a soak kills and starts again.

Its reply to a prompt ends in a stamp made of what was asked, and the stamp is in its log before the reply leaves. So a
stamp that lies in a folder names a question that must not reach the server again, whichever command wrote it there.
"""

import hashlib
import json
import os
import random
import re
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wire_server import Wire, is_identifying, serving

STAMP = re.compile(rb"stamp[a-p]{16}")
CONTEXT = 100_000
TRANSLATION = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."
LATEST_S = 0.04
"""Longest time that a reply takes: a run of some tens of questions then takes about a second."""
LATEST = "latest_s"
"""The field of a request that says otherwise."""
_FAULT = {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
_QUOTA, _DENIED = ({"error": _FAULT | more} for more in ({}, {"message": "denied", "type": "denied", "code": None}))
REFUSALS: Mapping[str, tuple[int, bytes]] = {
    "unauthorized": (401, json.dumps(_DENIED).encode()),
    "quota": (429, json.dumps(_QUOTA).encode()),
    "forbidden": (403, json.dumps(_DENIED).encode()),
    "unknown": (404, json.dumps(_DENIED).encode()),
    "broken": (500, json.dumps(_DENIED).encode()),
    "empty": (200, b""),
    "empty-fault": (503, b""),
    "page": (200, b"<html><body>Sign in</body></html>"),
    "page-fault": (502, b"<html><body>Bad gateway</body></html>"),
    "null": (200, b"null"),
    "half": (200, b'{"id": "chat-1", "choices": [{"index": 0, "mess'),
    "closed": (0, b""),
}
"""How a server refuses: status and body; status 0 is a connection that is closed without a word."""
_REFUSING = re.compile(r"(?P<key>/refusing/(?P<how>[a-z-]+)/(?P<after>\d+)/[^/]+)(?P<path>/.*)")


def stamp_of(prompt: object, body: dict[str, Any]) -> str:
    """The same for the same prompt under the same settings."""
    settings = {key: value for key, value in body.items() if key not in ("prompt", "messages")}
    digest = hashlib.sha256(json.dumps([prompt, settings], sort_keys=True).encode()).hexdigest()[:16]
    return "stamp" + digest.translate(str.maketrans("0123456789abcdef", "abcdefghijklmnop"))


@dataclass
class Counting(Wire):
    """Answers exams with an option that depends on the question, and everything else with a translation."""

    log: Path = Path("asked.log")
    context: int = CONTEXT
    served: dict[str, int] = field(default_factory=dict)
    """Requests by the place at which a server is to refuse."""

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        refusing = _REFUSING.match(path)
        if refusing is None or refusing["how"] not in REFUSALS:
            return None
        self.served[refusing["key"]] = number = self.served.get(refusing["key"], 0) + 1
        if number <= int(refusing["after"]):
            return None
        status, content = REFUSALS[refusing["how"]]
        if not status:
            raise ConnectionResetError
        return {":status": str(status)}, iter([content])

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        refusing = _REFUSING.match(path)
        path = refusing["path"] if refusing else path
        status, document = super().reply(path, body)
        if path == "/v1/models":
            document["data"][0]["max_model_len"] = self.context
        if status != 200 or "choices" not in document or is_identifying(body) or body.get("response_format"):
            return status, document
        prompts = body.get("messages") or body["prompt"]
        each = "messages" not in body and isinstance(prompts, list) and not isinstance(prompts[0], int)
        asked = prompts if each else [prompts]
        several = len(document["choices"]) // len(asked)
        for place, choice in enumerate(document["choices"]):
            prompt = asked[place // several]
            text = self._answer(prompt, body)
            choice.update({"message": choice["message"] | {"content": text}} if "message" in choice else {"text": text})
            choice["finish_reason"] = "stop"
        time.sleep(random.uniform(0, body.get(LATEST, LATEST_S)))
        return status, document

    def _answer(self, prompt: object, body: dict[str, Any]) -> str:
        stamp = stamp_of(prompt, body)
        with self.log.open("ab", buffering=0) as stream:
            stream.write(f"{stamp}\n".encode())
        exam = "{Answer" in str(prompt)
        return f"{f'{{Answer: {1 + ord(stamp[-1]) % 2}}}' if exam else TRANSLATION}\n\n{stamp}"


@dataclass
class ServerProcess:
    """The server in a process of its own, on one port for all its lives."""

    log: Path
    pid: int = 0
    address: str = field(init=False, default="")

    def start(self) -> None:
        """Serve, on the port of the life before; returns once it listens."""
        reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            port = int(self.address.split(":")[2].removesuffix("/v1")) if self.address else 0
            with serving(Counting(log=self.log), port=port) as wire:
                os.write(writes, wire.address.encode())
                os.close(writes)
                signal.pause()
        os.close(writes)
        with os.fdopen(reads) as stream:
            self.address = stream.read()

    def kill(self) -> None:
        """End it without a word."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def asked(self, since: int = 0) -> list[bytes]:
        """The stamps of all questions that reached it, from the byte `since` of its log."""
        return self.log.read_bytes()[since:].splitlines() if self.log.exists() else []

    def size(self) -> int:
        """Bytes of its log."""
        return self.log.stat().st_size if self.log.exists() else 0


def stamps_in(files: Iterable[Path]) -> set[bytes]:
    """The stamps in the whole lines of files."""
    found: set[bytes] = set()
    for path in files:
        data = path.read_bytes()
        found.update(STAMP.findall(data[: data.rfind(b"\n") + 1]))
    return found
