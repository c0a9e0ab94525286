"""A server that answers as no server should: without sense, or with numbers and texts that fit nowhere."""

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wire_server import Wire


@dataclass
class HostileWire(Wire):
    """`how` it answers what `paths` ask; everything else it answers as the wire of the tests does."""

    how: str = ""
    paths: tuple[str, ...] = ("/v1/completions", "/v1/chat/completions")

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        """Headers and body of a reply that is no JSON of the protocol; None: the usual one."""
        if path not in self.paths or not self.how:
            return None
        return RAW[self.how](self, self.reply(path, body)[1])


def _drip(wire: HostileWire, usual: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]]:
    def drops() -> Iterator[bytes]:
        while True:
            time.sleep(0.2)
            yield b" "

    return {}, drops()


def _text(text: str) -> Any:
    return lambda wire, usual: ({}, iter([text.encode()]))


def _changed(change: Any) -> Any:
    def reply(wire: HostileWire, usual: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]]:
        return {}, iter([json.dumps(change(usual)).encode()])

    return reply


def _usage(value: Any) -> Any:
    return _changed(lambda usual: {**usual, "usage": dict.fromkeys(("prompt_tokens", "completion_tokens"), value)})


def _say(text: str | None) -> Any:
    def change(usual: dict[str, Any]) -> dict[str, Any]:
        choices = [
            {
                **choice,
                **({"message": {"role": "assistant", "content": text}} if "message" in choice else {"text": text}),
            }
            for choice in usual.get("choices", ())
        ]
        return {**usual, "choices": choices}

    return _changed(change)


def _choice(**fields: Any) -> Any:
    return _changed(lambda usual: {**usual, "choices": [{**one, **fields} for one in usual.get("choices", ())]})


RAW = {
    "drip": _drip,
    "deep": _text("[" * 200_000),
    "page": _text("<html>busy</html>"),
    "list": _text("[1, 2]"),
    "empty object": _text("{}"),
    "null": _text("null"),
    "large id": _text('{"id": ' + "9" * 6000 + "}"),
    "null content": _say(None),
    "abort": _choice(finish_reason="abort"),
    "error": _choice(finish_reason="error"),
    "unknown end": _choice(finish_reason="gave_up"),
    "refused": _choice(message={"role": "assistant", "content": None, "refusal": "I cannot help."}),
    "filtered": _choice(message={"role": "assistant", "content": None}, finish_reason="content_filter"),
    "cut": _choice(finish_reason="max_tokens"),
    "infinite": _changed(lambda usual: {**usual, "cost": math.inf}),
    "choices": _changed(lambda usual: {**usual, "choices": 7}),
    "places": _choice(logprobs={"top_logprobs": [5]}),
    "ids": _choice(token_ids=5, prompt_token_ids=7),
    "texts": _choice(text={"a": 1}),
    "surrogate": _say("{Answer: 1} \ud800 \x1b[31mred"),
    "large usage": _usage(10**30),
    "negative usage": _usage(-5),
    "text usage": _usage("many"),
    "name": _changed(lambda usual: {**usual, "model": "\x1b[31m\ud800" + "x" * 100_000}),
}
