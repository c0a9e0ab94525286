"""What limits hold on the wire, by the command: of tokens, dollars, time and questions in flight."""

import json
import re
import threading
import time
from dataclasses import dataclass, field
from importlib import util
from typing import Any

import pytest
import yaml
from wire_server import Wire, serving

from medexam.retrievers import load_corpus
from medexam.serve import TIMING

COST = 400
"""Tokens of a question, by the server."""


@dataclass
class Slow(Wire):
    """Takes a moment for each request, and notes how many it had at once and what all replies cost."""

    tokenize: bool = False
    version: str | None = None
    status: int = 200
    most: int = 0
    usage: int = 0
    open: int = 0
    broken: int = 0
    """How many replies are still to be broken off."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        is_question = any("1." in str(turn.get("content")) for turn in body.get("messages") or ())
        if not is_question:
            return super().reply(path, body)
        if self.status != 200:
            return self.status, {"error": {"message": "too many requests"}}
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
        time.sleep(0.1)
        status, reply = super().reply(path, body)
        with self.lock:
            self.open -= 1
            self.usage += COST
            if self.broken:
                self.broken -= 1
                reply["choices"][0] |= {"finish_reason": "error", "native_finish_reason": "network_error"}
        reply["usage"] = {"prompt_tokens": COST - 1, "completion_tokens": 1, "total_tokens": COST}
        return status, reply


@pytest.fixture
def wire():
    with serving(Slow()) as server:
        yield server


@pytest.fixture
def write(tmp_path, wire):
    """`write()` makes a spec of sixty questions for the server, and gives its path."""

    def write(**changes):
        document = {
            "name": "limited",
            "dataset": {"name": "headqa_sample", "limit": 60},
            "model": {"engine": "vllm", "endpoints": [wire.address], "price": [1, 1]},
            "program": {"kind": "zero_shot", "max_tokens": 50},
        }
        path = tmp_path / "spec.yaml"
        path.write_text(yaml.safe_dump(document | changes))
        return path

    return write


@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("flag", "limit", "tokens"), [("--max-tokens", 6000, 6000), ("--max-cost", 0.006, 6000)])
def test_what_is_in_flight_counts_with_what_it_may_cost(medexam, write, wire, flag, limit, tokens, workers) -> None:
    code, _, err = medexam("run", write(), flag, limit, "--workers", workers)
    assert (code, 0 < wire.usage <= tokens) == (3, True)
    last = err.splitlines()[-1]
    assert f"the limit {flag} is reached" in last
    assert re.search(rf"; spent: \d+ calls, {wire.usage:,} tokens, \$0\.\d+, \d+\.\d minutes; medexam run", last)


def test_replies_that_were_broken_off_are_paid_too(medexam, write, wire, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(TIMING, "first_wait_s", 0.01)
    wire.broken = 2
    path = write(model={"engine": "litellm", "name": "openai/tiny", "endpoints": [wire.address], "price": [1, 1]})
    code, _, err = medexam("run", path, "--max-tokens", 6000)
    assert (code, wire.broken, wire.usage <= 6000) == (3, 0, True)
    assert f"calls, {wire.usage:,} tokens, $0." in err.splitlines()[-1]


@pytest.mark.parametrize("retry_after", ["926", None])
def test_a_wait_that_ends_behind_the_limit_of_time_ends_the_run(medexam, write, wire, retry_after) -> None:
    wire.status, wire.retry_after = 429, retry_after
    begun = time.monotonic()
    code, _, err = medexam("run", write(), "--max-minutes", "0.05")
    assert time.monotonic() - begun < 15
    assert (code, "the limit --max-minutes is reached: 60 questions still" in err.splitlines()[-1]) == (3, True)


def test_no_more_questions_are_in_flight_than_are_allowed(medexam, write, wire) -> None:
    assert medexam("run", write(), "--in-flight", 3)[0] == 0
    assert wire.most == 3


def test_a_plan_that_may_cost_more_than_its_limit_says_so(medexam, write) -> None:
    _, out, err = medexam("plan", write(), "--max-cost", "0.0001")
    assert re.search(r"warning: the plan may cost \$0\.\d+, and --max-cost is \$0\.0001", err)
    assert "Price, by the given price: " in out
    assert "may cost" not in medexam("plan", write(), "--max-cost", "5")[2]


def test_what_any_cell_needs_is_looked_for_before_the_first_request(
    medexam, write, wire, tmp_path, monkeypatch
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        "".join(json.dumps({"id": str(at), "title": "t", "content": f"word{at}"}) + "\n" for at in range(9))
    )
    assert load_corpus(str(corpus)).count == 9
    behind = {"kind": "retrieve_then_answer", "k": 2, "retriever": {"kind": "bm25", "corpus": str(corpus)}}
    path = write(matrix={"program": [{"kind": "zero_shot"}, behind]})
    find = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *more: None if name == "bm25s" else find(name, *more))
    code, _, err = medexam("run", path)
    assert (code, wire.usage) == (2, 0)
    assert "needs bm25s, so nothing is asked: pip install 'medexam[bm25]'" in err
