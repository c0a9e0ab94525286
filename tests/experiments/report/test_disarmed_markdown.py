"""No name, description or reply of others' is a tag or a link in what we write as Markdown."""

import dataclasses

import pytest

from markdown_tags import TAG, outside_of_blocks
from medexam.experiments import disarm, run_report
from medexam.experiments.report.markdown import fenced, join_markdown

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)> [here](javascript:alert(1)) ![x](http://127.0.0.1/x)"


@pytest.mark.parametrize("opening", ["", "```text\n", "````", "~~~\n"])
def test_a_report_holds_no_tag_of_others(make_run, opening) -> None:
    run = make_run(
        {"kind": "zero_shot"},
        "rwu",
        model={"engine": "litellm", "name": f"openai/{EVIL}"},
        extra=lambda _: {"reply": EVIL},
    )
    run = dataclasses.replace(run, record=dataclasses.replace(run.record, description=f"{opening}{EVIL}"))
    text = run_report(run, run.folder.read_predictions())
    assert "alert(1)" in text
    assert not TAG.search(outside_of_blocks(text))
    assert "<script>" in text, "a reply is shown word for word"


@pytest.mark.parametrize(
    "hidden",
    [
        "```text\n<b>",
        "```x``` and then\n\n<b>",
        "- a list\n\n  ```text\n\nbehind it <b>",
        "> ```text\nbehind it <b>",
        "    ```text\n<b>",
        "~~~\n<b>",
        "``` text\n<b>",
        "&lt;b> <b>",
        "<!-- <b>",
        "</td><b>",
        "<?php",
    ],
)
def test_nothing_hides_a_tag(hidden: str) -> None:
    text = disarm(hidden)
    assert not TAG.search(text)
    assert "```" not in text
    assert "~~~" not in text


def test_what_looks_like_a_tag_and_is_none_stays() -> None:
    text = "p < 0.05, a <- b, 3<4, [1], (2)"
    assert join_markdown([text, fenced("<b> [a](b)")]) == f"{text}\n\n```text\n<b> [a](b)\n```\n"
