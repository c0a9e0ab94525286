"""What a reader sees of texts of others, by a real renderer: their characters, and nothing that they would make."""

import pytest

from markdown_tags import LINKS as MADE_LINKS
from markdown_tags import render, types_in
from medexam.experiments import disarm
from medexam.experiments.report.escaping import heading, paragraphs
from medexam.experiments.report.markdown import render_table
from medexam.tables import Table

LINKS = [
    "[x]: http://evil/ 'title'\n\n[x]",
    "[x][y] and [y][]\n\n[y]:\n  <http://evil>",
    "[x\ny]: /z\n\n[x y]",
    "> [x]: /y\n\n[x]",
    "[^1] and\n\n[^1]: a note",
    "[x]: /y\n\n![x]",
    "[a](b) ![a](b) [a]( b ) [a\n](b)",
    r"[a]\(b) [a\](b) \[a](b) [a\\](b)",
    "[`a](b)`](c)",
    "<javascript:alert(1)> <me@evil> <1@evil> <https://evil>",
    "<b>x</b> <!-- x --> <?php ?> <![CDATA[x]]> </td>",
    "&lt;b&gt; &#60;b> &#x3c;b&#x3E; &amp;lt;",
]
DIVIDERS = [
    "a\n===",
    "a\n-",
    "# a",
    "a\n### b ###",
    "- a\n+ b\n* c",
    "1. a\n2) b",
    "> a",
    "***",
    "_ _ _",
    "a | b\n--- | ---\n1 | 2",
    "| a |\n|:-:|\n| 1 |",
    "a\n:-\nb",
    "    indented",
    "a\n\n\tindented",
]
OTHERS = [*LINKS, *DIVIDERS, "a|b", r"a\|b", r"a\\|b", "|", "\\", "a\rb", "a\r\nb\n\nc", "```\nx", "~~~x"]
MADE = {*MADE_LINKS, "fence", "code_block"}
SECTIONS = {"heading_open", "table_open", "hr", "bullet_list_open", "ordered_list_open", "blockquote_open"}


@pytest.mark.parametrize("text", LINKS)
def test_the_renderer_would_make_something_of_it(text: str) -> None:
    assert "&" in text or "[^" in text or r"]\(" in text or types_in(text) & MADE


@pytest.mark.parametrize("text", OTHERS)
def test_no_text_of_others_makes_a_link_or_a_section(text: str) -> None:
    shown = disarm(paragraphs(text))
    assert not types_in(shown) & (MADE | SECTIONS)


@pytest.mark.parametrize("text", OTHERS)
def test_a_heading_is_one(text: str) -> None:
    found = render(disarm(f"{heading(2, f'a {text}')}\n\nbehind"))
    assert [token.type for token in found if token.block][0::2] == ["heading_open", "heading_close", "inline"]
    assert not {token.type for token in found} & MADE


@pytest.mark.parametrize("text", OTHERS)
def test_a_cell_is_one(text: str) -> None:
    table = Table(text, ("left", text), (("1", text), (text, "4")), text_columns=1)
    found = render(disarm(render_table(table)))
    assert sum(token.type == "td_open" for token in found) == 4
    assert sum(token.type == "th_open" for token in found) == 2
    assert not {token.type for token in found} & MADE
    assert found[-1].type == "table_close"


def test_entities_are_shown_as_they_are_written() -> None:
    (text,) = [token.content for token in render(disarm("&lt;b&gt; R&D; A & B")) if token.type == "text"]
    assert text == "&lt;b&gt; R&D; A & B"


def test_paragraphs_and_emphasis_stay() -> None:
    text = "A **bold** word, -1, 2.5 and 3)x.\n\nAnother paragraph of #tags and a-b."
    assert disarm(paragraphs(text)) == text
