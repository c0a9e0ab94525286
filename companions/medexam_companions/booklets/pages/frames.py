"""Where things stand on a page as it is read: upright, from its lower left corner, in points.

A page may be shown turned (/Rotate), its text may be drawn turned, and its box may begin anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_QUARTER = 90


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
    """From the coordinates of a page's content to those of the page as it is read."""

    page: int
    """From 1."""
    bounds: tuple[float, float, float, float]
    """Left, bottom, right and top of the page in its content's coordinates."""
    turn: int
    """Degrees clockwise by which the content is turned to stand upright: 0, 90, 180 or 270."""

    @property
    def width(self) -> float:
        """Points."""
        left, bottom, right, top = self.bounds
        return top - bottom if self.turn % 180 else right - left

    @property
    def height(self) -> float:
        """Points."""
        left, bottom, right, top = self.bounds
        return right - left if self.turn % 180 else top - bottom

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point of the content stands."""
        left, bottom, right, top = self.bounds
        match self.turn:
            case 90:
                return y - bottom, right - x
            case 180:
                return right - x, top - y
            case 270:
                return top - y, x - left
        return x - left, y - bottom

    def place_box(self, left: float, bottom: float, right: float, top: float) -> Box:
        """Return where a box of the content stands."""
        (x0, y0), (x1, y1) = self.place(left, bottom), self.place(right, top)
        return Box(self.page, min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))

    def find_content(self, box: Box) -> tuple[float, float, float, float]:
        """Find left, bottom, right and top of `box` in the content's coordinates."""
        left, bottom, right, top = self.bounds
        match self.turn:
            case 90:
                return right - box.top, bottom + box.x0, right - box.bottom, bottom + box.x1
            case 180:
                return right - box.x1, top - box.top, right - box.x0, top - box.bottom
            case 270:
                return left + box.bottom, top - box.x1, left + box.top, top - box.x0
        return left + box.x0, bottom + box.bottom, left + box.x1, bottom + box.top


def find_turn(angles: Sequence[float], page_turn: int) -> int:
    """Find the turn that makes most text upright, by the degrees that each letter is turned counter-clockwise.

    Without letters it is the turn in which the page is shown.
    """
    if not angles:
        return page_turn % 360
    quarters = [round(angle / _QUARTER) % 4 for angle in angles]
    return max(set(quarters), key=lambda quarter: (quarters.count(quarter), quarter * _QUARTER == page_turn)) * _QUARTER
