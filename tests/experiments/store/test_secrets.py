"""No key of a server ends up anywhere: not in a run folder, not in the MLflow store, not in what is printed."""

import logging
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from wire_server import Wire, is_identifying, serving

from medexam.cli import run_command
from medexam.serve import TIMING, RegisteredServer, Registry

KEY = "sk-recognisable-0123456789abcdef"
VARIABLES = {"environment": "MY_KEY", "usual environment": "VLLM_API_KEY"}
PLACES = (*VARIABLES, "registry")


def model_of(place: str, wire: Wire, folder: Path) -> dict[str, object]:
    """The model part of a spec whose key comes from this place; only the key's own file holds it."""
    registry = Registry(folder / "keys")
    own = {
        "environment": {"api_key_env": "MY_KEY"},
        "usual environment": {},
        "registry": {"endpoints": [f"registry:{registry.path}"]},
    }
    if place == "registry":
        registry.add(RegisteredServer(wire.address, wire.models[0], socket.gethostname(), os.getpid(), KEY))
    return {"engine": "vllm", "endpoints": [wire.address], **own[place]}


@dataclass
class Refusing(Wire):
    """Answers the probe, and refuses every question."""

    status: int = 400

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        asked = "return_token_ids" in body or "multiple-choice" in str(body.get("messages"))
        asked = asked and path.endswith("completions") and not is_identifying(body)
        return (self.status, {"error": {"message": "no"}}) if asked else super().reply(path, body)


@pytest.fixture
def run(
    tmp_path: Path,
    runs_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Callable[[dict[str, object]], tuple[int, str]]:
    """A small experiment by the command line, with MLflow traces; its exit code, and all that was printed or logged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    monkeypatch.setattr(TIMING, "first_wait_s", 0.001)
    document = {
        "name": "trial",
        "dataset": {"name": "headqa_sample", "limit": 4},
        "matrix": {"program.answer_format": ["guided", "free"]},
        "trace_questions": 2,
    }

    def call(model: dict[str, object]) -> tuple[int, str]:
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump({**document, "model": model}))
        monkeypatch.setattr(sys, "argv", ["medexam", "run", "spec.yaml"])
        caplog.set_level(logging.DEBUG)
        code = 0
        try:
            run_command()
        except SystemExit as done:
            code = int(done.code or 0)
        return code, "".join(capfd.readouterr()) + caplog.text

    return call


def holding(folder: Path) -> list[str]:
    """The files below a folder that hold the key."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files if KEY.encode() in path.read_bytes())


@pytest.mark.parametrize("place", PLACES)
def test_a_run_keeps_no_key(place: str, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place in VARIABLES:
        monkeypatch.setenv(VARIABLES[place], KEY)
    with serving(Wire(key=KEY)) as wire:
        code, said = run(model_of(place, wire, tmp_path))
    assert code == 0, said
    assert f"Bearer {KEY}" in wire.keys
    runs = [path.parent for path in (tmp_path / "runs").glob("*/predictions.jsonl")]
    assert len(runs) == 2
    assert KEY not in said
    assert [Path(name).parts[0] for name in holding(tmp_path)] == ["keys"] * (place == "registry")


@pytest.mark.parametrize(("status", "ends"), [(400, 3), (401, 2)])
def test_a_server_that_quotes_the_key_in_its_refusals_is_not_quoted(
    status: int, ends: int, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with serving(Refusing(key=KEY, quotes=True, status=status)) as wire:
        code, said = run({**model_of("environment", wire, tmp_path), "timeout_s": 1})
    kept = "".join(path.read_text() for path in (tmp_path / "runs").glob("*/predictions.jsonl"))
    assert code == ends
    assert f"Bearer {KEY}" in wire.keys
    assert "[hidden]" in (kept if ends == 3 else said)
    assert KEY not in said
    assert holding(tmp_path) == []


def test_a_probe_that_is_refused_does_not_quote_the_key(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with serving(Wire(key=KEY, quotes=True, refuse={"/v1/completions": 429})) as wire:
        code, said = run({**model_of("environment", wire, tmp_path), "timeout_s": 1})
    assert code == 2
    assert "[hidden]" in said
    assert KEY not in said
    assert holding(tmp_path) == []


PASSWORDS = {
    "password": {"endpoints": [f"http://me:{KEY}@127.0.0.1:9/v1"]},
    "without scheme": {"endpoints": [f"me:{KEY}@127.0.0.1:9"]},
    "query": {"endpoints": [f"http://127.0.0.1:9/v1?token={KEY}"]},
    "key for variable": {"api_key_env": KEY},
    "hexadecimal key for variable": {"api_key_env": f"a{KEY[-16:]}"},
    "key for name": {"name": KEY},
}


@pytest.mark.parametrize("model", PASSWORDS.values(), ids=PASSWORDS)
def test_a_key_that_stands_in_a_spec_is_refused_and_not_repeated(model, run, tmp_path: Path) -> None:
    code, said = run({"engine": "vllm", "name": "tiny", "endpoints": ["http://127.0.0.1:9/v1"], **model})
    assert code == 2
    assert KEY[-16:] not in said
    (tmp_path / "spec.yaml").unlink()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY[-16:].encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "uri",
    [
        f"http://me:{KEY}@127.0.0.1:9",
        f"http://127.0.0.1:9/?token={KEY}",
        f"nonsense://me:{KEY}/x@y",
    ],
)
def test_an_address_of_mlflow_is_shown_without_its_password(uri: str, tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    (tmp_path / "spec.yaml").write_text("name: trial\ndataset: {name: headqa_sample}\nprogram: {kind: longest}\n")
    words = ["run", str(tmp_path / "spec.yaml"), "--runs-dir", str(tmp_path / "runs"), "--tracking-uri", uri]
    monkeypatch.setattr(sys, "argv", ["medexam", *words])
    with pytest.raises(SystemExit) as ended:
        run_command()
    assert not ended.value.code
    said = "".join(capfd.readouterr())
    assert "MLflow at " in said
    assert KEY not in said
    assert holding(tmp_path) == []
