"""The MLflow UI as a user sees it: `medexam ui`, and a real browser on an experiment's page."""

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml
from fake_vllm import free_port

import medexam
from browsing import CHROMIUM, Browser
from waiting import BACKSTOP_S, until

pytestmark = pytest.mark.browser


def _serve(runs_dir: Path, port: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "medexam", "ui", "--runs-dir", str(runs_dir), "--port", str(port)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def _is_healthy(process: "subprocess.Popen[str]", port: int) -> bool:
    assert process.poll() is None, "the UI ended before it was healthy"
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=BACKSTOP_S) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


@pytest.mark.nightly
def test_the_ui_shows_an_experiment_and_ends_on_ctrl_c(runs_dir, tmp_path) -> None:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    spec = {"name": "browser-check", "dataset": {"name": "headqa_sample", "limit": 8}, "program": {"kind": "zero_shot"}}
    spec["model"] = {"engine": "scripted", "path": str(tmp_path / "replies.yaml")}
    (run,) = medexam.run(spec, runs_dir=runs_dir, progress=False)
    process = _serve(runs_dir, port := free_port())
    try:
        until(lambda: _is_healthy(process, port), "a healthy UI")
        said = [process.stderr.readline() for _ in range(2)]
        address = re.search(r"browser-check: (http://127\.0\.0\.1:\S+)", said[1])[1]
        if CHROMIUM is not None:
            with Browser(tmp_path / "chromium", width=1800, height=1200) as browser:
                browser.open(address)
                for text in ("browser-check", "zero_shot", "exam_score", f"{run.accuracy:g}"):
                    browser.wait(f"document.body.textContent.includes({text!r})")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=BACKSTOP_S) == 0
        assert "Traceback" not in process.stderr.read()
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, "its workers end as well"
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=BACKSTOP_S)
        process.stderr.close()


def test_a_port_that_is_taken_and_a_place_without_a_store_are_refused(tmp_path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with _serve(tmp_path, port) as process:
            assert re.search(rf"127\.0\.0\.1:{port}.*--port", process.communicate(timeout=BACKSTOP_S)[1])
    with _serve(tmp_path, free_port()) as process:
        assert "medexam track RUN" in process.communicate(timeout=BACKSTOP_S)[1]
    assert process.returncode == 2
    assert not list(tmp_path.iterdir())
