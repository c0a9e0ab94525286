"""Modules of one's own ask what plain DSPy asks: the same requests, retries, answers and errors, over a real wire."""

import asyncio
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import dspy
import pytest
from dspy.utils.callback import BaseCallback
from wire_server import is_identifying

import medexam
from scripted_engines import LAST_MADE

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
TEXT = "[[ ## answer ## ]]\nyés\n\n[[ ## completed ## ]]"


def replies(text=TEXT, *, finish="stop", usage=USAGE, **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return 200, {}, {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def refuses(status, **headers):
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, {"error": {"message": "no"}}


@contextmanager
def provider(script):
    """Answer from a list, the last of it for ever; gives the address and what a program asks."""
    left, requests = list(script), []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept = {name: self.headers[name] for name in ("Authorization", "Content-Type", "Accept", "User-Agent")}
            if is_identifying({"prompt": json.loads(body)}):
                status, headers, reply = replies()
            else:
                requests.append((kept, body))
                status, headers, reply = left.pop(0) if len(left) > 1 else left[0]
            data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1", requests
        finally:
            server.shutdown()


def model(address, **settings):
    given = {"api_base": address, "api_key": "k", "cache": False, "temperature": 0.0, "max_tokens": 9, "num_retries": 2}
    return dspy.LM("openai/m", **{**given, **settings})


class Waits(dspy.Module):
    """A module that only blocks."""

    def __init__(self, asked) -> None:
        super().__init__()
        self.asked = asked

    def forward(self, **inputs):
        return self.asked(**inputs)


def evaluate(kind, program, example, lm, **more):
    """Evaluate by DSPy's class or by ours; gives the outputs, None for an example that broke."""
    told = {"runs_dir": more["runs_dir"], "track": False} if kind is medexam.Evaluate else {"provide_traceback": False}
    evaluation = kind(devset=[example], metric=lambda *_: 1.0, num_threads=1, max_errors=9, **told)
    with dspy.context(lm=lm, adapter=None, callbacks=more.get("callbacks", [])):
        try:
            ((_, said, _),) = evaluation(program).results
        except medexam.MedExamError:
            return None
    return dict(said) or None


SCRIPTS = {
    "a reply": [replies()],
    "a cut reply": [replies("[[ ## answer ## ]]\nye", finish="length")],
    "thoughts": [replies(reasoning_content="hm")],
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
def test_an_evaluation_sends_and_brings_what_dspys_own_does(script, waits, tmp_path) -> None:
    outcomes = []
    for kind in (dspy.Evaluate, medexam.Evaluate):
        with provider(script) as (address, requests):
            program = dspy.Predict("question -> answer")
            program.demos = [dspy.Example(question="q", answer="ä")]
            program = Waits(program) if waits else program
            example = dspy.Example(question="Wé?").with_inputs("question")
            said = evaluate(kind, program, example, model(address), runs_dir=tmp_path)
            outcomes.append((said and said.get("answer"), requests))
    assert outcomes[0] == outcomes[1]


class Judge(dspy.Signature):
    """Say whether a claim holds."""

    claim: str = dspy.InputField(desc="one sentence")
    sources: list[str] = dspy.InputField()
    kind: Literal["a", "b"] = dspy.OutputField()
    holds: bool = dspy.OutputField()


@pytest.mark.parametrize(
    "settings",
    [
        {"top_p": 0.5, "seed": 3, "stop": ["x"]},
        {"temperature": None, "max_tokens": None},
        {"n": 2},
        {"temperature": 0.7, "rollout_id": 4},
        {"model_type": "responses"},
        pytest.param({"callbacks": [BaseCallback()]}, id="callbacks"),
    ],
    ids=str,
)
def test_settings_of_the_model_reach_the_wire_as_dspy_sends_them(settings, tmp_path) -> None:
    outcomes = []
    for kind in (dspy.Evaluate, medexam.Evaluate):
        with provider([replies("[[ ## kind ## ]]\nb\n\n[[ ## holds ## ]]\nTrue\n")]) as (address, requests):
            example = dspy.Example(claim="It holds.", sources=["one", "two"]).with_inputs("claim", "sources")
            lm = model(address, **settings)
            said = evaluate(kind, dspy.ChainOfThought(Judge), example, lm, runs_dir=tmp_path)
            outcomes.append((said and said.get("kind"), requests))
    assert outcomes[0] == outcomes[1]


def test_usage_is_counted_and_a_reply_in_dspys_cache_is_not_asked_for(tmp_path, monkeypatch) -> None:
    cache = dspy.clients.Cache(enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=str(tmp_path / "cache"))
    monkeypatch.setattr(dspy, "cache", cache)
    example = dspy.Example(question="q").with_inputs("question")
    with provider([replies()]) as (address, requests), dspy.context(lm=model(address, cache=True)):
        for name in ("first", "second"):
            evaluate = medexam.Evaluate(
                devset=[example], metric=lambda *_: 1.0, runs_dir=tmp_path, name=name, track=False
            )
            (said,) = evaluate(dspy.Predict("question -> answer")).run.predictions.values()
            assert said.text == "yés"
            assert name == "second" or (said.prompt_tokens, said.completion_tokens) == (7, 3)
    assert len(requests) == 1


LISTENS = {
    "callbacks": {"callbacks": [BaseCallback()]},
    "a trace": {"trace": []},
    "usage": {"track_usage": True},
    "history": {"disable_history": False},
}
PROGRAMS = [
    {"kind": "zero_shot", "answer_format": "guided"},
    {"kind": "few_shot"},
    {"kind": "chain_of_thought", "answer_format": "guided"},
    {"kind": "chain_of_thought", "samples": 3},
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
@pytest.mark.parametrize("listens", LISTENS.values(), ids=LISTENS)
def test_a_program_asks_and_answers_alike_whoever_listens(ask, question, program, listens) -> None:
    """In a run nobody listens; in a script somebody may."""
    drawn = {"temperature": 0.7, "seed": 1}
    run = ask(program, "It is the third one. {Answer: 3}", model=drawn)
    run.dialogues.clear()
    lm = medexam.lm(LAST_MADE, **drawn)
    for called in (False, True):
        made = medexam.build_program(program)
        with dspy.context(lm=lm, **listens):
            said = made(question=question) if called else asyncio.run(made.acall(question=question))
        assert said.answer == run.said.answer
        if listens.get("track_usage") and not called:
            tokens = said.get_lm_usage()["medexam/last_made"]
            assert tokens["prompt_tokens"] == run.said.prompt_tokens


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        ("transport", dspy.LMTransportError),
        ("server", dspy.LMServerError),
        ("timeout", dspy.LMTimeoutError),
        ("rate_limit", dspy.LMRateLimitError),
        ("context", dspy.ContextWindowExceededError),
    ],
)
def test_what_a_call_breaks_with_reaches_a_script_as_dspys_error(error, raised, tmp_path) -> None:
    (tmp_path / "replies.yaml").write_text(f"'*': {{error: {error}}}\n")
    lm = medexam.lm("scripted", path=tmp_path / "replies.yaml")
    for program in (dspy.Predict("question -> answer"), lambda **asked: lm(asked["question"])):
        with dspy.context(lm=lm), pytest.raises(raised, match=f"scripted {error} failure"):
            program(question="Why?")


def test_text_that_cannot_be_sent_is_refused(ask, tmp_path) -> None:
    (tmp_path / "replies.yaml").write_text("'*': x\n")
    lm = medexam.lm("scripted", path=tmp_path / "replies.yaml")
    with dspy.context(lm=lm), pytest.raises(ValueError, match="not valid Unicode"):
        dspy.Predict("question -> answer")(question="half \ud800")
