"""The doctor: what a user is told of one server and of several, what to change there, and the line to type next."""

import asyncio
import json
import os
import shlex
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from engine_calls import COMPLETIONS, read_cases
from hostile_server import HostileWire
from other_servers import TGI, LlamaServer, Ollama, wire_of
from wire_server import Wire, serving

from command_line import medexam  # noqa: F401 - a fixture
from medexam.errors import EngineError
from medexam.serve import TIMING, RegisteredServer, Registry, build_engine, find_targets, write_key
from medexam.specs import EngineNeeds, ModelSpec, validate
from waiting import until

SILENT = "http://127.0.0.1:9/v1"

Doctor = Callable[..., tuple[int, str, str]]
Look = Callable[..., dict[str, Any]]


@pytest.fixture
def doctor(medexam, monkeypatch: pytest.MonkeyPatch) -> Doctor:  # noqa: F811 - the fixture
    """Run the command without a burst; its exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: medexam("doctor", *words, *(() if "--burst" in words else ("--burst", "0")))


@pytest.fixture
def look(doctor: Doctor) -> Look:
    """The doctor's JSON of some servers, `burst_s` seconds of work included."""

    def ask(*wires: Wire, burst_s: float = 0.0) -> dict[str, Any]:
        with ExitStack() as stack:
            addresses = [stack.enter_context(serving(wire)).address for wire in wires]
            found: dict[str, Any] = json.loads(doctor(*addresses, "--burst", str(burst_s), "--json")[1])
        return found

    return ask


def test_one_server_in_good_health(look: Look) -> None:
    found = look(Wire(), burst_s=0.3)
    (one,) = found["endpoints"]
    assert [read["refusal"] for read in one["reads"]] == [None, None, None]
    assert one["revision"] is None
    assert one["burst"]["prompts_per_s"] > 0
    assert one["burst"]["in_flight"] >= 16
    assert one["burst"]["failed"] == 0
    assert {check["what"]: check["verdict"] for check in one["api"]} == {
        "choices by json_schema": "honoured",
        "choices by json_object": "refused",
        "choices by json_object with value": "refused",
    }
    assert (found["replicas"], found["advice"]) == (None, [])


@pytest.mark.parametrize("row", read_cases("servers"), ids=json.dumps)
def test_what_is_seen_of_a_server_and_what_to_change_there(row: dict[str, Any], look: Look) -> None:
    found = look(wire_of(row))
    (one,) = found["endpoints"]
    one["api"] = [check["verdict"] for check in one["api"]]
    assert {name: one[name] for name in row["seen"]} == row["seen"]
    for words in row["advice"]:
        assert any(words in line for line in found["advice"]), found["advice"]
    if "kind" not in row:
        assert len(row["advice"]) <= len(found["advice"]) <= max(2 * bool(row["advice"]), len(row["advice"]))
    is_vllm = (one["server_version"] or "").startswith("vllm")
    assert is_vllm or not [line for line in found["advice"] if "upgrade" in line]


@pytest.mark.parametrize("echo", [True, False])
def test_replicas_that_agree_and_replicas_that_do_not(echo: bool, look: Look) -> None:
    alike = look(Wire(echo=echo), Wire(echo=echo))
    assert alike["replicas"]["tokens"] > 100
    found = look(Wire(echo=echo), Wire(echo=echo, drift=0.05), Wire(echo=echo, version="0.31.0"))
    same = [one["replicas"] for one in (alike, found)]
    assert [one["same_tokens"] for one in same] == [True, True]
    assert [one["difference"] for one in same] == [0.0, pytest.approx(0.05)]
    assert [one["differing"] for one in same] == [{}, {"server_version": [*["vllm 0.32.0"] * 2, "vllm 0.31.0"]}]
    assert alike["advice"] == []
    assert any("differ by up to 0.05 nats a token" in line for line in found["advice"])
    assert any("differ in version" in line and "vllm 0.31.0" in line for line in found["advice"])


def test_a_server_that_cannot_be_asked_is_a_column_among_others(doctor: Doctor) -> None:
    with serving(Wire()) as wire, serving(Wire(key="another")) as locked:
        code, out, _ = doctor(wire.address, SILENT, locked.address, "--json")
        document = json.loads(out)
        _, table, _ = doctor(wire.address, SILENT, locked.address)
    assert code == 3
    assert [one["silent"] for one in document["endpoints"]] == [False, True, False]
    assert document["endpoints"][0]["guided_by"] == "prefill"
    assert document["replicas"] is None
    assert f"- no server answers at {SILENT}" in table
    for words in ("silent", "cannot be used", "refuses the key (HTTP 401)"):
        assert words in table


def test_where_nobody_answers(doctor: Doctor) -> None:
    code, out, err = doctor(SILENT, "http://127.0.0.1:10")
    assert (code, out) == (2, "")
    assert err.startswith(f"medexam: no server answers at {SILENT}")
    assert err.count("\n") == 1


def test_the_table_says_that_all_is_well(doctor: Doctor) -> None:
    with serving(Wire()) as one, serving(Wire()) as two:
        code, out, _ = doctor(one.address, two.address)
        _, alone, _ = doctor(one.address)
    assert code == 0
    assert "The servers agree to 0.0e+00 nats" in out
    assert "by prefill" in alone
    assert "Nothing to change." in alone


LAPTOP = {"tokenize": False, "structured": False, "version": None}


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (Wire(), ('"engine": "vllm"', "program.answer_format=guided")),
        (
            Wire(owner="llamacpp", forms=("json_object",), **LAPTOP),
            ('"engine": "litellm"', '"name": "openai/tiny"', "program.answer_format=guided"),
        ),
        (Wire(owner="library", schema=False, **LAPTOP), ('"engine": "litellm"', "program.answer_format=free")),
        (TGI(), ('"engine": "litellm"', "program.answer_format=guided")),
        (Ollama(), ('"engine": "litellm"', "program.answer_format=guided")),
        (LlamaServer(), ('"engine": "litellm"', "program.answer_format=guided")),
        (Wire(chat=False), ("program.kind=likelihood", "program.chat_template=false")),
    ],
)
def test_the_doctor_ends_with_the_line_to_type(doctor: Doctor, wire: Wire, said: tuple[str, ...]) -> None:
    with serving(wire):
        line = doctor(wire.address)[1].splitlines()[-1]
        assert line.startswith("medexam run headqa_sample --set ")
        assert all(part in line for part in (wire.address, *said))
        words = dict(part.split("=", 1) for part in shlex.split(line)[4::2])
        model = validate(ModelSpec, json.loads(words["model"]))
        # The line works: the engine that it names finds what it needs.
        needs = EngineNeeds(guided="guided" in line, logprobs="likelihood" in line, chat="likelihood" not in line)
        asyncio.run(_open_and_close(model, needs))


async def _open_and_close(model: ModelSpec, needs: EngineNeeds) -> None:
    await (await build_engine(model, needs)).aclose()


def test_ctrl_c_ends_the_burst_and_nothing_else(doctor: Doctor) -> None:
    with serving(Wire()) as wire:

        def interrupt() -> None:
            # The load begins with one request in flight, so the second one shows that the first was answered.
            until(lambda: sum(bool(body.get("ignore_eos")) for body in wire.bodies(COMPLETIONS)) > 1)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        code, out, _ = doctor(wire.address, "--burst", "3600", "--json")
        thread.join()
    assert code == 0
    assert json.loads(out)["endpoints"][0]["burst"]["prompts_per_s"] > 0


def register(registry: Registry, wire: Wire, key_file: Path | None = None, **told: Any) -> None:
    told = {"host": socket.gethostname(), "pid": os.getpid(), **told}
    registry.add(RegisteredServer(wire.address, wire.models[0], key_file=key_file, **told))


def test_registered_servers_are_asked_with_their_own_keys(doctor: Doctor, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "servers.json")
    write_key(tmp_path / "key", "its-own")
    with serving(Wire(key="its-own")) as one, serving(Wire()) as two:
        register(registry, one, tmp_path / "key")
        register(registry, two)
        code, out, _ = doctor(f"registry:{registry.path}", two.address, "--json")
    assert code == 0
    assert [one["endpoint"] for one in json.loads(out)["endpoints"]] == [one.address, two.address]
    assert "its-own" not in out
    assert "Bearer its-own" not in two.keys


def test_without_an_endpoint_this_machines_registry_is_read(doctor: Doctor, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    code, _, err = doctor()
    assert code == 2
    assert "no server is named or registered on this machine" in err
    with pytest.raises(EngineError, match="no server of huge"):
        find_targets([], model="huge")
    with serving(Wire()) as wire:
        register(Registry(tmp_path / "servers.json"), wire, host="n7", seen_at=time.time() + 600)
        code, out, _ = doctor(f"registry:{tmp_path / 'servers.json'}", "--json")
    assert code == 0, "one whose clock is minutes apart is asked all the same"
    assert json.loads(out)["endpoints"][0]["endpoint"] == wire.address


@pytest.mark.parametrize("path", ["/v1/models", "/version", "/tokenize", COMPLETIONS])
@pytest.mark.parametrize("how", ["deep", "list", "null", "large id", "bomb", "choices", "places"])
def test_what_a_hostile_server_says_is_taken_or_refused_in_one_line(how: str, path: str, doctor: Doctor, monkeypatch):
    monkeypatch.setattr(TIMING, "attempts", 1)
    with serving(HostileWire(how=how, paths=(path,), megabytes=20)) as wire:
        code, _, err = doctor(wire.address)
    assert err.count("\n") <= 1
    assert (code == 0) or (code == 2 and err.startswith("medexam: "))
