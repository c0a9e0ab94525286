"""A provider's batch API on this machine: files, batches, output and error files, as OpenAI publishes them.

The list has one batch a page, and results are in another order than the requests.

Source: the reference of OpenAI's API, objects "File", "Batch", "The request output object" and the guide "Batch API".
Chat requests, live and in batches, are answered by the `Wire` of the other tests.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from wire_server import Server, Wire

BATCHES = "/v1/batches"
FILES = "/v1/files"


@dataclass
class BatchProvider:
    wire: Wire = field(default_factory=lambda: Wire(models=("gpt-4o-mini",)))
    polls: int = 2
    """How often a batch is looked at before it has ended; the statuses before are `validating` and `in_progress`."""
    ends: str = "completed"
    answered: int | None = None
    """Requests of a batch that are answered before it ends; None: all."""
    refused: int = 0
    """Requests of a batch, the first ones, that are answered with HTTP 400 in the error file."""
    refusal_code: str = "invalid_request"
    failing_polls: int = 0
    """Looks at a batch that are answered with HTTP 500."""
    lose_created: int = 0
    """Batches that are made without the client hearing of it: the connection is closed instead."""
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Method and path of each request."""
    address: str = ""

    def requests_of(self, batch_id: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.files[self.batches[batch_id]["input_file_id"]].splitlines()]

    def was_seen(self) -> bool:
        """Whether a batch was looked at."""
        return any(one["looks"] for one in list(self.batches.values()))

    def upload(self, content_type: str, raw: bytes) -> dict[str, Any]:
        form = BytesParser().parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + raw)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.get_payload()}
        assert parts["purpose"].get_payload(decode=True).strip() == b"batch"
        return self.file(parts["file"].get_payload(decode=True), parts["file"].get_filename())

    def file(self, content: bytes, name: str = "results.jsonl") -> dict[str, Any]:
        key = f"file-{len(self.files) + 1}"
        self.files[key] = content
        about = {"id": key, "object": "file", "bytes": len(content), "created_at": 1, "filename": name}
        return {**about, "purpose": "batch", "status": "processed"}

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        assert (body["endpoint"], body["completion_window"]) == ("/v1/chat/completions", "24h")
        key = f"batch_{len(self.batches) + 1}"
        self.batches[key] = {
            "id": key,
            "object": "batch",
            "created_at": 1,
            "status": "validating",
            "errors": None,
            "endpoint": body["endpoint"],
            "completion_window": "24h",
            "input_file_id": body["input_file_id"],
            "output_file_id": None,
            "error_file_id": None,
            "looks": 0,
        }
        return self.batches[key]

    def retrieve(self, key: str) -> dict[str, Any]:
        batch = self.batches[key]
        batch["looks"] += 1
        if batch["looks"] > self.polls and batch["status"] in ("validating", "in_progress"):
            self._end(batch)
        elif batch["status"] == "validating" and batch["looks"] > 1:
            batch["status"] = "in_progress"
        return batch

    def page(self, query: dict[str, list[str]]) -> dict[str, Any]:
        keys = list(self.batches)[::-1]
        first = keys.index(query["after"][0]) + 1 if "after" in query else 0
        shown = keys[first : first + 1]
        listed = [self.batches[key] for key in shown]
        return {"object": "list", "data": listed, "has_more": first + len(shown) < len(keys)}

    def reply(self, command: str, path: str, query: dict[str, list[str]], raw: bytes) -> tuple[int, Any]:
        """Status and reply to a request that uploads nothing; None for a reply closes the connection."""
        if path == BATCHES:
            made = self.create(json.loads(raw)) if command == "POST" else self.page(query)
            if command == "POST" and self.lose_created:
                self.lose_created -= 1
                return 0, None
            return 200, made
        if path.startswith(BATCHES) and self.failing_polls:
            self.failing_polls -= 1
            return 500, {"error": {"message": "a poll that fails"}}
        key = path.removeprefix(f"{BATCHES}/").removeprefix(f"{FILES}/").removesuffix("/content")
        if key in self.batches:
            return 200, self.retrieve(key)
        if key in self.files:
            return 200, self.files[key]
        if path.startswith((BATCHES, FILES)):
            return 404, {"error": {"message": f"No such object: {key}"}}
        return self.wire.reply(path, json.loads(raw or b"{}"))

    def _end(self, batch: dict[str, Any]) -> None:
        batch["status"] = self.ends
        if self.ends == "failed":
            fault = {"code": "model_not_found", "message": "The provided model is not supported by the Batch API."}
            batch["errors"] = {"object": "list", "data": [{**fault, "line": 1, "param": "body.model"}]}
            return
        good, bad = [], []
        for place, request in enumerate(self.requests_of(batch["id"])):
            result = {"id": f"batch_req_{place}", "custom_id": request["custom_id"], "error": None}
            if self.answered is not None and place >= self.answered:
                if self.ends == "expired":
                    message = "This request could not be executed before the completion window expired."
                    bad.append({**result, "response": None, "error": {"code": "batch_expired", "message": message}})
                continue
            status, body = self.wire.reply("/v1/chat/completions", request["body"])
            if place < self.refused:
                status, body = 400, {"error": {"message": "refused by the test", "code": self.refusal_code}}
            response = {"status_code": status, "request_id": f"req_{place}", "body": body}
            (good if status == 200 else bad).append({**result, "response": response})
        for name, lines in (("output_file_id", good), ("error_file_id", bad)):
            if lines:
                content = "\n".join(json.dumps(one) for one in lines[::-1])
                batch[name] = self.file(content.encode() + b"\n")["id"]


@contextmanager
def serving_batches(provider: BatchProvider) -> Iterator[BatchProvider]:
    """Serve until the block ends; `provider.address` is the base address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, raw: bytes) -> None:
            address = urlsplit(self.path)
            provider.asked.append(f"{self.command} {address.path}")
            if self.command == "POST" and address.path == FILES:
                status, reply = 200, provider.upload(self.headers["Content-Type"], raw)
            else:
                status, reply = provider.reply(self.command, address.path, parse_qs(address.query), raw)
            if reply is None:
                self.close_connection = True
                return
            body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        provider.address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield provider
        finally:
            server.shutdown()
