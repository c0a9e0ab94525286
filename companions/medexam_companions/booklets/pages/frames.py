"""Where things stand on a page as it is read: upright, from its lower left corner, in points.

A page may be shown turned (/Rotate), its text may be drawn turned, and its box may begin anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfMatrix


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a page."""

    page: int
    """From 1."""
    x0: float
    bottom: float
    x1: float
    top: float

    @classmethod
    def around(cls, boxes: "Sequence[Box]") -> "Box":
        """Return the smallest part of a page that holds all of `boxes`, at least one; they are of one page."""
        x0, bottom = min(box.x0 for box in boxes), min(box.bottom for box in boxes)
        return cls(boxes[0].page, x0, bottom, max(box.x1 for box in boxes), max(box.top for box in boxes))

    @property
    def middle(self) -> tuple[float, float]:
        """Its centre, x then y."""
        return (self.x0 + self.x1) / 2, (self.bottom + self.top) / 2


@dataclass(frozen=True, slots=True)
class Frame:
    """From the coordinates of a page's content to those of the page as it is read, and back."""

    page: int
    """From 1."""
    turn: int
    """Degrees clockwise by which the content is turned to stand upright: 0, 90, 180 or 270."""
    width: float
    height: float
    to_page: "PdfMatrix"
    to_content: "PdfMatrix"

    @classmethod
    def turned(cls, page: int, bounds: tuple[float, float, float, float], turn: int) -> "Frame":
        """Return the frame of a page whose content lies in `bounds`: left, bottom, right and top."""
        from pypdfium2 import PdfMatrix

        upright = PdfMatrix().rotate(turn)
        left, bottom, right, top = upright.on_rect(*bounds)
        back = PdfMatrix().translate(left, bottom).rotate(turn, ccw=True)
        return cls(page, turn, right - left, top - bottom, upright.translate(-left, -bottom), back)

    def place_box(self, left: float, bottom: float, right: float, top: float) -> Box:
        """Return where a box of the content stands."""
        return Box(self.page, *self.to_page.on_rect(left, bottom, right, top))
