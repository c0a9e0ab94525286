"""Hosted providers as their documentation and their users' reports show them: bodies, status codes and headers.

The bodies lie in `providers/NAME.json`, beside the pages that show them. A wire reads a request in its provider's own
form and answers in it. Its model gives the last of the choices that it is held to, and else the first option.
"""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from wire_server import Wire, serving

FOLDER = Path(__file__).parent / "providers"
REPLY = "{Answer: 1}"


@dataclass
class Asked:
    """What a request asks, whatever its form."""

    messages: list[dict[str, Any]]
    max_tokens: int | None
    choices: list[str] | None = None
    """Those of a schema that the reply is held to."""
    by_tool: bool = False
    """Whether they are a tool's argument."""
    thinks: bool = True
    """Whether the request leaves the model to think."""
    as_json: bool = False
    """Whether the reply is any JSON object."""

    @property
    def picture_tokens(self) -> int:
        """Tokens of the pictures in the last message."""
        return 85 if self.messages and "iVBORw0KGgo" in str(self.messages[-1]) else 0

    @property
    def named(self) -> list[str]:
        """The choices that the last user message names in words."""
        texts = [str(message) for message in self.messages if message.get("role") == "user"]
        words = re.search(r"one of these (?:strings|and with nothing else): (.*?)\.", texts[-1])
        return re.findall(r'"(.*?)"', words[1].replace("\\", "")) if words else []


@cache
def recording(name: str) -> dict[str, Any]:
    """What is recorded of a provider; one whose API is `like` another's records what differs."""
    document = json.loads((FOLDER / f"{name}.json").read_text())
    if "like" not in document:
        return document
    other = recording(document["like"])
    merged = {part: {**other[part], **document.get(part, {})} for part in ("headers", "reply", "refusals")}
    return {**document, **merged}


@dataclass
class ProviderWire(Wire):
    """A provider; `fault` names the refusal that it answers every request with."""

    name: ClassVar[str]
    model_name: ClassVar[str]
    """As a spec names it."""
    variables: ClassVar[dict[str, str]]
    """Environment variables that litellm reads, without the address."""
    base: ClassVar[str] = "OPENAI_API_BASE"
    """The variable of the address."""
    tail: ClassVar[str] = "/v1"
    """What the address ends in."""
    thought: int = 0
    """Tokens that its model thinks."""
    held: bool = True
    """Its model is held to schemas and tools."""
    obeys: bool = True
    """Its model does what it is told in words."""
    prefills: bool = True
    """It takes a last message of the assistant's."""
    temperatures: tuple[float, ...] | None = None
    """Those that it takes; None: all."""
    unknown: tuple[str, ...] = ()
    """Fields that it refuses."""
    forms: tuple[str, ...] = ("json_schema", "json_object")
    """Types of `response_format` that it takes."""
    schema_beside: bool = False
    """Its `json_object` heeds a schema beside it."""
    forces_tools: bool = True
    """It takes a tool choice of `required`."""
    sees: bool = True
    """Its model sees; else it drops pictures."""
    fault: str | None = None
    questions: list[Asked] = field(default_factory=list)
    """What each request that it answered asks."""

    @property
    def environment(self) -> dict[str, str]:
        """What stands in the environment of who asks it."""
        return {**self.variables, self.base: self.address.removesuffix("/v1") + self.tail}

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]]:
        told = recording(self.name)
        refusal = self.fault or self.refusal(body)
        if refusal is not None:
            kind, _, what = refusal.partition(" ")
            status, document = told["refusals"][kind]["status"], told["refusals"][kind]["body"]
            headers = told["refusals"][kind].get("headers", {})
            reply = json.dumps(document).replace("{field}", what)
        else:
            asked = self.read(body)
            self.questions.append(asked)
            status, headers, reply = 200, {}, json.dumps(self.write(asked, json.loads(json.dumps(told["reply"]))))
        return {":status": str(status), **told["headers"], **headers}, iter([reply.encode()])

    def refusal(self, body: dict[str, Any]) -> str | None:
        """The refusal of a field or a message, and which field; None if it takes all."""
        refused = next((name for name in self.unknown if name in body), None)
        if refused is not None:
            return f"field {refused}"
        form = (body.get("response_format") or {}).get("type")
        if form is not None and form not in self.forms:
            return f"format {form}"
        if body.get("tool_choice") == "required" and not self.forces_tools:
            return "field tool_choice"
        temperature = self.temperature(body)
        if self.temperatures is not None and temperature is not None and temperature not in self.temperatures:
            return "temperature"
        last = self.read(body).messages[-1]
        return "prefill" if not self.prefills and last.get("role") in ("assistant", "model") else None

    def temperature(self, body: dict[str, Any]) -> float | None:
        return body.get("temperature")

    def text(self, asked: Asked) -> str:
        if asked.choices and self.held:
            return json.dumps({"answer": asked.choices[-1]})
        if not asked.named or not self.obeys:
            return REPLY
        return json.dumps({"answer": asked.named[-1]}) if asked.as_json else asked.named[-1]

    def thinks_for(self, asked: Asked) -> int:
        return self.thought if asked.thinks else 0

    def is_cut(self, asked: Asked) -> bool:
        """Whether thinking takes the whole budget."""
        return asked.max_tokens is not None and 0 < asked.max_tokens <= self.thinks_for(asked)

    def read(self, body: dict[str, Any]) -> Asked:
        form = body.get("response_format") or {}
        schema = form.get("json_schema", form if self.schema_beside else {}).get("schema")
        tools = body.get("tools")
        if tools:
            schema = tools[0]["function"]["parameters"]
        return Asked(
            messages=body["messages"],
            max_tokens=body.get("max_completion_tokens", body.get("max_tokens")),
            choices=schema["properties"]["answer"]["enum"] if schema else None,
            by_tool=bool(tools),
            thinks=(body.get("thinking") or {}).get("type") != "disabled",
            as_json=form.get("type") == "json_object",
        )

    def write(self, asked: Asked, reply: dict[str, Any]) -> dict[str, Any]:
        choice, text = reply["choices"][0], self.text(asked)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if asked.by_tool and self.held:
            function = {"name": "answer", "arguments": text}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        if self.is_cut(asked):
            message = {"role": "assistant", "content": ""}
            choice["finish_reason"] = "length"
        choice["message"] = message
        reply["usage"]["prompt_tokens"] += asked.picture_tokens * self.sees
        if thought := self.thinks_for(asked):
            reply["usage"]["completion_tokens_details"] = {"reasoning_tokens": thought}
            reply["usage"]["completion_tokens"] += thought
        return reply


@contextmanager
def serve_provider(wire: ProviderWire) -> Iterator[ProviderWire]:
    """Serve a provider on this machine, which litellm asks instead of the real one; no other machine is found."""
    find = socket.getaddrinfo

    def find_here(host: str | None, *arguments: Any, **settings: Any) -> Any:
        if host not in ("127.0.0.1", "localhost", None):
            raise socket.gaierror(f"a test looks for {host}")
        return find(host, *arguments, **settings)

    with serving(wire), pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", find_here)
        for name, value in wire.environment.items():
            patch.setenv(name, value)
        yield wire
