"""Replies of plain HTTP calls as objects, or as the errors that DSPy knows."""

from email.utils import formatdate
from time import time

import httpx
import pytest

from medexam.errors import (
    AuthError,
    BillingError,
    CallError,
    CallTimeoutError,
    InvalidRequestError,
    ProviderError,
    RateLimitError,
    ServerError,
)
from medexam.serve.network.http_calls import reply_object, retry_after_s
from medexam.text import remember_secret


async def call(answer: httpx.Response, **headers: str) -> dict:
    transport = httpx.MockTransport(lambda _request: answer)
    async with httpx.AsyncClient(transport=transport, headers=headers) as client:
        return await reply_object(client.get("http://server/x"), "/x")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequestError),
        (401, AuthError),
        (402, BillingError),
        (403, AuthError),
        (404, InvalidRequestError),
        (408, CallTimeoutError),
        (418, ProviderError),
        (422, InvalidRequestError),
        (429, RateLimitError),
        (500, ServerError),
        (504, CallTimeoutError),
        (599, ServerError),
    ],
)
async def test_a_status_is_the_error_that_dspy_has_for_it(status: int, kind: type[CallError]) -> None:
    remember_secret("s3cret")
    answer = httpx.Response(status, json={"error": {"message": "no, s3cret"}}, headers={"Retry-After": "7"})
    with pytest.raises(CallError) as raised:
        await call(answer, Authorization="Bearer s3cret")
    assert type(raised.value) is kind
    assert (raised.value.status, raised.value.retry_after) == (status, 7.0)
    assert raised.value.message.startswith("no, [hidden]")
    assert "s3cret" not in raised.value.message


@pytest.mark.parametrize(
    ("text", "message"), [("", "the reply is not JSON "), ("[1]", "the reply is not a JSON object"), ('{"a": 1}', "")]
)
async def test_only_an_object_is_a_reply(text: str, message: str) -> None:
    if not message:
        assert await call(httpx.Response(200, text=text)) == {"a": 1}
        return
    with pytest.raises(ServerError, match=f"^/x: {message}"):
        await call(httpx.Response(200, text=text))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *[(unusable, None) for unusable in (None, "", "soon", "-1", "nan", "inf")],
        ("0.5", 0.5),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_a_pause_that_a_server_asks_for(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header) == seconds


def test_a_pause_until_a_date() -> None:
    assert retry_after_s(formatdate(time() + 300, usegmt=True)) == pytest.approx(300, abs=60)


FORMS = {
    # huggingface/text-generation-inference#2899 and huggingface/huggingface_hub#2744: HTTP 422, plain text
    "TGI": (
        "text/plain; charset=utf-8",
        "Failed to deserialize the JSON body into the target type: response_format: missing field `value` at line 1",
        "response_format: missing field `value` at line 1",
    ),
    # FastAPI's own form of HTTP 422, which llama-cpp-python's server and `transformers serve` send
    "FastAPI": (
        "application/json",
        '{"detail": [{"type": "literal_error", "loc": ["body", "response_format", "type"], "msg": "Should be text"}]}',
        "body.response_format.type: Should be text",
    ),
    # FastAPI's `HTTPException`
    "FastAPI, in words": ("application/json", '{"detail": "no such model"}', "no such model"),
    # Ollama, quoted in open-webui/open-webui#11906
    "Ollama": (
        "application/json",
        '{"error": "model \\"x\\" not found, try pulling it first"}',
        "try pulling it first",
    ),
    # SGLang's and older vLLM's `ErrorResponse`
    "SGLang": (
        "application/json",
        '{"object": "error", "message": "Failed to compile the grammar", "type": "BadRequestError", "code": 400}',
        "Failed to compile the grammar",
    ),
    # llama.cpp's server, `format_error_response`
    "llama.cpp": (
        "application/json",
        '{"error": {"code": 400, "message": "Failed to parse grammar", "type": "invalid_request_error"}}',
        "Failed to parse grammar",
    ),
    "a proxy's page": ("text/html", "<html><body>Bad Gateway</body></html>", "HTTP 422"),
}


@pytest.mark.parametrize("server", FORMS)
async def test_what_a_refusal_says_is_kept_whole(server: str) -> None:
    kind, body, said = FORMS[server]
    with pytest.raises(InvalidRequestError) as raised:
        await call(httpx.Response(422, content=body.encode(), headers={"Content-Type": kind}))
    assert raised.value.message.endswith(said)
