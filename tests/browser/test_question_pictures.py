"""The picture of a question in a real browser, under the page's own policy."""

from pathlib import Path

import pytest
import yaml

from browsing import CHROMIUM, Browser
from drawn_pictures import draw, write_own
from medexam.experiments import Runner, plan_experiment
from medexam.experiments.report.page import write_page
from watching import Silent

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")]
PICTURE = "document.querySelector('.detail img.asked')"


def test_a_question_is_shown_with_its_picture(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(draw((800, 600)))
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    spec = {
        "name": "seen",
        "dataset": {"kind": "choice", "path": str(write_own(tmp_path, "a.png", None))},
        "model": {"engine": "scripted", "path": str(replies)},
        "program": {"kind": "zero_shot", "images": "shown"},
    }
    runs, _ = Runner(plan_experiment(spec, {}, runs_dir=tmp_path / "runs"), Silent()).run()
    page = tmp_path / "page.html"
    write_page(runs, page)
    with Browser(tmp_path / "browser") as browser:
        browser.open(f"{page.as_uri()}#question=q1")
        browser.wait(f"{PICTURE}?.complete")
        assert browser.run(f"[{PICTURE}.naturalWidth, {PICTURE}.naturalHeight]") == [640, 480]
        assert "not in this page" not in browser.run("document.querySelector('.detail').textContent")
        browser.picture(tmp_path / "page.png")
        browser.open("about:blank#again")
        browser.open(f"{page.as_uri()}#question=q2")
        browser.wait("document.querySelector('.detail h3')?.textContent === 'q2'")
        assert browser.run(f"{PICTURE} === null")
