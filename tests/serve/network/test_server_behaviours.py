"""What servers do that public reports tell of: each is asked by `medexam run`, and answers as it should."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import dspy
import pytest
from engine_calls import CHAT, COMPLETIONS
from other_servers import LlamaServer, Ollama
from provider_wire import Asked, serve_provider
from provider_wires import Anthropic, OpenAI
from wire_server import Wire, serving

from command_line import _untracked, medexam  # noqa: F401 - fixtures
from medexam import Question, build_program, lm
from medexam.serve import TIMING
from table_cases import read_cases

ANSWER = "{Answer: 1}"
COMMAND = ("run", "headqa_sample", "--limit", 4)


def text(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


@dataclass
class Chat(Ollama):
    """A server of OpenAI's chat API; `say` is what it makes of a body: the message, and the reason of its end."""

    def say(self, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        form = (body.get("response_format") or {}).get("json_schema")
        words = ANSWER if form is None else json.dumps({"answer": form["schema"]["properties"]["answer"]["enum"][-1]})
        return {"role": "assistant", "content": words}, "stop"

    def refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """Status and error of a request that it refuses; None if it takes it."""
        return None

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path != CHAT:
            return super().reply(path, body)
        if (refusal := self.refusal(body)) is not None:
            return refusal
        status, document = super().reply(path, body)
        if status == 200:
            message, reason = self.say(body)
            document["usage"] |= message.pop("usage", {})
            document["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
        return status, document

    @property
    def asked_chats(self) -> list[dict[str, Any]]:
        """The bodies of the exam's questions."""
        return [body for body in self.bodies(CHAT) if "\n1" in text(body)]


@pytest.fixture
def run(medexam, tmp_path):  # noqa: F811 - the fixture
    """Run four questions at a server; return the exit code, the predictions and what was said."""

    def call(wire: Wire, *words: object) -> tuple[int, list[dict[str, Any]], str]:
        code, out, said = medexam(*COMMAND, "--model", wire.address, *words, "--json")
        texts = [path.read_text(encoding="utf-8") for path in tmp_path.glob("runs/*/predictions.jsonl")]
        lines = [json.loads(line) for text in texts for line in text.splitlines()]
        return code, lines, out + said

    return call


@dataclass
class DefaultSystem(LlamaServer):
    """SmolLM2's chat template writes a system turn of its own where there is none."""

    def render(self, turns: list[dict[str, str]], told: dict[str, Any] | None = None) -> str | None:
        if turns[0]["role"] != "system":
            turns = [{"role": "system", "content": "You are a helpful AI assistant named SmolLM."}, *turns]
        return super().render(turns, told)


def test_a_system_turn_is_sent_where_a_template_has_one_of_its_own(run, medexam) -> None:  # noqa: F811
    with serving(DefaultSystem()) as wire:
        code, _, said = run(wire, "--program", "zero_shot")
        assert code == 0, said
        asked = [body["messages"] for body in wire.bodies(CHAT) if "\n1" in text(body)]
        assert {turns[0]["role"] for turns in asked} == {"system"}
        assert re.search(r"^system turn +yes", medexam("doctor", wire.address)[1], re.MULTILINE)


@dataclass
class Filtering(Chat):
    """Refuses the second question for its content, as a case has it."""

    case: dict[str, Any] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        question = text(body)
        if "\n1" in question and question not in self.seen:
            self.seen.append(question)
        return (self.case["status"], {"error": self.case["error"]}) if question in self.seen[1:2] else None


@pytest.mark.parametrize("case", read_cases("content_filters"))
def test_a_refusal_for_content_is_filtered_of_the_model_that_was_asked_and_costs_nothing(
    case: dict[str, Any], run, tmp_path
) -> None:
    with serving(Filtering(case=case)) as wire:
        code, lines, said = run(wire, "--program", "zero_shot", "--set", "model.price=[1,1]", "--max-cost", "5")
    assert code == 0, said
    reasons = [line.get("reason") for line in lines]
    assert sorted(map(str, reasons)) == ["None"] * 3 + ["filtered"]
    assert len({call["model"] for line in lines for call in line["calls"]}) == 1
    (report,) = tmp_path.glob("runs/*/report.md")
    for words in ("Mixed models", "mixes models", "reported no tokens"):
        assert words not in said + report.read_text(encoding="utf-8")


@pytest.mark.parametrize("status", [401, 403])
def test_another_refusal_of_these_statuses_is_the_keys(status: int, run) -> None:
    with serving(Chat(refuse={CHAT: status})) as wire:
        code, _, said = run(wire)
    assert code == 2
    assert "api_key" in said


def test_a_refusal_of_one_question_ends_no_run_that_was_answered_before(run) -> None:
    with serving(Filtering(case={"status": 403, "error": {"message": "Forbidden"}})) as wire:
        code, lines, said = run(wire, "--program", "zero_shot", "--in-flight", "1")
    assert code != 2, said
    assert [line["status"] for line in lines] == ["answered", "failed", "answered", "answered"]


@dataclass
class Thinking(Chat):
    """Thinks `tokens` tokens before it answers, unless `off` says that a body turns it off."""

    tokens: int = 200
    off: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, Any] | None = None
    """The field that holds its thoughts, in place of `reasoning`."""

    def say(self, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        message, reason = super().say(body)
        if self.off and all(body.get(name) == value for name, value in self.off.items()):
            return message, reason
        budget = body.get("max_tokens") or body.get("max_completion_tokens") or 10**6
        message |= self.kept or {"reasoning": "So. " * min(budget, self.tokens)}
        return (message | {"content": ""}, "length") if budget <= self.tokens else (message, reason)


@pytest.mark.parametrize(
    "kept",
    [
        {"reasoning_details": [{"type": "reasoning.text", "text": "So."}]},
        {"thoughts": {"content": "So."}},
        {"content": [{"type": "reasoning", "summary": [{"text": "So."}]}, {"type": "output_text", "text": ANSWER}]},
        {"content": f"\n<think>So.</think>{ANSWER}"},
        {"usage": {"completion_tokens_details": {"reasoning_tokens": 300}}},
    ],
)
def test_a_model_that_thinks_although_it_shall_not_ends_the_run(kept: dict[str, Any], run) -> None:
    with serving(Thinking(kept=kept, tokens=0)) as wire:
        code, lines, said = run(wire, "--set", "model.thinking=off")
    assert (code, lines) == (2, [])
    assert "thinks with model.thinking: off too" in said
    assert "model.extra_body" in said


@dataclass
class DashScope(Thinking):
    """Qwen3 there thinks in streams alone."""

    off: dict[str, Any] = field(default_factory=lambda: {"enable_thinking": False})

    def refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if body.get("stream") or body.get("enable_thinking") is False:
            return None
        words = "parameter.enable_thinking must be set to false for non-streaming calls"
        return 400, {"error": {"message": words, "code": "invalid_parameter_error"}}

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        return stream(self, path, body) if body.get("stream") else None


def stream(wire: Chat, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
    """What a server sends of a reply event by event, a few characters each."""
    if path != CHAT:
        return None
    message, reason = wire.say(body)
    pieces = [
        {name: value[start : start + 5]}
        for name, value in message.items()
        if isinstance(value, str) and name != "role"
        for start in range(0, len(value), 5)
    ]
    chunks = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    chunks += [{"choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces]
    chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]
    chunks += [{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}}]
    lines = [f"data: {json.dumps({'id': 'c', 'model': 'tiny', **chunk})}\n\n".encode() for chunk in chunks]
    return {"Content-Type": "text/event-stream"}, iter([*lines, b"data: [DONE]\n\n"])


@dataclass
class StreamsAlone(Chat):
    """Answers by streams, whether or not it is asked for one; or refuses to answer otherwise."""

    refuses: bool = False

    def refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        words = "This model only support stream mode, please enable the stream parameter to access the model."
        return (400, {"error": {"message": words}}) if self.refuses and not body.get("stream") else None

    def bytes_of(self, path: str, body: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]] | None:
        return None if self.refuses and not body.get("stream") else stream(self, path, body)


@dataclass
class ColdVLLM(Wire):
    """Loads its model for its first reply, and gives up if nobody waits for it."""

    slept: bool = False

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path in (CHAT, COMPLETIONS) and not self.slept:
            time.sleep(8.0)
            self.slept = True
        return super().reply(path, body)


class Cold(ColdVLLM, Chat):
    """The same of another server."""


@dataclass
class Loading(LlamaServer):
    """Answers HTTP 503 until its model is there."""

    begun: float = field(default_factory=time.monotonic)

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if time.monotonic() < self.begun + 10.0:
            return 503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
        return super().reply(path, body)


@pytest.mark.parametrize("kind", [Cold, ColdVLLM, Loading])
@pytest.mark.parametrize("waits", [True, False])
def test_the_first_reply_is_waited_for(kind: type[Wire], waits: bool, run, monkeypatch, caplog) -> None:
    for name, seconds in {"probe_silence_s": 3.0, "notice_s": 0.2, "poll_s": 0.2}.items():
        monkeypatch.setattr(TIMING, name, seconds)
    with serving(kind()) as wire, caplog.at_level(logging.WARNING):
        model: dict[str, Any] = {"engine": "vllm", "name": "tiny", "endpoints": [wire.address]}
        model |= {} if waits else {"wait_s": 0}
        code, lines, said = run(wire, "--set", f"model={json.dumps(model)}")
    assert code == (0 if waits else 2), said
    assert len(lines) == (4 if waits else 0)
    if kind is not Loading:
        assert ("(model.wait_s)" if waits else "answered, then stopped answering") in said + caplog.text


@pytest.mark.parametrize("answer_format", ["guided", "free"])
def test_a_model_that_thinks_unasked_has_room_to_think(answer_format: str, run, medexam) -> None:  # noqa: F811
    with serving(Thinking()) as wire:
        code, lines, said = run(wire, "--program", "zero_shot", "--set", f"program.answer_format={answer_format}")
        assert code == 0, said
        assert [line["status"] for line in lines] == ["answered"] * 4
        _, table, _ = medexam("doctor", wire.address)
    assert re.search(r"^ *thinks +yes", table, re.MULTILINE)
    assert "json_schema" in next(line for line in table.splitlines() if "guided" in line)


@dataclass
class SmallContext(Thinking):
    """Refuses budgets beyond its context."""

    def refusal(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        if (body.get("max_tokens") or 0) < 4096:
            return None
        words = "This model's maximum context length is 4096 tokens. However, you requested more."
        return 400, {"error": {"message": words}}


@dataclass
class Gateway(Chat):
    """OpenRouter: names the provider of each reply, and reports a provider's fault as an end without words."""

    number: int = 0

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, document = super().reply(path, body)
        if path != CHAT or status != 200:
            return status, document
        self.number += 1
        choice = document["choices"][0]
        choice["native_finish_reason"] = "STOP_SEQUENCE_OF_THEIRS"
        if self.number % 5 == 0:
            choice |= {"message": {"role": "assistant", "content": ""}, "native_finish_reason": "network_error"}
        return status, {**document, "provider": ["Alpha", "Beta"][self.number % 2]}


@dataclass
class Magistral(Chat):
    """Replies in parts, some of which are thoughts."""

    def say(self, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        message, reason = super().say(body)
        words = message["content"]
        thoughts = [{"type": "thinking", "thinking": [{"type": "text", "text": part}]} for part in ("So, ", "one.")]
        parts = [{"type": "text", "text": words[:5]}, {"type": "text", "text": words[5:]}]
        return message | {"content": [*thoughts, *parts]}, reason


@pytest.mark.parametrize("program", ["shipped", "own"])
def test_what_dspy_streams_is_asked_for_as_a_stream(program) -> None:
    def ask(question: Question) -> dspy.Prediction:
        return dspy.Prediction(answer=dspy.settings.lm(question.stem)[0])

    async def collect() -> list[Any]:
        streamed = dspy.streamify(ask if program == "own" else build_program("zero_shot"))
        return [part async for part in streamed(question=Question.of("Which?", ["A", "C"]))]

    with serving(StreamsAlone()) as wire, dspy.context(lm=lm("vllm", endpoints=wire.address)):
        *chunks, prediction = asyncio.run(collect())
        asyncio.run(dspy.settings.lm.live_engine.aclose())
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ANSWER
    assert prediction.answer in (1, ANSWER)
    assert wire.bodies(CHAT)[-1]["stream"]


OFF = ("--set", "model.thinking=off")


@pytest.mark.parametrize(
    ("wire", "words", "fields"),
    [
        (Thinking(off={"reasoning_effort": "none"}), OFF, {"reasoning_effort": "none"}),
        (DashScope(), OFF, {"enable_thinking": False, "stream": None}),
        (DashScope(), (), {"stream": True}),
        (StreamsAlone(), (), {}),
        (StreamsAlone(refuses=True), (), {"stream": True}),
        (SmallContext(), (), {}),
        (Gateway(), (), {}),
        (Magistral(), (), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_server_with_ways_of_its_own_answers_every_question(wire, words, fields, run, tmp_path) -> None:
    with serving(wire):
        code, lines, said = run(wire, "--program", "zero_shot", *words)
    assert code == 0, said
    assert [line["answer"] for line in lines] == [1] * 4
    taken = [body for body in wire.asked_chats if not wire.refusal(body)]
    assert all({name: body.get(name) for name in fields} == fields for body in taken[-4:])
    if isinstance(wire, Magistral):
        assert "So, one." in str(lines[0])
    if isinstance(wire, Gateway):
        (record,) = tmp_path.glob("runs/*/environment.json")
        details = json.loads(record.read_text())["engine"]["details"]
        assert set(details["providers"]) == {"Alpha", "Beta"}
        assert "several providers replied" in str(details["warnings"])


@dataclass
class Masked(Wire):
    """vLLM's -9999.0 for a token that its mask forbids."""

    def logprob(self, token: int, before: list[int]) -> float:
        return -9999.0 if token == ord("q") else super().logprob(token, before)


def test_a_number_that_stands_for_none_is_no_log_probability(run) -> None:
    with serving(Masked()) as wire:
        _, lines, _ = run(wire, "--program", "likelihood")
    scores = [score for line in lines for score in ((line.get("evidence") or {}).get("option_scores") or {}).values()]
    assert all(score > -1000 for score in scores)


@dataclass
class AllThought(Chat):
    """A parser of thoughts that takes the whole reply for one."""

    def say(self, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        message, reason = super().say(body)
        return {"role": "assistant", "content": None, "reasoning_content": message["content"]}, reason


@dataclass
@dataclass
class FullContext(Chat):
    """Its context is full after a few tokens of a reply, or it `cuts` each at a limit of its own."""

    cuts: bool = False

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, document = super().reply(path, body)
        if path == CHAT and status == 200 and "\n1" in text(body):
            document["choices"][0] = {
                "index": 0,
                "message": {"role": "assistant", "content": "Let me see."},
                "finish_reason": "length",
            }
            prompt = len(text(body)) if self.cuts else 507
            document["usage"] = {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5}
        return status, document


@pytest.mark.parametrize(
    ("wire", "reason", "words"),
    [
        (AllThought(), "empty", "put all of them into thinking"),
        (FullContext(), "truncated", "prompt and reply filled the context of 512 tokens"),
        (FullContext(cuts=True), "truncated", "the server cut them at 5 tokens or before"),
    ],
)
def test_the_report_says_why_nothing_was_answered(wire: Chat, reason: str, words: str, run, tmp_path) -> None:
    with serving(wire):
        _, lines, said = run(wire, "--program", "zero_shot")
    assert {line["reason"] for line in lines} == {reason}, said
    (report,) = tmp_path.glob("runs/*/report.md")
    assert words in report.read_text(encoding="utf-8")


@dataclass
class Ending(Anthropic):
    """Ends each question with one of Anthropic's own reasons."""

    reason: str = "refusal"

    def write(self, asked: Asked, reply: dict[str, Any]) -> dict[str, Any]:
        return {**super().write(asked, reply), **({"stop_reason": self.reason} if "1. " in str(asked.messages) else {})}


@pytest.mark.parametrize("reason", ["refusal", "model_context_window_exceeded"])
def test_anthropics_own_reasons_are_kept_and_count(reason: str, medexam, tmp_path) -> None:  # noqa: F811
    with serve_provider(Ending(reason=reason)) as wire:
        code, _, said = medexam(*COMMAND, "--model", wire.model_name, "--program", "chain_of_thought")
    assert code == 0, said
    (log,) = tmp_path.glob("runs/*/predictions.jsonl")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert {call["finish_reason"] for line in lines for call in line["calls"]} == {reason}
    assert {line.get("reason") for line in lines} == {"refused" if reason == "refusal" else None}


@dataclass
class Counting(Gateway):
    """Counts what each reply costs, as OpenRouter does; `usage` is what it reports beside."""

    usage: dict[str, Any] = field(default_factory=dict)

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, document = super().reply(path, body)
        if path == CHAT and status == 200:
            document["usage"] = {"prompt_tokens": 90, "completion_tokens": 5, "total_tokens": 95, **self.usage}
        return status, document


def test_the_cost_that_a_provider_counts_is_the_cost_and_each_reply_names_its_provider(run, tmp_path) -> None:
    with serving(Counting(usage={"cost": 0.25})) as wire:
        code, lines, said = run(wire, "--program", "zero_shot", "--set", "model.price=[1,1]")
    assert code == 0, said
    calls = [call for line in lines for call in line["calls"]]
    assert {call["cost_usd"] for call in calls} == {0.25}
    assert {call["provider"] for call in calls} == {"Alpha", "Beta"}
    (metrics,) = tmp_path.glob("runs/*/metrics.json")
    assert json.loads(metrics.read_text(encoding="utf-8"))["cost_usd"] == 1.0


@pytest.mark.parametrize(
    "usage", [{"cost": 2.0}, {"cost": 0.0, "is_byok": True, "cost_details": {"upstream_inference_cost": 2.0}}]
)
def test_a_reported_cost_ends_a_run_at_its_limit(usage: dict[str, Any], run) -> None:
    with serving(Counting(usage=usage)) as wire:
        words = ("--program", "zero_shot", "--set", "model.price=[1,1]", "--max-cost", "5", "--in-flight", "1")
        code, lines, said = run(wire, *words)
    assert code == 3, said
    assert len(lines) <= 3


@pytest.mark.parametrize("cached", [0, 60])
def test_cached_tokens_cost_less_by_litellms_list(cached: int, medexam, tmp_path) -> None:  # noqa: F811
    class Caching(OpenAI):
        def write(self, asked: Asked, reply: dict[str, Any]) -> dict[str, Any]:
            document = super().write(asked, reply)
            usage = {"prompt_tokens": 90, "completion_tokens": 5, "total_tokens": 95}
            return {**document, "usage": {**usage, "prompt_tokens_details": {"cached_tokens": cached}}}

    with serve_provider(Caching()) as wire:
        code, _, said = medexam(*COMMAND, "--model", wire.model_name, "--program", "zero_shot")
    assert code == 0, said
    (log,) = tmp_path.glob("runs/*/predictions.jsonl")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    dollars = (90 - cached) * 0.15e-6 + cached * 0.075e-6 + 5 * 0.6e-6
    assert [call["cost_usd"] for line in lines for call in line["calls"]] == [pytest.approx(dollars)] * 4


def test_headers_of_litellms_hold_are_sent_with_every_request(run, monkeypatch) -> None:
    import litellm

    monkeypatch.setattr(litellm, "headers", {"X-Lab": "seven"})
    with serving(Wire()) as wire:
        for program in ("zero_shot", "likelihood"):
            code, _, said = run(wire, "--program", program, "--set", "model.engine=vllm")
            assert code == 0, said
        heads = [head for path, head in wire.heads if path in (CHAT, COMPLETIONS)]
    # Those of the probe are plain HTTP.
    asked = [head for head in heads if "OpenAI" in str(head)]
    assert len(asked) >= 5
    assert {head.get("x-lab") for head in asked} == {"seven"}
