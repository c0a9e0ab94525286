"""The doctor: what a user is told of one server and of several, what to change there, and the line to type next."""

import asyncio
import json
import os
import re
import shlex
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from engine_calls import COMPLETIONS, read_cases
from hostile_server import HostileWire
from other_servers import wire_of
from wire_server import Wire, serving

from command_line import medexam  # noqa: F401 - a fixture
from medexam.errors import AnswerFormatError, LogprobsUnavailableError
from medexam.serve import TIMING, EngineInfo, RegisteredServer, Registry, build_engine
from medexam.specs import EngineNeeds, ModelSpec, validate

SILENT = "http://127.0.0.1:9/v1"

Doctor = Callable[..., tuple[int, str, str]]
Look = Callable[..., dict[str, Any]]


@pytest.fixture
def doctor(medexam, monkeypatch: pytest.MonkeyPatch) -> Doctor:  # noqa: F811 - the fixture
    """Run the command; its exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: medexam("doctor", *words)


@pytest.fixture
def look(doctor: Doctor) -> Look:
    """The doctor's JSON of some servers."""

    def ask(*wires: Wire) -> dict[str, Any]:
        with ExitStack() as stack:
            addresses = [stack.enter_context(serving(wire)).address for wire in wires]
            found: dict[str, Any] = json.loads(doctor(*addresses, "--json")[1])
        return found

    return ask


@pytest.mark.parametrize("row", read_cases("servers"), ids=json.dumps)
def test_what_is_seen_of_a_server_and_what_to_change_there(row: dict[str, Any], look: Look) -> None:
    found = look(wire_of(row))
    (one,) = found["endpoints"]
    assert {name: one[name] for name in row["seen"]} == row["seen"]
    for words in row["advice"]:
        assert any(words in line for line in found["advice"]), found["advice"]
    if "kind" not in row:
        assert len(row["advice"]) <= len(found["advice"]) <= max(2 * bool(row["advice"]), len(row["advice"]))
    is_vllm = (one["server_version"] or "").startswith("vllm")
    assert is_vllm or not [line for line in found["advice"] if "upgrade" in line]


@pytest.mark.parametrize("row", read_cases("servers"), ids=json.dumps)
def test_the_record_that_is_printed_is_the_one_that_a_run_decides_by(row: dict[str, Any], look: Look) -> None:
    wire = wire_of(row)
    (one,) = look(wire)["endpoints"]
    if one["fault"] is not None or not one.get("chat", True):
        return
    guided = bool(one["guided_by"])
    with serving(wire):
        spec = validate(ModelSpec, {"engine": "vllm", "endpoints": [wire.address]})
        if guided:
            info = asyncio.run(_info(spec, EngineNeeds(chat=True, guided=True)))
            assert info.guided_by in (one["guided_by"], "structured_outputs")
            assert (info.system_turn != "merged") == one["system_turn"]
        else:
            with pytest.raises(AnswerFormatError):
                asyncio.run(_info(spec, EngineNeeds(chat=True, guided=True)))
        if not one.get("reads"):
            with pytest.raises(LogprobsUnavailableError):
                asyncio.run(_info(spec, EngineNeeds(logprobs=True)))


async def _info(model: ModelSpec, needs: EngineNeeds) -> EngineInfo:
    engine = await build_engine(model, needs)
    await engine.aclose()
    return engine.info()


def test_a_server_that_cannot_be_asked_is_a_column_among_others(doctor: Doctor) -> None:
    with serving(Wire()) as wire, serving(Wire(key="another")) as locked:
        code, out, _ = doctor(wire.address, SILENT, locked.address, "--json")
        document = json.loads(out)
        _, table, _ = doctor(wire.address, SILENT, locked.address)
    assert code == 3
    assert [one["silent"] for one in document["endpoints"]] == [False, True, False]
    assert document["endpoints"][0]["guided_by"] == "prefill"
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
    assert "Nothing to change." in out
    assert re.search(r"guided by +prefill", alone)
    assert "Nothing to change." in alone


@pytest.mark.parametrize("wire", [Wire(), Wire(chat=False)], ids=["vllm", "of a base model"])
def test_the_doctor_ends_with_the_line_to_type(doctor: Doctor, medexam, wire: Wire) -> None:  # noqa: F811 - the fixture
    with serving(wire):
        line = doctor(wire.address)[1].splitlines()[-1]
        assert line.startswith(f"medexam run headqa_sample --limit 5 --model {wire.address}")
        assert medexam(*shlex.split(line)[1:])[0] == 0


def register(registry: Registry, wire: Wire, **told: Any) -> None:
    told = {"host": socket.gethostname(), "pid": os.getpid(), **told}
    registry.add(RegisteredServer(wire.address, wire.models[0], **told))


def test_registered_servers_are_asked_with_their_own_keys(doctor: Doctor, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "servers")
    with serving(Wire(key="its-own")) as one, serving(Wire()) as two:
        register(registry, one, key="its-own")
        register(registry, two)
        code, out, _ = doctor(f"registry:{registry.path}", two.address, "--json")
    assert code == 0
    assert {one["endpoint"] for one in json.loads(out)["endpoints"]} == {one.address, two.address}
    assert "its-own" not in out
    assert "Bearer its-own" not in two.keys


def test_without_an_endpoint_this_machines_registry_is_read(doctor: Doctor, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path))
    code, _, err = doctor("--model", "huge")
    assert code == 2
    assert "no server is named or registered on this machine" in err
    with serving(Wire()) as wire:
        register(Registry(tmp_path / "servers"), wire, host="n7")
        code, out, _ = doctor(f"registry:{tmp_path / 'servers'}", "--json")
    assert code == 0, "one on another machine is asked too"
    assert json.loads(out)["endpoints"][0]["endpoint"] == wire.address


@pytest.mark.parametrize("path", ["/v1/models", "/version", "/tokenize", COMPLETIONS])
@pytest.mark.parametrize("how", ["deep", "list", "null", "large id", "choices", "places"])
def test_what_a_hostile_server_says_is_taken_or_refused_in_one_line(how: str, path: str, doctor: Doctor, monkeypatch):
    monkeypatch.setattr(TIMING, "attempts", 1)
    with serving(HostileWire(how=how, paths=(path,))) as wire:
        code, _, err = doctor(wire.address)
    assert err.count("\n") <= 1
    assert (code == 0) or (code == 2 and err.startswith("medexam: "))
