"""No name, warning or reply of others makes a tag, a link or a section of a report, by a real renderer of Markdown."""

import pytest

import medexam
from markdown_tags import LINKS as MADE_LINKS
from markdown_tags import TAG, outside_of_blocks, render, types_in
from medexam.predictions import Failure

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)> [here](javascript:alert(1)) ![x](http://127.0.0.1/x)"
LINKS = [
    EVIL,
    "[x]: http://evil/ 'title'\n\n[x]",
    "[x][y] and [y][]\n\n[y]:\n  <http://evil>",
    "> [x]: /y\n\n[x]",
    "[a](b) ![a](b) [a]( b ) [a\n](b)",
    r"[a]\(b) [a\](b) \[a](b) [a\\](b)",
    "[`a](b)`](c)",
    "<javascript:alert(1)> <me@evil> <1@evil> <https://evil>",
    "<b>x</b> <!-- x --> <?php ?> <![CDATA[x]]> </td>",
    "&lt;b&gt; &#60;b> &#x3c;b&#x3E; &amp;lt;",
]
SECTIONS = [
    "a\n===",
    "a\n### b ###",
    "- a\n+ b\n* c",
    "1. a\n2) b",
    "> a",
    "***",
    "a | b\n--- | ---\n1 | 2",
    "a\n:-\nb",
    "a\n\n\tindented",
    r"a\\|b | \|",
    "a\r\nb\n\nc",
    "```\nx",
    "~~~x",
]


def shape(text: str) -> list[str]:
    """The types of a document's blocks, in order."""
    return [token.type for token in render(text) if token.block]


def write(make_run, words: list[str], name: str = "plain") -> str:
    """The report of a run whose warnings, failures and replies say these words, and whose model is called `name`."""
    said = iter(words * 20)

    def fields(question) -> dict:
        if question.number == 5:
            return {"reply": next(said)}
        return {"failure": Failure(kind="LMServerError", message=next(said))}

    path = make_run(
        {"kind": "zero_shot"},
        "ffffu",
        model={"engine": "litellm", "name": f"openai/{' '.join(name.split())}"},
        warnings=tuple(words),
        environment={"engine": {"model": name}, "host": name},
        extra=fields,
    )
    return (path / "report.md").read_text()


def check(hostile: str, plain: str) -> None:
    assert shape(hostile) == shape(plain)
    assert not types_in(hostile) & set(MADE_LINKS)
    assert not TAG.search(outside_of_blocks(hostile))


def test_a_report_has_the_same_shape_whatever_is_said_in_it(make_run) -> None:
    texts = [*LINKS, *SECTIONS]
    plain = [f"harmless {'abcdefghijklmnopqrstuvwxyz'[place]}" for place in range(len(texts))]
    check(write(make_run, texts), write(make_run, plain))


def test_a_reply_is_quoted_and_makes_nothing(make_run) -> None:
    hostile, plain = write(make_run, [EVIL]), write(make_run, ["harmless"])
    check(hostile, plain)
    assert "&lt;script>alert(1)&lt;/script>" in hostile


@pytest.mark.parametrize("name", [EVIL, *LINKS[2:9:2], "a | b", "***", r"a\\|b"])
def test_a_name_is_a_heading_and_a_cell_whatever_it_holds(make_run, name, tmp_path) -> None:
    check(write(make_run, ["said"], name), write(make_run, ["said"]))
    medexam.report(*(tmp_path / "runs").iterdir(), markdown=tmp_path / "both.md")
    both = (tmp_path / "both.md").read_text()
    assert sum(kind == "td_open" for kind in shape(both)) % 2 == 0
    assert not types_in(both) & set(MADE_LINKS)
