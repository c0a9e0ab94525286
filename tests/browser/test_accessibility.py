"""The page under axe-core, an accessibility checker: no fault of any impact, in light and dark, wide and narrow.

`npm pack axe-core` fetches it; AXE_CORE names its `axe.min.js`.
"""

import os
from pathlib import Path

import pytest

from browsing import CHROMIUM, Browser
from medexam.cli.views.runs import read_current
from medexam.datasets import load_exam_set
from medexam.experiments.report.page import write_page
from medexam.predictions import Reason, Status
from medexam.specs import DatasetSpec
from stored_runs import write_run

AXE = os.environ.get("AXE_CORE", "")
FAULTS = """
axe.run(document, {resultTypes: ["violations"]}).then((found) => ({
    passed: found.passes.length,
    faults: found.violations.flatMap((rule) => rule.nodes.map((one) => `${rule.id} (${rule.impact}): ${one.html}`)),
}))
"""
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)"),
    pytest.mark.skipif(not AXE, reason="AXE_CORE does not name axe.min.js (`npm pack axe-core` fetches it)"),
]


def _answer(question, gold):
    """Right, wrong or unanswered by turns, with a conversation to show."""
    said = {"reply": "Because. {Answer: 1}", "prompt_tokens": 90, "completion_tokens": 4, "latency_s": 0.5}
    if question.number % 3 == 2:
        return {"status": Status.UNANSWERED, "reason": Reason.UNPARSED, **said}
    return {"status": Status.ANSWERED, "answer": gold if question.number % 3 else 1, **said}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A browser, and the address of a page of three runs."""
    place = tmp_path_factory.mktemp("accessibility")
    exams = load_exam_set(DatasetSpec(name="headqa_sample"))
    programs = ("zero_shot", "chain_of_thought", "longest")
    dataset = {"name": "headqa_sample"}
    runs = [write_run(place / name, exams, {"kind": name}, _answer, dataset=dataset) for name in programs]
    write_page(read_current(runs), place / "page.html")
    with Browser(place / "chromium") as browser:
        # A page that refuses scripts of others takes one from the debugger alone.
        yield browser, (place / "page.html").as_uri()


@pytest.mark.parametrize("width", [1400, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_accessibility_fault(page, scheme, width) -> None:
    browser, address = page
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    browser.open("about:blank#again")
    browser.open(address)
    browser.wait("document.querySelector('.detail article')")
    browser.run(f"{Path(AXE).read_text(encoding='utf-8')}; 0")
    for fold in (False, True):
        if fold:
            browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            browser.run("new Promise((done) => setTimeout(done, 500))")
        found = browser.run(FAULTS)
        assert found["passed"] >= 10
        assert found["faults"] == []
