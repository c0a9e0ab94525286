"""A small server that speaks the OpenAI wire as far as the probe and the engines read it.

What it honours is said by its fields, so that a test can be an old vLLM that ignores constraints, a gateway without
`/tokenize`, or a model whose template refuses a system turn. Tokens are characters.
"""

import json
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

TEXT = "Chest pain for two hours; ST elevation in II, III and aVF. ¿Qué arteria? 17 of 51 (33 %)."
"""The text by which models are told apart; only such requests hold it."""
NEUTRAL = {
    "top_p": (1.0,),
    "top_k": (-1, 0),
    "min_p": (0.0,),
    "repetition_penalty": (1.0,),
    "presence_penalty": (0.0,),
    "frequency_penalty": (0.0,),
}
"""Sampling field -> the values with which it changes nothing."""


@dataclass
class Wire:
    models: tuple[str, ...] = ("tiny",)
    version: str | None = "0.32.0"
    owner: str | None = None
    """What `/models` says of who owns the model; None if it says nothing."""
    asked: tuple[str, ...] = ()
    """Models that it answers as without listing them."""
    tokenize: bool = True
    system: bool = True
    repeats: bool = True
    chat: bool = True
    """Have a chat template, which a base model has not."""
    empty: bool = True
    """Take a system message without words."""
    allowed: bool = True
    lists: bool = True
    token_ids: bool = True
    schema: bool = True
    """Honour `response_format`."""
    forms: tuple[str, ...] = ("json_schema",)
    """Types of `response_format` that it takes; others are refused with `form_status`."""
    form_status: int = 422
    key: str | None = None
    context: int = 4096
    sight: Literal["refuses", "drops", "reads"] = "refuses"
    """What it makes of a picture."""
    echo: bool = True
    named: bool = True
    """Honour `logprob_token_ids`."""
    most_named: int = 128
    """What it was started with as `--max-logprobs`."""
    thought: str = ""
    """What it writes before JSON that it is held to."""
    drift: float = 0.0
    """Nats by which its log-probabilities are lower than those of other servers."""
    garble: str | None = None
    """How its log-probabilities are wrong, once it is past the probe: `nan`, `short`, `equal`, `other`, or `shifted`
    behind a token that opens every text; `texts`: they are right, and tokens are named by their texts."""
    refuse: dict[str, int] = field(default_factory=dict)
    """Path to the HTTP status that it fails with."""
    retry_after: str | None = None
    """What it asks for of who gets HTTP 429."""
    drop: bool = False
    """Close the connection of every completion without a reply."""
    reasoning: str | None = None
    switch: bool = False
    """Its chat template takes `enable_thinking` and `reasoning_effort`."""
    refused_fields: tuple[str, ...] = ()
    """Fields that it answers with HTTP 400."""
    fills: dict[str, float] = field(default_factory=dict)
    """Sampling values that it takes from the model's own file where a request leaves them out."""
    unread: tuple[str, ...] = ()
    """Sampling fields that it does not read."""
    metrics: str | None = None
    """What `/metrics` tells; None where there is none."""
    quotes: bool = False
    """Its refusals quote the request's headers."""
    moved: dict[str, str] = field(default_factory=dict)
    """Path to the address that it redirects to."""
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    """The bytes of each request's body."""
    keys: list[str | None] = field(default_factory=list)
    """The `Authorization` header of each request."""
    heads: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """The path and all headers of each request, their names in lower case."""
    address: str = ""

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.requests if asked == path]

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        """Headers and body of a reply that does not keep to the protocol; None: what `reply` says."""
        return None

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path in self.refuse:
            return self.refuse[path], _fault(f"refused with {self.refuse[path]}")
        if path == "/version" and self.version:
            return 200, {"version": self.version}
        if path == "/v1/models":
            known = {"max_model_len": 4096, **({"owned_by": self.owner} if self.owner else {})}
            return 200, {"data": [{"id": name, "root": f"none/{name}", **known} for name in self.models]}
        if self.tokenize and path == "/tokenize":
            if "messages" not in body:
                return 200, {"tokens": _ids(body["prompt"])}
            text = self.render(body["messages"], body.get("chat_template_kwargs"))
            if text is None:
                return 400, _fault("the template refuses")
            return 200, {"tokens": _ids(text), "token_strs": [*text] if body.get("return_token_strs") else None}
        if self.tokenize and path == "/detokenize":
            return 200, {"prompt": "".join(chr(token) for token in body["tokens"])}
        if path in ("/v1/completions", "/v1/chat/completions"):
            return self.fault_of(body) or (self._complete(body) if path == "/v1/completions" else self._chat(body))
        return 404, {"detail": "Not Found"}

    def fault_of(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if body.get("model") not in self.models + self.asked:
            return 404, _fault("no such model")
        if self.named and len(body.get("logprob_token_ids") or ()) > self.most_named:
            return 400, _fault(f"at most {self.most_named} tokens")
        if refused := [name for name in self.refused_fields if name in body]:
            return 400, _fault(f"{refused[0]} is not configured")
        return None

    def render(self, turns: list[dict[str, str]], told: dict[str, Any] | None = None) -> str | None:
        if not self.chat:
            return None
        roles = [turn["role"] for turn in turns]
        if (not self.system and "system" in roles) or (not self.repeats and any(map(str.__eq__, roles, roles[1:]))):
            return None
        if not self.empty and not all(turn["content"] for turn in turns):
            return None
        written = "".join(f"<{turn['role'][0]}>{turn['content']}\n" for turn in turns) + "<a>"
        told = told if told and self.switch else {}
        effort = f"<{told['reasoning_effort']}>" if "reasoning_effort" in told else ""
        return effort + written + {True: "<think>\n", False: "<think>\n\n</think>\n"}.get(told.get("thinking"), "")

    def _complete(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
        if any(len(prompt) > self.context for prompt in prompts):
            return 400, _fault(f"This model's maximum context length is {self.context} tokens.")
        prompts = ["".join(map(chr, prompt)) if isinstance(prompt, list) else prompt for prompt in prompts]
        choices = [self._completion(index, prompt, body) for index, prompt in enumerate(prompts)]
        return 200, {
            "id": "cmpl-1",
            "object": "text_completion",
            "created": 1,
            "model": (self.models + self.asked)[0],
            # The order is the indices', not that of the list.
            "choices": choices[::-1] if self.lists else choices[:1],
            "usage": {"prompt_tokens": sum(map(len, prompts)), "completion_tokens": len(prompts), "total_tokens": 1},
        }

    def _completion(self, index: int, prompt: str, body: dict[str, Any]) -> dict[str, Any]:
        text, allowed = f"x{self._drawn(body)}", body.get("allowed_token_ids")
        if allowed and self.allowed:
            text = chr(allowed[len(prompt) % len(allowed)])
        reply: dict[str, Any] = {"index": index, "text": text, "finish_reason": "length", "logprobs": None}
        if body.get("logprob_token_ids") and self.named:
            written = _write(allowed or [ord(text)], body) if self.allowed else [ord(text)]
            named = [
                self._named(body["logprob_token_ids"], _ids(prompt) + written[:step]) for step in range(len(written))
            ]
            reply["logprobs"] = {"tokens": [f"token_id:{token}" for token in written], "top_logprobs": named}
        elif body.get("echo") and self.echo and body.get("logprobs") is not None:
            reply["logprobs"] = self._echoed(_ids(prompt))
        if body.get("return_token_ids") and self.token_ids:
            reply |= {"token_ids": _ids(text), "prompt_token_ids": _ids(prompt)}
        return reply

    def _drawn(self, body: dict[str, Any]) -> str:
        """What sampling values change in a reply; nothing if all are neutral, or nothing is drawn."""
        told = {name: value for name, value in body.items() if name not in self.unread}
        values = {name: told.get(name, self.fills.get(name)) for name in NEUTRAL}
        changed = {name: value for name, value in values.items() if value is not None and value not in NEUTRAL[name]}
        return f" {changed}" if changed and body.get("temperature", 1.0) else ""

    def _named(self, tokens: list[int], before: list[int]) -> dict[str, float]:
        shift = 1 if self.garble == "other" else 0
        return {f"token_id:{token + shift}": self.logprob(token, before) for token in tokens}

    def _echoed(self, tokens: list[int]) -> dict[str, Any]:
        shift = 1 if self.garble == "other" else 0
        told = tokens[:-1] if self.garble == "short" else tokens
        names = [f"token_id:{token + shift}" for token in told]
        values = [None, *(self.logprob(told[place], told[:place]) for place in range(1, len(told)))]
        if self.garble in ("texts", "shifted"):
            names = list(map(chr, told))
        if self.garble == "shifted":
            names, values = ["<s>", *names[:-1]], [None, -3.0, *values[1:-1]]
        return {"tokens": names, "token_logprobs": values}

    def logprob(self, token: int, before: list[int]) -> float:
        """Nats of a token behind others, which all count: what is read at another place is another number."""
        value = -((token + 3 * sum(before)) % 7) - 0.5 - self.drift
        return {"nan": float("nan"), "equal": -1.0}.get(self.garble or "", value)

    def _chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        parts = [part for turn in body["messages"] if isinstance(turn["content"], list) for part in turn["content"]]
        pictures = sum(part["type"] == "image_url" for part in parts)
        if pictures and self.sight == "refuses":
            return 400, _fault(f"{self.models[0]} is not a multimodal model")
        prompt = self.render([turn | {"content": _words(turn["content"])} for turn in body["messages"]])
        if prompt is None:
            return 400, _fault("the template refuses")
        prompt += "#" * 16 * pictures * (self.sight == "reads")
        text = "hello"
        format_ = body.get("response_format") or {}
        if self.schema and format_ and format_["type"] not in self.forms:
            return self.form_status, _fault("response_format: unexpected type")
        schema = (format_.get("json_schema") or format_).get("schema")
        if schema and self.schema:
            text = self.thought + json.dumps({"answer": schema["properties"]["answer"]["enum"][-1]})
        message = {"role": "assistant", "content": text, "reasoning": self.reasoning}
        return 200, {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": (self.models + self.asked)[0],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": 1, "total_tokens": len(prompt) + 1},
        }


@dataclass
class HeldWire(Wire):
    """Answers no completion while `free` is not set, so that a test knows what waits."""

    free: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.free.set()

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/completions"):
            self.free.wait()
        return super().reply(path, body)


class Server(ThreadingHTTPServer):
    """Takes many connections at once, and says nothing of clients that hang up."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError | ValueError):  # what a client that hangs up leaves
            super().handle_error(request, client_address)


@contextmanager
def serving(wire: Wire, tls: ssl.SSLContext | None = None, port: int = 0) -> Iterator[Wire]:
    """Serve until the block ends, over TLS where a certificate is given; `wire.address` is the base address.

    Port 0 is any that is free.
    """
    with Server(("127.0.0.1", port), build_handler(wire)) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        wire.address = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield wire
        finally:
            server.shutdown()
            thread.join()


def build_handler(wire: Wire) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self) -> None:
            self._answer(b"{}")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, raw: bytes) -> None:
            body = json.loads(raw)
            wire.raw.append(raw)
            wire.requests.append((self.path, body))
            wire.keys.append(self.headers["Authorization"])
            wire.heads.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            if _answers_unlike_a_server(self, wire, body):
                return
            status, reply = wire.reply(self.path, body)
            if wire.key is not None and self.headers["Authorization"] != f"Bearer {wire.key}":
                status, reply = 401, _fault("Unauthorized")
            if wire.quotes and status != 200:
                reply = _fault(f"{reply}, asked with {dict(self.headers)}")
            data = json.dumps(reply).encode()
            if self.path == "/metrics" and wire.metrics is not None:
                status, data = 200, wire.metrics.encode()
            if self.path in wire.moved:
                status = 307
            self.send_response(status)
            if self.path in wire.moved:
                self.send_header("Location", wire.moved[self.path])
            if status == 429 and wire.retry_after is not None:
                self.send_header("Retry-After", wire.retry_after)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _answers_unlike_a_server(handler: BaseHTTPRequestHandler, wire: Wire, body: dict[str, Any]) -> bool:
    """Hang up, or send what does not keep to the protocol; False where a usual reply is to be sent."""
    unusual = wire.bytes_of(handler.path, body)
    if unusual is None and not (wire.drop and handler.path.endswith("/completions")):
        return False
    handler.close_connection = True
    if unusual is not None:
        headers, parts = unusual
        handler.send_response(int(headers.pop(":status", 200)))
        for name, value in {"Content-Type": "application/json", "Connection": "close", **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        for part in parts:
            handler.wfile.write(part)
            handler.wfile.flush()
    return True


def is_identifying(body: dict[str, Any]) -> bool:
    """Whether a request only finds out which model answers."""
    return TEXT in json.dumps([body.get("prompt"), body.get("messages")], ensure_ascii=False)


def _write(allowed: list[int], body: dict[str, Any]) -> list[int]:
    """What a mask and biases make it write: each allowed token once, by its bias, then the last one again."""
    bias = {int(token): value for token, value in (body.get("logit_bias") or {}).items()}
    order = sorted(allowed, key=lambda token: -bias.get(token, 0.0))
    return (order + order[-1:] * body["max_tokens"])[: body["max_tokens"]]


def _words(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _ids(text: str) -> list[int]:
    return [ord(character) for character in text]


def _fault(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "BadRequestError", "code": 400}}
