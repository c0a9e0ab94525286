"""Servers that are no vLLM, as their documentation and their users' reports have them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wire_server import Wire


@dataclass
class TGI(Wire):
    """Text Generation Inference: its `docs/openapi.json`, and issue 3058 on `response_format`.

    The words of its refusals are from tensorzero/tensorzero#709 and huggingface/text-generation-inference#2899.
    """

    owner: str | None = "tiny"
    version: str | None = None
    tokenize: bool = False
    allowed: bool = False
    echo: bool = False
    named: bool = False
    forms: tuple[str, ...] = ("json_object",)

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        refused, form = "", body.get("response_format")
        if form and form["type"] not in ("json", "json_object", "regex"):
            known = "expected one of `json`, `json_object`, `regex`"
            refused = f"response_format.type: unknown variant `{form['type']}`, {known}"
        elif form and "value" not in form:
            refused = "response_format: missing field `value`"
        elif path == "/tokenize":
            refused = "missing field `inputs`"
        if not refused:
            return None
        said = f"Failed to deserialize the JSON body into the target type: {refused} at line 1 column 168"
        return {":status": "422", "Content-Type": "text/plain; charset=utf-8"}, iter([said.encode()])

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        form = body.get("response_format")
        if form:
            body = {**body, "response_format": {"type": form["type"], "schema": form["value"]}}
        return super().reply(path, body)


@dataclass
class _LaptopServer(Wire):
    """Chat and one completion at a time, with JSON as the only constraint; its `json_object` may be any JSON."""

    version: str | None = None
    allowed: bool = False
    echo: bool = False
    named: bool = False
    forms: tuple[str, ...] = ("json_schema", "json_object")


@dataclass
class Ollama(_LaptopServer):
    """Ollama: docs.ollama.com/api-reference/get-version and docs.ollama.com/api/openai-compatibility.

    A prompt is one text; `json_object` is any JSON.
    """

    owner: str | None = "library"
    tokenize: bool = False
    lists: bool = False

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/api/version":
            return 200, {"version": "0.12.6"}
        if isinstance(body.get("prompt"), list):
            return 400, {"error": {"message": "prompt: a string is expected", "type": "invalid_request_error"}}
        found = super().reply(path, body)
        return _any_json(found) if body.get("response_format", {}).get("type") == "json_object" else found


@dataclass
class LlamaServer(_LaptopServer):
    """llama.cpp's own server: `tools/server/README.md`, and `server-common.cpp` on `response_format`.

    `/tokenize` takes `content` and gives no tokens of anything else; `json_object` without `schema` is any JSON.
    """

    owner: str | None = "llamacpp"

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/tokenize":
            return 200, {"tokens": []}
        if path == "/metrics":
            said = "This server does not support metrics endpoint. Start it with `--metrics`"
            return 501, {"error": {"code": 501, "message": said, "type": "not_supported_error"}}
        found = super().reply(path, body)
        return _any_json(found) if "value" in body.get("response_format", {}) else found


def _any_json(reply: tuple[int, dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    for choice in reply[1]["choices"]:
        choice["message"]["content"] = json.dumps({})
    return reply


@dataclass
class Dying(Wire):
    """Is gone once it was asked for a completion."""

    def fault_of(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        self.drop = True
        return super().fault_of(body)


KINDS: dict[str, type[Wire]] = {kind.__name__: kind for kind in (Wire, TGI, Ollama, LlamaServer, Dying)}


def wire_of(row: dict[str, Any]) -> Wire:
    """The server of a row of `tests/cases`; JSON has lists where a wire has tuples."""
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in row["wire"].items()}
    return KINDS[row.get("kind", "Wire")](**fields)
