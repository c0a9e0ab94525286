"""The page of a run in progress, asked for over HTTP."""

import html
import json
import shutil
import urllib.error
import urllib.request
from contextlib import contextmanager
from threading import Thread

import pytest
import yaml

from medexam.cli.progress.run import TerminalProgress
from medexam.experiments import Runner, plan_experiment
from medexam.experiments.entry import live_page
from medexam.experiments.entry.live_page import LivePage
from waiting import until


@pytest.fixture
def run(tmp_path):
    """A finished run of twelve questions."""
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    document = {
        "name": "watched",
        "dataset": {"name": "headqa_sample", "limit": 12},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": "zero_shot",
    }
    with TerminalProgress() as progress:
        Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), progress).run()
    (folder,) = [child for child in (tmp_path / "runs").iterdir() if child.is_dir()]
    return folder


def _settled(page: LivePage) -> tuple[str, float | None]:
    before = page._state
    until(lambda: page.current() and page._state not in (None, before))
    return page.current()[0].decode(), page.current()[1]


def test_the_page_follows_the_answers_and_stops_when_none_is_pending(run, tmp_path) -> None:
    log = run / "predictions.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:5]))
    page = LivePage((tmp_path / "runs",), tmp_path / "runs", 0.05)
    text, again = _settled(page)
    assert again == 0.05
    assert "5 of 12" in text
    log.write_text("".join(lines))
    text, again = _settled(page)
    assert again is None
    assert "5 of 12" not in text


def test_what_cannot_be_shown_is_said_on_the_page(tmp_path) -> None:
    page = LivePage((tmp_path / "<none>",), tmp_path, 0.05)
    until(lambda: b"no run at" in page.current()[0])
    assert b"&lt;none&gt;" in page.current()[0]
    assert page.current()[1] == 0.05


@contextmanager
def _served(page: LivePage, monkeypatch):
    servers = []

    class Server(live_page.ThreadingHTTPServer):
        def serve_forever(self) -> None:
            servers.append(self)
            super().serve_forever(0.01)

    monkeypatch.setattr(live_page, "ThreadingHTTPServer", Server)
    thread = Thread(target=live_page.serve_page, args=(page, 0))
    thread.start()
    until(lambda: servers)
    try:
        yield f"http://127.0.0.1:{servers[0].server_address[1]}/"
    finally:
        servers[0].shutdown()
        thread.join()


def test_it_is_served_to_this_machine_alone(run, tmp_path, monkeypatch) -> None:
    page = LivePage((run,), tmp_path / "runs", 60)
    with _served(page, monkeypatch) as address:
        _settled(page)
        with urllib.request.urlopen(address) as response:
            assert json.loads((run / "metrics.json").read_text())["n"] == 12
            assert "Refresh" not in response.headers
            assert b"headqa_sample" in response.read()
        for path, headers in (("other", {}), ("", {"Host": "evil.example:80"})):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(address + path, headers=headers))
            refused.value.close()
            assert refused.value.code == 404


def test_all_runs_are_listed_and_those_that_are_chosen_make_a_page(run, tmp_path, monkeypatch) -> None:
    def get(path):
        with urllib.request.urlopen(address.rstrip("/") + path) as response:
            return response.read().decode()

    shutil.copytree(run, run.with_name("b<i>-0123456789ab"))
    (run.parent / "broken").mkdir()
    (run.parent / "broken" / "spec.json").write_text("{")
    page = LivePage((run,), tmp_path / "runs", 60)
    with _served(page, monkeypatch) as address:
        listed = get("/runs")
        assert "3 runs in" in listed
        assert "damaged" in listed
        assert "form-action 'self'" in html.unescape(listed)
        assert "b&lt;i&gt;-0123456789ab" in listed
        assert f'href="/page?run={run.name}"' in listed
        both = get(f"/page?run={run.name}&run=b%3Ci%3E-0123456789ab")
        assert "2 runs" in both
        assert 'href="/runs"' in both
        for outside in ("/page", "/page?run=..", f"/page?run={run.name}&run=none", f"/page?run={tmp_path}"):
            assert "Choose runs of the list" in get(outside)
