"""One HTML page for the human who must check a build: the booklet as printed beside what was read.

Doubtful questions come first. Everything is in the page itself; nothing is fetched.
"""

import base64
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from medexam_companions.booklets.drafts import Draft
from medexam_companions.booklets.pages.opening import OpenBooklet

if TYPE_CHECKING:
    from PIL.Image import Image

TEMPLATE = Path(__file__).with_name("review.html")
SCALE = 1.6
"""Pixels to the point."""
_GREYS = 16
"""Levels of grey, which print as well as all and weigh less."""


def render_review(report: Mapping[str, Any], drafts: Sequence[Draft], booklet: OpenBooklet) -> str:
    """Render the page, in HTML."""
    doubts: defaultdict[int, list[str]] = defaultdict(list)
    for finding in (*report["left_out"], *report["suspicious"]):
        doubts[finding["number"]].append(f"{finding['kind'].replace('_', ' ')}: {finding['detail']}")
    parts = {
        "To look at": [draft for draft in drafts if draft.number in doubts],
        "The others": [draft for draft in drafts if draft.number not in doubts],
    }
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["crop"] = lambda box: _encode(booklet.crop(box, SCALE))
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode()
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(report=report, parts=parts, doubts=doubts)


def _encode(image: "Image") -> str:
    content = io.BytesIO()
    image.convert("L").quantize(_GREYS).save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()
