"""A provider behind `engine: litellm` that refuses in any form: one line, exit code 2 or 3, and no key in it."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from wire_server import Wire, serving

from generated.boundary import Boundary
from generated.commands import EndError, call
from generated.elsewhere import ending
from generated.mutations import PARTS, changed_json
from generated.names import check_shown
from medexam.serve import TIMING

KEY = "sk-proj-generated0123456789abcdef"
VARIABLE = "GENERATED_API_KEY"
_MESSAGE = f"Incorrect API key provided: {KEY}. You can find your API key at https://example.org."
FAULTS: tuple[Any, ...] = (
    {"error": {"message": _MESSAGE, "type": "invalid_request_error", "param": None, "code": "invalid_api_key"}},
    {
        "error": {
            "message": "You exceeded your current quota",
            "type": "insufficient_quota",
            "code": "insufficient_quota",
        }
    },
    {
        "error": {
            "message": "The model `tiny` does not exist",
            "type": "invalid_request_error",
            "code": "model_not_found",
        }
    },
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    {"error": f"Bearer {KEY}"},
    {"error": [{"message": _MESSAGE}]},
    {"message": "Too many requests", "retry": {"after": 1}},
    {"detail": [{"loc": ["body", "model"], "msg": "field required", "type": "value_error"}]},
    {"statusCode": 401, "message": _MESSAGE},
    {"errors": {}},
    [],
    "refused",
    None,
)
BODIES = (b"", b" ", b"null", b"<html><body>Sign in</body></html>", f"key {KEY}\n\nsays no".encode(), *PARTS)
HEADERS: Mapping[str, tuple[str, ...]] = {
    "Content-Type": ("application/json", "text/html", "", "application/json; charset=none", "text/event-stream"),
    "Retry-After": ("0", "-1", "x", "1e999", "Wed, 21 Oct 2015 07:28:00 GMT", "99999999999999999999"),
    "WWW-Authenticate": ("Bearer", f'Bearer realm="{KEY}"'),
    "Content-Encoding": ("gzip", "br", "none"),
    "x-ratelimit-remaining-requests": ("0", "x"),
    "x-should-retry": ("true", "false"),
    "Location": ("http://127.0.0.1:1/v1", "/v1", "http://["),
    "x-request-id": (KEY, "\u00e9"),
}
STATUSES = (400, 401, 402, 403, 404, 405, 408, 409, 413, 418, 422, 429, 451, 498, 500, 501, 502, 503, 504, 529, 599)
_SUCCESSES = (200, 201, 204, 301, 307, 308)


@dataclass
class Refusing(Wire):
    """A server that answers every question with one refusal, from some request on."""

    status: int = 401
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    after: int = 0

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        if len(self.requests) <= self.after:
            return None
        return {":status": str(self.status), **self.headers}, iter([self.content])


def refusals(folder: Path, closing: ExitStack) -> Boundary:
    """Refusals by status, body and headers, when the model is looked at or while its questions are asked."""
    wire = closing.enter_context(serving(Refusing()))
    closing.enter_context(patch.object(TIMING, "attempts", 1))
    closing.enter_context(patch.dict("os.environ", {VARIABLE: KEY}))
    spec = folder / "refused.json"
    bodies = st.one_of(
        changed_json(FAULTS), st.sampled_from(FAULTS).map(json.dumps).map(str.encode), st.sampled_from(BODIES)
    )
    headers = st.sampled_from(list(HEADERS)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(HEADERS[name]))
    )
    inputs = st.tuples(
        st.one_of(st.sampled_from(STATUSES), st.sampled_from(STATUSES), st.sampled_from(_SUCCESSES)),
        bodies,
        st.lists(headers, max_size=2).map(dict),
        st.sampled_from([0, 0, 1, 3, 6]),
        st.sampled_from(["openai/tiny", "hosted_vllm/tiny"]),
        st.sampled_from(["free", "guided"]),
    )

    def trial(one: tuple[int, bytes, dict[str, str], int, str, str]) -> None:
        wire.status, wire.content, wire.headers, wire.after, name, form = one
        wire.requests.clear()
        model = {
            "engine": "litellm",
            "name": name,
            "endpoints": [wire.address],
            "api_key_env": VARIABLE,
            "timeout_s": 5,
        }
        program = {"kind": "zero_shot", "answer_format": form}
        dataset = {"name": "headqa_sample", "limit": 2}
        spec.write_text(json.dumps({"name": "refused", "dataset": dataset, "model": model, "program": program}))
        shutil.rmtree(folder / "runs", ignore_errors=True)
        with ending():
            ended = call("run", spec, "--runs-dir", folder / "runs")
        check_shown(ended, "run")
        if len(wire.requests) <= wire.after:
            return
        if ended.code not in (2, 3):
            raise EndError(f"exit code {ended.code}", ended.err)
        said = [line for line in ended.err.splitlines() if line.startswith("medexam: ") and ": warning: " not in line]
        if len(said) != 1:
            raise EndError(f"{len(said)} lines say why", ended.err)
        kept = "".join(path.read_text(errors="replace") for path in folder.glob("runs/*/*.json*"))
        if KEY in ended.out + ended.err + kept:
            raise EndError("a key is quoted", ended.err)

    return Boundary(inputs, trial)
