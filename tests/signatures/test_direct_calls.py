"""A plain `dspy.LM` asked directly sends, reads, retries and remembers what DSPy's own call does, over a real wire."""

import asyncio
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import dspy
import pytest
from dspy.utils.callback import BaseCallback

from medexam.dspy_internals import DirectCalls, is_plain_lm
from medexam.signatures.chat_in_bulk import ChatInBulk

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
TEXT = "[[ ## answer ## ]]\nyés\n\n[[ ## completed ## ]]"


def replies(text=TEXT, *, status=200, finish="stop", usage=USAGE, headers=(), **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return (
        status,
        dict(headers),
        {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage},
    )


def refuses(status, **headers):
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, {"error": {"message": "no"}}


class Provider:
    """A server that answers from a list, the last of it for ever, and keeps what it was asked."""

    def __init__(self, script) -> None:
        self.script = list(script)
        self.requests = []

    def answer(self, headers, body):
        kept = {name: headers[name] for name in ("Authorization", "Content-Type", "Accept", "User-Agent")}
        self.requests.append((kept, body))
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


@contextmanager
def serving(script):
    provider = Provider(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status, headers, body = provider.answer(self.headers, self.rfile.read(int(self.headers["Content-Length"])))
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        provider.address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield provider
        finally:
            server.shutdown()


class Judge(dspy.Signature):
    """Say whether a claim holds."""

    claim: str = dspy.InputField(desc="one sentence")
    sources: list[str] = dspy.InputField()
    kind: Literal["a", "b"] = dspy.OutputField()
    holds: bool = dspy.OutputField()


def ask(adapter, program, inputs, lm, *, waits, **settings):
    """Return what came out: the outputs, or the kind and the words of the exception; and the tokens that were told."""
    tracker = dspy.utils.usage_tracker.UsageTracker()
    told = {"lm": lm, "adapter": adapter, "disable_history": True, "trace": None, "usage_tracker": tracker, **settings}
    with dspy.context(**told):
        try:
            outcome = program(**inputs) if waits else asyncio.run(program.acall(**inputs))
            outcome = dict(outcome)
        except Exception as error:
            outcome = (type(error), str(error))
    return outcome, dict(tracker.usage_data)


@pytest.fixture
def directly(monkeypatch):
    """What came of each call that was to be made directly: whether it was."""
    made = []
    own_ask, own_wait = DirectCalls.ask, DirectCalls.ask_blocking

    async def spy(self, *arguments):
        try:
            outputs = await own_ask(self, *arguments)
        except Exception:
            made.append(True)
            raise
        made.append(outputs is not None)
        return outputs

    def spy_blocking(self, *arguments):
        try:
            outputs = own_wait(self, *arguments)
        except Exception:
            made.append(True)
            raise
        made.append(outputs is not None)
        return outputs

    monkeypatch.setattr(DirectCalls, "ask", spy)
    monkeypatch.setattr(DirectCalls, "ask_blocking", spy_blocking)
    return made


def build_lm(provider, **settings):
    given = {
        "api_base": provider.address,
        "api_key": "k",
        "cache": False,
        "temperature": 0.0,
        "max_tokens": 9,
        "num_retries": 2,
    }
    return dspy.LM("openai/m", **{**given, **settings})


SCRIPTS = {
    "a reply": [replies()],
    "a cut reply": [replies("[[ ## answer ## ]]\nye", finish="length")],
    "thoughts": [replies(reasoning_content="hm")],
    "a refusal": [replies(None, refusal="I decline")],
    "no words": [replies("")],
    "no usage": [replies(usage=None)],
    "details of usage": [replies(usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 4}})],
    "other words": [replies("yes"), replies('{"answer": "yes"}')],
    "other words for ever": [replies("yes")],
    "a busy server": [refuses(429, Retry_After="0"), replies()],
    "a broken server": [refuses(500, Retry_After="0"), refuses(503, Retry_After="0"), replies()],
    "a broken server for ever": [refuses(500, Retry_After="0")],
    "a bad request": [refuses(400)],
    "a wrong key": [refuses(401)],
    "no JSON": [(200, {}, b"<html>")],
    "no choices": [(200, {}, {"choices": []})],
    "an error of status 200": [(200, {"Retry-After": "0"}, {"error": {"message": "overloaded", "code": 503}})],
}


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "awaits"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_it_sends_and_brings_what_dspys_own_call_does(script, waits, directly) -> None:
    outcomes = []
    for adapter in (dspy.ChatAdapter(), ChatInBulk()):
        with serving(script) as provider:
            program = dspy.Predict("question -> answer")
            program.demos = [dspy.Example(question="q", answer="ä")]
            outcome = ask(adapter, program, {"question": "Wé?"}, build_lm(provider), waits=waits)
            outcomes.append((outcome, provider.requests))
    assert outcomes[0] == outcomes[1]
    assert directly == [True]


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "awaits"])
@pytest.mark.parametrize(
    ("settings", "is_direct"),
    [
        ({"top_p": 0.5, "seed": 3, "stop": ["x"]}, True),
        ({"temperature": None, "max_tokens": None}, True),
        ({"n": 2}, False),
        ({"temperature": 0.7, "rollout_id": 4}, True),
        ({"model_type": "responses"}, False),
    ],
    ids=str,
)
def test_settings_of_the_model_reach_the_wire_as_dspy_sends_them(settings, is_direct, waits, directly) -> None:
    outcomes = []
    for adapter in (dspy.ChatAdapter(), ChatInBulk()):
        script = [replies("[[ ## kind ## ]]\nb\n\n[[ ## holds ## ]]\nTrue\n")]
        with serving(script) as provider:
            lm = build_lm(provider, **settings)
            inputs = {"claim": "It holds.", "sources": ["one", "two"]}
            outcome = ask(adapter, dspy.ChainOfThought(Judge), inputs, lm, waits=waits)
            outcomes.append((outcome, provider.requests))
    assert outcomes[0] == outcomes[1]
    assert directly == [is_direct]


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "awaits"])
def test_history_and_cache_are_dspys(waits, directly, monkeypatch, tmp_path) -> None:
    histories, outcomes = [], []
    for place, adapter in enumerate((dspy.ChatAdapter(), ChatInBulk())):
        cache = dspy.clients.Cache(
            enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(tmp_path / str(place))
        )
        monkeypatch.setattr(dspy, "cache", cache)
        with serving([replies()]) as provider:
            lm, program = build_lm(provider, cache=True), dspy.Predict("question -> answer")
            settings = {"waits": waits, "disable_history": False}
            outcomes += [
                (ask(adapter, program, {"question": "q"}, lm, **settings), len(provider.requests)) for _ in range(2)
            ]
            # Where the server listens is another one each time.
            kept = (
                "prompt",
                "messages",
                "outputs",
                "usage",
                "cost",
                "model",
                "response_model",
                "model_type",
                "request",
            )
            histories.append([{name: entry.get(name) for name in kept} for entry in lm.history])
            assert len(program.history) == 2
    assert outcomes[:2] == outcomes[2:]
    assert histories[0] == histories[1]
    assert len(histories[0]) == 2
    assert directly == [True, True]


class Own(dspy.LM):
    def forward(self, prompt=None, messages=None, **options):
        raise NotImplementedError


def test_whoever_changes_or_hears_a_call_gets_dspys_own(directly, monkeypatch) -> None:
    with serving([replies()]) as provider:
        lm = build_lm(provider)
        assert is_plain_lm(lm)
        changed = lm.copy()
        changed.aforward = lm.aforward
        assert not is_plain_lm(changed)
        assert not is_plain_lm(Own("openai/m"))
        assert not is_plain_lm(build_lm(provider, callbacks=[BaseCallback()]))
        outcome, _ = ask(
            ChatInBulk(),
            dspy.Predict("question -> answer"),
            {"question": "q"},
            lm,
            waits=False,
            callbacks=[BaseCallback()],
        )
        assert outcome == {"answer": "yés"}
        assert directly == []
        for method in ("acall", "__call__"):
            with monkeypatch.context() as patch:
                patch.setattr(dspy.BaseLM, method, lambda self, *_, **__: [TEXT])
                assert not is_plain_lm(lm)
