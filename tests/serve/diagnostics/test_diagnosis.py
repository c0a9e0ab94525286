"""The doctor: what it finds out about one server and about several, what it advises, and how it ends."""

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from other_servers import TGI, LlamaServer, Ollama
from wire_server import Wire, serving

from medexam.cli import run_command
from medexam.errors import EndpointSilentError, EngineError
from medexam.serve import RegisteredServer, Registry, build_engine, diagnose, find_targets, write_key
from medexam.serve.diagnostics.advice import advise
from medexam.serve.diagnostics.diagnosis import DiagnosisReport
from medexam.specs import EngineNeeds, ModelSpec, validate
from waiting import until

SILENT = "http://127.0.0.1:9/v1"
NO_CACHE = 'vllm:cache_config_info{block_size="16",enable_prefix_caching="False"} 1.0\n'
LARGE_BLOCKS = 'vllm:cache_config_info{block_size="128",enable_prefix_caching="True"} 1.0\n'
COUNTERS = 'vllm:prefix_cache_queries_total{a="b"} 2000.0\nvllm:prefix_cache_hits_total{a="b"} 500.0\n'

Doctor = Callable[..., tuple[int, str, str]]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Run the command; its exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["medexam", "doctor", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        try:
            run_command()
            code = 0
        except SystemExit as done:
            code = int(done.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def look(*wires: Wire, burst_s: float = 0.0) -> DiagnosisReport:
    with ExitStack() as stack:
        addresses = [stack.enter_context(serving(wire)).address for wire in wires]
        return asyncio.run(diagnose(find_targets(addresses), burst_s=burst_s))


def test_one_server_in_good_health() -> None:
    found = look(Wire(metrics=COUNTERS), burst_s=0.3)
    (one,) = found.diagnoses
    assert one.seen is not None
    assert [verdict.refusal for verdict in one.reads] == [None, None, None]
    assert one.clock_ahead_s == 0
    assert one.prefix_hit_rate == 0.25
    assert one.revision is None
    assert one.burst is not None
    assert one.burst.prompts_per_s > 0
    assert one.burst.in_flight >= 16
    assert one.burst.failed == 0
    assert {check.what: check.verdict for check in one.api} == {
        "choices by json_schema": "honoured",
        "choices by json_object": "refused",
        "choices by json_object with value": "refused",
        "logprobs in chat": "ignored",
        "logprobs in completions": "ignored",
        "n": "honoured",
        "seed": "ignored",
    }
    assert found.replicas is None
    assert advise(found) == ()


def gauges(running: int, waiting: int, used: float) -> str:
    """Two engines behind one address."""
    return "".join(
        f'vllm:num_requests_running{{engine="{engine}"}} {running / 2}\n'
        f'vllm:num_requests_waiting{{engine="{engine}"}} {waiting / 2}\n'
        f'vllm:kv_cache_usage_perc{{engine="{engine}"}} {used}\n'
        for engine in (0, 1)
    )


@pytest.mark.parametrize(
    ("counters", "advice"),
    [
        (
            gauges(256, 700, 0.1),
            "700 prompts waited while 256 were computed, and 10% .* up to 3.7 times as many at once",
        ),
        (gauges(256, 700, 0.9), None),
        (gauges(256, 20, 0.1), None),
        (gauges(0, 0, 0.0), None),
        (gauges(1024, 700, 0.1), None),
        (COUNTERS, None),
    ],
)
def test_a_burst_says_if_too_few_prompts_are_computed_at_once(counters: str, advice: str | None) -> None:
    found = look(Wire(metrics=counters), burst_s=0.3)
    lines = advise(found)
    if advice is None:
        assert lines == ()
    else:
        assert len(lines) == 1
        assert re.search(advice, lines[0])
        assert found.diagnoses[0].burst.queue.cache_used == 0.1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wire", "advice"),
    [
        (Wire(structured=False), "upgrade to vLLM 0.12 or later"),
        (Wire(structured=False, tokenize=False), "no choice can be enforced"),
        (Wire(allowed=False), "allowed_token_ids is ignored"),
        (Wire(lists=False), "each is sent alone"),
        (Wire(tokenize=False), "/tokenize is not served"),
        (Wire(structured=False, owner="me", version=None), "structured_outputs is ignored, so only choices that are"),
        (Wire(refused_fields=("logprob_token_ids",)), "logprob_token_ids is refused (HTTP 400: logprob_token_ids is"),
        (Wire(named=False), "by echo: upgrade to vLLM 0.29 or later"),
        (Wire(named=False, echo=False), "no log-probabilities can be read: upgrade to vLLM 0.29"),
        (Wire(most_named=20), "--max-logprobs 128"),
        (Wire(metrics=NO_CACHE), "--enable-prefix-caching"),
        (Wire(metrics=LARGE_BLOCKS), "--block-size 32 on a CPU"),
        (Wire(system=False), "for information: its chat template takes no system turn"),
        (Wire(empty=False), "for information: its chat template takes no empty system turn"),
        (Wire(chat=False), "for information: it has no chat template"),
        (Wire(ahead_s=60), "s ahead of this machine's: set both by NTP"),
        (Wire(ahead_s=-60), "s behind this machine's: set both by NTP"),
    ],
)
def test_what_was_seen_is_what_is_advised(wire: Wire, advice: str) -> None:
    lines = advise(look(wire))
    assert [line for line in lines if advice in line], lines
    assert len(lines) <= 2


def test_a_server_that_is_no_vllm_is_told_nothing_of_vllms_versions() -> None:
    wire = Wire(owner="me", version=None, structured=False, tokenize=False, forms=("json_object",))
    lines = advise(look(wire))
    assert "ask it by engine litellm (name: openai/tiny), which enforces choices by json_object" in lines[0]
    assert not [line for line in lines if "upgrade" in line or "ignored (" in line]


def test_a_clock_is_read_to_a_second() -> None:
    ahead = [look(Wire(ahead_s=skew)).diagnoses[0].clock_ahead_s or 0.0 for skew in (30, -30)]
    assert ahead == [pytest.approx(30, abs=2), pytest.approx(-30, abs=2)]


def test_a_revision_is_told_by_the_folder_of_the_hubs_cache() -> None:
    commit = "0123456789abcdef" * 2 + "01234567"
    wire = Wire()
    wire.models = (f"hub/models--a--b/snapshots/{commit}",)
    assert look(wire).diagnoses[0].revision == commit


def test_replicas_that_agree() -> None:
    found = look(Wire(), Wire())
    assert found.replicas is not None
    assert (found.replicas.same_tokens, found.replicas.difference, found.replicas.differing) == (True, 0.0, {})
    assert found.replicas.tokens > 100
    assert advise(found) == ()


@pytest.mark.parametrize("echo", [True, False])
def test_replicas_that_do_not(echo: bool) -> None:
    found = look(Wire(echo=echo), Wire(echo=echo, drift=0.05), Wire(echo=echo, version="0.31.0"))
    assert found.replicas is not None
    assert found.replicas.difference == pytest.approx(0.05)
    assert found.replicas.differing == {"server_version": ("vllm 0.32.0", "vllm 0.32.0", "vllm 0.31.0")}
    lines = advise(found)
    assert any("differ by up to 0.05 nats a token" in line for line in lines)
    assert any("differ in version" in line and "vllm 0.31.0" in line for line in lines)


def test_servers_of_different_models() -> None:
    lines = advise(look(Wire(), Wire(models=("other",))))
    assert any("differ in model" in line and "other" in line for line in lines)


def test_a_silent_server_among_several_is_a_column(doctor: Doctor) -> None:
    with serving(Wire()) as wire:
        code, out, _ = doctor(wire.address, SILENT, "--burst", "0", "--json")
        document = json.loads(out)
        _, table, _ = doctor(wire.address, SILENT, "--burst", "0")
    assert code == 3
    assert [one["silent"] for one in document["endpoints"]] == [False, True]
    assert document["endpoints"][0]["guided_by"] == "prefill"
    assert document["replicas"] is None
    assert "silent" in table
    assert f"- no server answers at {SILENT}" in table


def test_a_server_that_refuses_the_key_is_a_column_too(doctor: Doctor) -> None:
    with serving(Wire()) as wire, serving(Wire(key="another")) as locked:
        code, out, _ = doctor(wire.address, locked.address, "--burst", "0")
    assert code == 3
    assert "cannot be used" in out
    assert "refuses the key (HTTP 401)" in out


def test_where_nobody_answers(doctor: Doctor) -> None:
    code, out, err = doctor(SILENT, "http://127.0.0.1:10", "--burst", "0")
    assert (code, out) == (2, "")
    assert err.startswith(f"medexam: no server answers at {SILENT}")
    assert err.count("\n") == 1
    with pytest.raises(EndpointSilentError):
        asyncio.run(diagnose(find_targets([SILENT]), burst_s=0))


def test_all_is_well(doctor: Doctor) -> None:
    with serving(Wire()) as one, serving(Wire()) as two:
        code, out, _ = doctor(one.address, two.address, "--burst", "0")
    assert code == 0
    assert "by prefill" in out
    assert "The servers agree to 0.0e+00 nats" in out
    assert "Nothing to change." in out


def test_what_a_server_remembers_is_said_where_its_counters_tell_it(doctor: Doctor) -> None:
    for metrics, said in ((None, "not told"), (LARGE_BLOCKS, "in blocks of 128 tokens"), (NO_CACHE, "no")):
        with serving(Wire(metrics=metrics)) as wire:
            _, out, _ = doctor(wire.address, "--burst", "0")
        (row,) = [line for line in out.splitlines() if "remembers prompts" in line and not line.startswith("-")]
        assert said in row
        assert ("blocks of 16" in out) is False


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (Wire(), ('"engine": "vllm"', "program.answer_format=guided")),
        (
            Wire(owner="llamacpp", version=None, tokenize=False, structured=False, forms=("json_object",)),
            ('"engine": "litellm"', '"name": "openai/tiny"', "program.answer_format=guided"),
        ),
        (
            Wire(owner="library", version=None, tokenize=False, structured=False, schema=False),
            ('"engine": "litellm"', "program.answer_format=free"),
        ),
        (TGI(), ('"engine": "litellm"', "program.answer_format=guided")),
        (Ollama(), ('"engine": "litellm"', "program.answer_format=guided")),
        (LlamaServer(), ('"engine": "litellm"', "program.answer_format=guided")),
        (Wire(chat=False), ("program.kind=likelihood", "program.chat_template=false")),
    ],
)
def test_the_doctor_ends_with_the_line_to_type(doctor: Doctor, wire: Wire, said: tuple[str, ...]) -> None:
    with serving(wire):
        _, out, _ = doctor(wire.address, "--burst", "0")
        line = out.splitlines()[-1]
        assert line.startswith("medexam run headqa_sample --set ")
        assert wire.address in line
        assert all(part in line for part in said)
        words = dict(part.split("=", 1) for part in shlex.split(line)[4::2])
        model = validate(ModelSpec, json.loads(words["model"]))
        # The line works: the engine that it names finds what it needs.
        needs = EngineNeeds(guided="guided" in line, logprobs="likelihood" in line, chat="likelihood" not in line)
        asyncio.run(_open_and_close(model, needs))


async def _open_and_close(model: ModelSpec, needs: EngineNeeds) -> None:
    await (await build_engine(model, needs)).aclose()


@pytest.mark.parametrize(
    ("wire", "version", "forms"),
    [
        (TGI(), None, ("refused", "refused", "honoured")),
        (Ollama(), "ollama 0.12.6", ("honoured", "ignored", "ignored")),
        (LlamaServer(), "llama.cpp", ("honoured", "honoured", "ignored")),
    ],
)
def test_servers_that_are_no_vllm(wire: Wire, version: str | None, forms: tuple[str, ...]) -> None:
    (one,) = look(wire).diagnoses
    assert one.seen is not None
    assert (one.seen.server_version, one.seen.is_vllm, one.seen.guided_by) == (version, False, None)
    assert tuple(check.verdict for check in one.api[:3]) == forms
    assert [check.refusal is None for check in one.reads] == [False] * 3
    if wire.owner == "tiny":
        assert "expected one of `json`, `json_object`, `regex` at line 1 column 168" in one.api[0].said
        assert "response_format: missing field `value`" in one.api[1].said


@pytest.mark.parametrize("status", [422, 500])
def test_a_refused_schema_is_asked_once_and_refused_in_the_servers_words(status: int) -> None:
    wire = Wire(owner="me", version=None, tokenize=False, structured=False, forms=(), form_status=status)
    (one,) = look(wire).diagnoses
    forms = [body["response_format"] for body in wire.bodies("/v1/chat/completions") if "response_format" in body]
    assert len(forms) == len({json.dumps(form) for form in forms}) > 1
    for check in one.api[:2]:
        assert (check.verdict, check.said) == ("refused", f"HTTP {status}: response_format: unexpected type")


def test_ctrl_c_ends_the_burst_and_nothing_else(doctor: Doctor) -> None:
    with serving(Wire()) as wire:

        def interrupt() -> None:
            # The load begins with one request in flight, so the second one shows that the first was answered.
            until(lambda: sum(bool(body.get("ignore_eos")) for body in wire.bodies("/v1/completions")) > 1)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        code, out, _ = doctor(wire.address, "--burst", "3600", "--json")
        thread.join()
    assert code == 0
    assert json.loads(out)["endpoints"][0]["burst"]["prompts_per_s"] > 0


class Overloaded(Wire):
    """Refuses every request of a burst."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return (503, {}) if body.get("ignore_eos") else super().reply(path, body)


def test_a_burst_that_is_refused() -> None:
    found = look(Overloaded(), burst_s=5)
    burst = found.diagnoses[0].burst
    assert burst is not None
    assert (burst.prompts_per_s, burst.failed) == (0, 1)
    assert advise(found)[0].startswith("requests of the burst that failed: 1")


def register(registry: Registry, wire: Wire, key_file: Path | None = None, **told: Any) -> None:
    told = {"host": socket.gethostname(), "pid": os.getpid(), **told}
    registry.add(RegisteredServer(wire.address, wire.models[0], key_file=key_file, **told))


def test_registered_servers_are_asked_with_their_own_keys(doctor: Doctor, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "servers.json")
    write_key(tmp_path / "key", "its-own")
    with serving(Wire(key="its-own")) as one, serving(Wire()) as two:
        register(registry, one, tmp_path / "key")
        register(registry, two)
        code, out, _ = doctor(f"registry:{registry.path}", two.address, "--burst", "0", "--json")
    assert code == 0
    assert [one["endpoint"] for one in json.loads(out)["endpoints"]] == [one.address, two.address]
    assert "its-own" not in out
    assert "Bearer its-own" not in two.keys


def test_a_registered_server_whose_clock_is_apart_is_asked(doctor: Doctor, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "servers.json")
    with serving(Wire()) as wire:
        register(registry, wire, host="n7", seen_at=time.time() + 600)
        code, out, _ = doctor(f"registry:{registry.path}", "--burst", "0", "--json")
    assert code == 0
    assert [one["endpoint"] for one in json.loads(out)["endpoints"]] == [wire.address]


def test_without_an_endpoint_this_machines_registry_is_read(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    code, _, err = doctor("--burst", "0")
    assert code == 2
    assert "no server is named or registered on this machine" in err
    with pytest.raises(EngineError, match="no server of huge"):
        find_targets([], model="huge")
    with serving(Wire()) as wire:
        register(Registry(tmp_path / "servers.json"), wire)
        code, out, _ = doctor("--burst", "0", "--json")
    assert code == 0
    assert json.loads(out)["endpoints"][0]["endpoint"] == wire.address
