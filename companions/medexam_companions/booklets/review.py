"""One HTML page for the human who must check a build: the booklet as printed beside what was read.

Doubtful questions come first. Everything is in the page itself; nothing is fetched.
"""

import base64
import io
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from PIL import Image

from medexam_companions.booklets.drafts import Draft
from medexam_companions.booklets.images import BookletPicture
from medexam_companions.booklets.pages.opening import OpenBooklet
from medexam_companions.booklets.report import BuildReport

TEMPLATE = Path(__file__).with_name("review.html")
SCALE = 1.6
"""Pixels to the point."""
_FEW_GREYS = [min(round(level / 17) * 17, 255) for level in range(256)]
"""Sixteen levels of grey, which print as well and weigh half as much."""
_WIDEST = 800
"""Pixels that a question's picture is shown with at most."""


@dataclass(frozen=True, slots=True)
class ReviewEntry:
    """One question on the page."""

    draft: Draft
    doubts: tuple[str, ...]
    crops: tuple[str, ...]
    """The booklet, in PNG and base64."""
    picture: str | None
    """The question's picture, likewise."""


def render_review(report: BuildReport, drafts: Sequence[Draft], booklet: OpenBooklet) -> str:
    """Render the page, in HTML."""
    doubts: defaultdict[int, list[str]] = defaultdict(list)
    for finding in (*report.left_out, *report.suspicious):
        doubts[finding.number].append(f"{finding.kind.replace('_', ' ')}: {finding.detail}")
    corrected = {applied.number for applied in report.corrections}
    annulled = set(report.annulled)
    parts: dict[str, list[ReviewEntry]] = {"To look at": [], "Corrected by hand": [], "Annulled": [], "The others": []}
    for draft in drafts:
        entry = ReviewEntry(draft, tuple(doubts[draft.number]), _crop(draft, booklet), _show(draft.picture))
        title = "The others"
        if entry.doubts:
            title = "To look at"
        elif draft.number in corrected:
            title = "Corrected by hand"
        elif draft.number in annulled:
            title = "Annulled"
        parts[title].append(entry)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(report=report, parts=parts.items())


def _crop(draft: Draft, booklet: OpenBooklet) -> tuple[str, ...]:
    return tuple(_encode(booklet.crop(box, SCALE)) for box in draft.boxes)


def _show(picture: BookletPicture | None) -> str | None:
    if picture is None:
        return None
    with Image.open(io.BytesIO(picture.content)) as opened:
        image = opened.convert("RGB")
    image.thumbnail((_WIDEST, _WIDEST))
    return _encode(image, grey=False)


def _encode(image: Image.Image, *, grey: bool = True) -> str:
    content = io.BytesIO()
    (image.convert("L").point(_FEW_GREYS) if grey else image).save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()
