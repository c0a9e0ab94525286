"""`medexam report --watch`: the page of runs in progress, written again while they are asked."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

from command_line import medexam  # noqa: F401
from waiting import until


def look(page, log):
    lines = log.read_text().splitlines(keepends=True)
    try:
        for count in (5, 7):
            log.write_text("".join(lines[:count]))
            # Scores lie there only where they are of all answers.
            log.with_name("metrics.json").unlink(missing_ok=True)
            words = f"{count} of 12"
            until(lambda words=words: page.exists() and words in page.read_text())
        assert 'http-equiv="refresh"' in page.read_text()
    finally:
        os.kill(os.getpid(), signal.SIGINT)


def test_the_page_follows_the_answers(ask, spec, medexam, tmp_path) -> None:  # noqa: F811
    folder = ask(spec)[0].folder
    with ThreadPoolExecutor() as pool:
        looked = pool.submit(look, tmp_path / "live.html", folder / "predictions.jsonl")
        code, _, err = medexam("report", folder, "--watch", "--html", tmp_path / "live.html")
        looked.result()
    assert code == 0, err
