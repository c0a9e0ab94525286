"""A batch that is refilled: each reply is what transformers writes for its prompt alone."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from asked import complete_blocking
from medexam.dspy_requests import read_dialogue
from medexam.serve import LocalModel, find_weights
from medexam.serve.local_model.batches import BatchLimits
from medexam.serve.local_model.generation import ReplyJob, WrittenReply
from medexam.serve.local_model.refilling import ReplyWriter
from medexam.serve.local_model.sampling import TokenSampling
from medexam.specs import ModelSpec
from waiting import BACKSTOP_S, until

pytestmark = pytest.mark.model

OPENING = "You are an expert in medicine. Answer the question in a few words, and say no more than was asked of you.\n"
QUESTIONS = [
    "What is the capital of France?",
    "Name the hormone that lowers blood glucose.",
    "Which vitamin prevents scurvy, and in which fruit is there much of it?",
    "Count to five.",
    "What is DNA?",
    "Name the largest artery of the human body, which leaves the left ventricle of the heart.",
    "Is water wet?",
    "Say yes.",
]
BUDGETS = (3, 14, 6, 10, 1, 12, 8, 5)


@pytest.fixture(scope="module")
def model(tiny_llama: Path) -> LocalModel:
    spec = ModelSpec(path=tiny_llama, dtype="float32")
    return LocalModel(spec, find_weights(spec))


@dataclass(eq=False)
class Ticket:
    job: ReplyJob
    replies: list[WrittenReply] = field(default_factory=list)
    error: Exception | None = None
    given_up: bool = False

    def claim(self) -> bool:
        return not self.given_up

    def settle(self, replies: list[WrittenReply]) -> None:
        assert not self.replies, "settled twice"
        self.replies = replies

    def fail(self, error: Exception) -> None:
        self.error = error


def job_of(model: LocalModel, question: str, budget: int, **fields) -> ReplyJob:
    text = model.render([{"role": "user", "content": OPENING + question}], "")
    known = {"stop": (), "sampling": TokenSampling(), "seed": None, **fields}
    return ReplyJob(model.encode([text])[0], budget, **known)


def written_alone(model: LocalModel, job: ReplyJob) -> list[int]:
    """transformers' own greedy reply to one prompt."""
    ids = torch.tensor([job.prompt])
    with torch.inference_mode():
        output = model.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=job.budget,
            do_sample=False,
            eos_token_id=sorted(model.ends),
            pad_token_id=model.pad,
        )
    found: list[int] = output[0, ids.shape[1] :].tolist()
    return found


class _Steps:
    """Counts what the model computes."""

    def __init__(self, model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []
        forward = model.model.forward

        def counted(*args, **kwargs):
            # A shared opening is read by a call without the keyword.
            if "input_ids" in kwargs and kwargs["input_ids"].shape[1] == 1:
                self.rows.append(len(kwargs["input_ids"]))
            return forward(*args, **kwargs)

        monkeypatch.setattr(model.model, "forward", counted)


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_replies_are_those_of_each_prompt_alone(model, monkeypatch, rows: int) -> None:
    texts = []
    monkeypatch.setattr("medexam.serve.local_model.refilling.to_reply", lambda _, job, tokens: texts.append(tokens))
    tickets = [Ticket(job_of(model, *each)) for each in zip(QUESTIONS, BUDGETS, strict=True)]
    expected = [written_alone(model, ticket.job) for ticket in tickets]
    assert len({len(tokens) for tokens in expected}) > 3
    steps = _Steps(model, monkeypatch)
    ReplyWriter(model, BatchLimits(300, 8), BatchLimits(10_000, rows)).write(tickets, list)
    assert sorted(texts) == sorted(expected)
    assert max(steps.rows) <= rows
    if rows == 3:
        # A batch that waits for its longest reply takes 26 steps: 5 + 9 + 13 of the longest of three, less the first.
        assert len(steps.rows) < 26


def test_stop_strings_samples_and_seeds(model) -> None:
    drawn = TokenSampling(temperature=0.8, top_p=0.9)
    fields = {"sampling": drawn, "seed": 5, "stop": ("at",), "samples": 3}
    jobs = [job_of(model, question, 12, **fields) for question in QUESTIONS[:4]]
    found = []
    for rows in (2, 5, 12):
        tickets = [Ticket(job) for job in jobs]
        ReplyWriter(model, BatchLimits(2_048, 32), BatchLimits(10_000, rows)).write(tickets, list)
        found.append([ticket.replies for ticket in tickets])
    assert found[0] == found[1] == found[2]
    replies = [reply for of_one in found[0] for reply in of_one]
    assert len(replies) == 12
    assert all("at" not in reply.text for reply in replies)
    assert {reply.finish_reason for reply in replies} == {"stop", "length"}
    assert len({reply.text for reply in replies}) > 6


def test_the_longest_replies_outgrow_the_room(model, monkeypatch) -> None:
    monkeypatch.setattr("medexam.serve.local_model.growing_cache.SLACK", 2)
    texts = []
    monkeypatch.setattr("medexam.serve.local_model.refilling.to_reply", lambda _, job, tokens: texts.append(tokens))
    tickets = [Ticket(job_of(model, question, 12)) for question in QUESTIONS[:3]]
    ReplyWriter(model, BatchLimits(2_048, 32), BatchLimits(10_000, 2)).write(tickets, list)
    assert sorted(texts) == sorted(written_alone(model, ticket.job) for ticket in tickets)


def test_what_comes_meanwhile_joins(model) -> None:
    first, later, gone = (Ticket(job_of(model, question, 9)) for question in QUESTIONS[:3])
    gone.given_up = True
    came = [[later, gone], []]
    ReplyWriter(model, BatchLimits(2_048, 32), BatchLimits(10_000, 4)).write(
        [first], lambda: came.pop(0) if came else []
    )
    assert first.replies
    assert later.replies
    assert not gone.replies
    assert gone.error is None


def test_too_little_memory_begins_anew_with_fewer_rows(model, monkeypatch) -> None:
    forward = model.model.forward

    def fail(*args, **kwargs):
        if len(kwargs.get("input_ids", ())) > 2:
            raise torch.OutOfMemoryError("too many rows")
        return forward(*args, **kwargs)

    tickets = [Ticket(job_of(model, question, 4)) for question in QUESTIONS]
    ReplyWriter(model, BatchLimits(300, 2), BatchLimits(10_000, 2)).write(tickets, list)
    expected = [ticket.replies for ticket in tickets]
    monkeypatch.setattr(model.model, "forward", fail)
    again = [Ticket(ticket.job) for ticket in tickets]
    ReplyWriter(model, BatchLimits(300, 2), BatchLimits(10_000, 8)).write(again, list)
    assert [ticket.replies for ticket in again] == expected
    monkeypatch.setattr(model.model, "forward", lambda *_, **__: (_ for _ in ()).throw(torch.OutOfMemoryError("none")))
    alone = Ticket(tickets[0].job)
    ReplyWriter(model, BatchLimits(300, 2), BatchLimits(10_000, 8)).write([alone], list)
    assert isinstance(alone.error, torch.OutOfMemoryError)


def test_requests_that_come_while_replies_are_written(tiny_engine, ask, monkeypatch) -> None:
    """Choices are answered at once, and replies of other settings afterwards."""
    question = "What is the capital of France?"
    alone = complete_blocking(tiny_engine, ask(question, max_tokens=4)).text
    begun, all_asked = threading.Event(), threading.Event()
    forward = tiny_engine._model.model.forward

    def wait_once(*args, **kwargs):
        begun.set()
        assert all_asked.wait(BACKSTOP_S)
        return forward(*args, **kwargs)

    monkeypatch.setattr(tiny_engine._model.model, "forward", wait_once)
    futures = {"long": tiny_engine.submit(read_dialogue(ask("Tell me a long story.", max_tokens=20)))}
    assert begun.wait(BACKSTOP_S)
    futures["choice"] = tiny_engine.submit(read_dialogue(ask("Which?", choice=["1", "2"])))
    futures["same"] = tiny_engine.submit(read_dialogue(ask(question, max_tokens=4)))
    futures["other"] = tiny_engine.submit(read_dialogue(ask(question, max_tokens=4, stop=(alone[3:6],))))
    order = []
    for name, future in futures.items():
        future.add_done_callback(lambda _, name=name: order.append(name))
    all_asked.set()
    texts = {name: future.result(BACKSTOP_S)[0].reply for name, future in futures.items()}
    until(lambda: len(order) == len(futures))
    assert order == ["choice", "same", "long", "other"]
    assert (texts["same"], texts["other"]) == (alone, alone.partition(alone[3:6])[0])
