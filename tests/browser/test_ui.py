"""The MLflow UI as a user sees it: the command of `medexam ui`, and a real browser on an experiment's page."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from fake_vllm import free_port

from medexam.errors import TrackingError
from medexam.experiments import default_tracking_uri, score_cell
from medexam.experiments.track.runs import track
from medexam.experiments.track.ui import experiment_pages, serve_ui, ui_command
from medexam.predictions import Status
from medexam.questions import AnswerKey, Gold
from stored_runs import made_up_exams, write_run
from waiting import BACKSTOP_S, until

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SERVE = """
import sys
from medexam.experiments.track.ui import serve_ui

sys.exit(serve_ui(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2])))
"""
pytestmark = pytest.mark.browser


def _stored_run(runs_dir: Path, question, program: dict, answer: int):
    questions = [question.model_copy(update={"key": f"{question.key}-{number}"}) for number in range(8)]
    golds = [3, 3, 3, 3, 3, 1, 1, 2]
    key = AnswerKey({asked.key: Gold(number=gold) for asked, gold in zip(questions, golds, strict=True)})
    exams = made_up_exams(questions, key)
    said = {"status": Status.ANSWERED, "answer": answer}
    place = runs_dir / "-".join(map(str, program.values()))
    folder = write_run(place, exams, program, lambda *_: said, name="browser-check", scored=False)
    return score_cell(folder, exams)


@pytest.fixture
def tracked_store(question, runs_dir, uri) -> str:
    """A store with two runs of one experiment, right in 5/8 and 2/8 of the questions."""
    runs = [
        _stored_run(runs_dir, question, {"kind": "zero_shot", "answer_format": "guided"}, answer=3),
        _stored_run(runs_dir, question, {"kind": "blind", "option": 1}, answer=1),
    ]
    track(runs, tracking_uri=uri)
    return uri


@pytest.fixture
def ui(tracked_store, tmp_path):
    """The UI's process and port; it is asked to end, as a supervisor would."""
    port = free_port()
    # What an installation of this tree says of itself; the environment may hold an older one.
    folder = tmp_path / "installed" / "medexam_landing-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: medexam-landing\nVersion: 1\n")
    entry_points = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]["mlflow.app"]
    lines = [f"{name} = {place}\n" for name, place in entry_points.items()]
    (folder / "entry_points.txt").write_text(f"[mlflow.app]\n{''.join(lines)}")
    path = os.pathsep.join(filter(None, (str(folder.parent), str(PROJECT.parent), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-c", SERVE, tracked_store, str(port)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
    try:
        until(lambda: _is_healthy(process, port), "a healthy UI")
        yield process, port
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=BACKSTOP_S)


def _is_healthy(process: "subprocess.Popen[bytes]", port: int) -> bool:
    assert process.poll() is None, "the UI ended before it was healthy"
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=BACKSTOP_S) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _open(address: str, folder: Path) -> str:
    """The page's text as a browser builds it; a picture of it is left in `folder`."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1800,1200",
        "--virtual-time-budget=60000",
        f"--screenshot={folder / 'page.png'}",
        "--dump-dom",
        address,
    ]
    environment = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=BACKSTOP_S, env=environment, check=True)
    return done.stdout


def test_the_ui_shows_an_experiment_and_ends_on_ctrl_c(ui, tracked_store, tmp_path) -> None:
    process, port = ui
    if CHROMIUM is not None:
        (address,) = experiment_pages(tracked_store, host="127.0.0.1", port=port).values()
        click, _, _ = address.partition("/runs")
        _check_page(click, tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=BACKSTOP_S) == 0, "its workers end as well"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    if CHROMIUM is None:
        pytest.skip("its page was not looked at: Chromium is not installed (Debian: apt-get install chromium)")


def _check_page(address: str, folder: Path) -> None:
    """Look for the runs and their metrics; a busy browser may give the page before its scripts are through."""
    pages: list[str] = []

    def shows_runs() -> bool:
        browser = folder / f"browser-{len(pages)}"
        browser.mkdir()
        pages.append(_open(address, browser))
        return "zero_shot-guided" in pages[-1]

    until(shows_runs, "the page of the runs")
    for shown in ("browser-check", "zero_shot-guided · SmolLM2-135M-Instruct", "blind-1 · headqa_sample en"):
        assert shown in pages[-1]
    assert "exam_score" in pages[-1]
    assert "0.625" in pages[-1]
    assert "0.25" in pages[-1]
    assert (folder / f"browser-{len(pages) - 1}" / "page.png").stat().st_size > 10_000


def test_a_port_that_is_taken_is_named(uri) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TrackingError, match=rf"127\.0\.0\.1:{port}.*--port"):
            serve_ui(uri, host="127.0.0.1", port=port)


def test_a_place_without_a_store_says_how_to_make_one(tmp_path) -> None:
    with pytest.raises(TrackingError, match="medexam track RUN"):
        serve_ui(default_tracking_uri(tmp_path), host="127.0.0.1", port=free_port())
    assert not list(tmp_path.iterdir())


def test_a_server_has_its_own_ui() -> None:
    with pytest.raises(TrackingError, match="open it in a browser"):
        serve_ui("http://127.0.0.1:9", host="127.0.0.1", port=free_port())


def test_the_command_has_one_worker_and_names_the_artifacts(tmp_path) -> None:
    command = " ".join(ui_command(default_tracking_uri(tmp_path), host="127.0.0.1", port=5001))
    assert f"--backend-store-uri sqlite:///{tmp_path}/mlflow.db" in command
    assert f"--artifacts-destination file://{tmp_path}/mlartifacts" in command
    assert "--host 127.0.0.1 --port 5001 --workers 1" in command
