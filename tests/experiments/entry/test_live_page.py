"""`medexam report --watch`: the page of runs in progress, asked for over HTTP."""

import os
import signal
import socket
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from command_line import medexam  # noqa: F401
from waiting import until


def get(address, path="/", **headers):
    with urllib.request.urlopen(urllib.request.Request(address + path, headers=headers)) as response:
        return response.read().decode(), response.headers


def shows(address, words):
    time.sleep(0.2)
    try:
        return words in get(address)[0]
    except OSError:
        return False


def look(address, folder):
    try:
        until(lambda: shows(address, "headqa_sample"))
        assert "Refresh" not in get(address)[1], "no question is pending"
        log = folder / "predictions.jsonl"
        lines = log.read_text().splitlines(keepends=True)
        log.write_text("".join(lines[:5]))
        until(lambda: shows(address, "5 of 12"))
        assert get(address)[1]["Refresh"] == "5"
        log.write_text("".join(lines))
        until(lambda: not shows(address, "5 of 12"))
        for path, headers in (("/other", {}), ("/", {"Host": "evil.example:80"})):
            with pytest.raises(urllib.error.HTTPError) as refused:
                get(address, path, **headers)
            refused.value.close()
            assert refused.value.code == 404
    finally:
        os.kill(os.getpid(), signal.SIGINT)


def test_the_page_follows_the_answers_and_is_given_to_this_machine_alone(ask, spec, medexam) -> None:  # noqa: F811
    folder = ask(spec)[0].folder
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ThreadPoolExecutor() as pool:
        looked = pool.submit(look, f"http://127.0.0.1:{port}", folder)
        code, _, err = medexam("report", folder, "--runs-dir", folder.parent, "--watch", port)
        looked.result()
    assert (code, f"http://127.0.0.1:{port}" in err) == (0, True)
