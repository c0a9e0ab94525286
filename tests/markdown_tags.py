"""Tags and links in Markdown, as text and as a real renderer makes them."""

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

TAG = re.compile(r"<[A-Za-z/!?]|\]\(")
LINKS = {"link_open", "image", "html_inline", "html_block"}
"""Types of tokens that no text of others may make."""


def outside_of_blocks(text: str) -> str:
    """The Markdown without the blocks that show replies word for word."""
    return re.sub(r"(?m)^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL)


def render(text: str) -> list[Token]:
    """Every token of a document, those within paragraphs, headings and cells included."""
    found = MarkdownIt("commonmark").enable("table").parse(text)
    return [each for token in found for each in (token, *(token.children or ()))]


def types_in(text: str) -> set[str]:
    """The types of the tokens of a document."""
    return {token.type for token in render(text)}
