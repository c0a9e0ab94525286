"""The HTML page of a report, read as a browser and its script read it."""

import base64
import gzip
import json
from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    """A page's elements, the text of its tables by caption, and what it says of questions."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.texts: dict[str, list[str]] = {}
        """Tag -> the texts within its elements."""
        self.data: dict[str, Any] = {}
        """The `questions`, the `turns` of their prompts, and the `index`; empty for a board."""
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "img"}:
            self._open.append(tag)
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in {"th", "td"}:
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        where = self._open[-1] if self._open else ""
        self.texts.setdefault(where, []).append(data)
        if where == "caption":
            self.tables.setdefault(data, self._rows)
        elif {"td", "th"} & set(self._open):
            self._rows[-1][-1] += data
        elif where == "script" and self.elements[-1][1].get("id") == "data":
            self.data = json.loads(gzip.decompress(base64.b64decode(data)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of a tag."""
        return [attributes for name, attributes in self.elements if name == tag]
