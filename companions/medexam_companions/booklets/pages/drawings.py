"""Where something is drawn on a page: pictures and figures made of lines, and nothing that only decorates text.

Rules, frames of tables and light fills behind text are no drawings.
"""

import ctypes
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from medexam_companions.booklets.pages import pdfium
from medexam_companions.booklets.pages.frames import Box, Frame
from medexam_companions.booklets.pages.glyphs import Glyph

SMALLEST_DRAWING = 15.0
"""Points; what is smaller in both directions is an ornament of the text."""

_MAX_NESTING = 5
_THIN = 2.5
"""Points; a path thinner than this is a rule, not a drawing."""
_STRAIGHT = 0.01
"""Of a path's own units: how far a side may lean."""
_NEAR = 4.0
"""Points between two strokes of one drawing."""
_PAGE_SHARE = 0.5
"""A drawing over more of the page than this is its background."""
_LIGHT = 0.8
"""Share of full brightness from which a fill behind text is paper."""
_WHITE = 0.98
"""Share of full brightness from which a fill without a stroke prints nothing."""
_TEXT = 6
"""Letters inside lines and light fills that make them a table or a frame."""


_Stroke = tuple[Box, bool]
"""What is drawn, and whether it is a straight rule, a rectangle or a light fill, as tables and frames are made of."""


def find_drawings(page: Any, frame: Frame, glyphs: Sequence[Glyph]) -> tuple[Box, ...]:
    """Find the boxes of a page's drawings, each whole."""
    strokes = list(_find_strokes(page, frame))
    rules = _find_rules(strokes, glyphs)
    boxes = _join([box for box, _ in strokes if box not in rules])
    return tuple(
        box for box in boxes if box.x1 - box.x0 >= SMALLEST_DRAWING and box.top - box.bottom >= SMALLEST_DRAWING
    )


def _find_strokes(page: Any, frame: Frame) -> Iterator[_Stroke]:
    kinds = (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_SHADING)
    for item in page.get_objects(filter=kinds, max_depth=_MAX_NESTING):
        box = frame.place_box(*_find_bounds(item))
        wide, high = box.x1 - box.x0, box.top - box.bottom
        if wide * high >= _PAGE_SHARE * frame.width * frame.height or max(wide, high) <= _THIN:
            continue
        if item.type != pdfium.FPDF_PAGEOBJ_PATH:
            yield box, False
            continue
        filled, stroked, brightness = _read_paint(item)
        if not stroked and (not filled or brightness >= _WHITE):
            continue
        straight = min(wide, high) <= _THIN or _is_rectangle(item)
        yield box, straight and (not filled or brightness >= _LIGHT or min(wide, high) <= _THIN)


def _find_bounds(item: Any) -> tuple[float, float, float, float]:
    """Find left, bottom, right and top in the page's content, also of what stands in a form."""
    bounds = item.get_bounds()
    container = item.container
    while container is not None:
        bounds = container.get_matrix().on_rect(*bounds)
        container = container.container
    left, bottom, right, top = bounds
    return left, bottom, right, top


def _read_paint(item: Any) -> tuple[bool, bool, float]:
    """Return whether a path is filled, whether it is stroked, and how bright its fill is, from 0 to 1."""
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(item, mode, stroke)
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not pdfium.FPDFPageObj_GetFillColor(item, red, green, blue, alpha):
        return mode.value != 0, bool(stroke.value), 0.0
    shade = min(red.value, green.value, blue.value) / 255
    return mode.value != 0, bool(stroke.value), 1.0 - (1.0 - shade) * alpha.value / 255


def _is_rectangle(item: Any) -> bool:
    """Return whether a path has only straight sides that meet at right angles to the page."""
    x, y = ctypes.c_float(), ctypes.c_float()
    points = []
    for place in range(pdfium.FPDFPath_CountSegments(item)):
        segment = pdfium.FPDFPath_GetPathSegment(item, place)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_BEZIERTO:
            return False
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        points.append((kind == pdfium.FPDF_SEGMENT_LINETO, x.value, y.value))
    return all(
        not line or min(abs(x1 - x0), abs(y1 - y0)) < _STRAIGHT for (_, x0, y0), (line, x1, y1) in pairwise(points)
    )


def _find_rules(strokes: Sequence[_Stroke], glyphs: Sequence[Glyph]) -> set[Box]:
    """Find rules and frames around text, and light fills behind it."""
    rules: set[Box] = set()
    for group_box in _join([box for box, _ in strokes]):
        inside = [(box, is_plain) for box, is_plain in strokes if _holds(group_box, box)]
        letters = sum(
            group_box.x0 <= glyph.x0 <= group_box.x1
            and group_box.bottom <= glyph.baseline <= group_box.top
            and glyph.text != " "
            for glyph in glyphs
        )
        if letters >= _TEXT and all(is_plain for _, is_plain in inside):
            rules |= {box for box, _ in inside}
    return rules


def _holds(outer: Box, inner: Box) -> bool:
    return outer.x0 <= inner.x0 and inner.x1 <= outer.x1 and outer.bottom <= inner.bottom and inner.top <= outer.top


def _join(boxes: list[Box]) -> list[Box]:
    """Join boxes that touch or nearly touch into one."""
    joined: list[Box] = []
    for box in boxes:
        # Each join may bring the box near others that it did not touch before.
        while near := [
            other
            for other in joined
            if max(box.x0 - other.x1, other.x0 - box.x1, box.bottom - other.top, other.bottom - box.top) <= _NEAR
        ]:
            joined.remove(near[0])
            box = Box.around([box, near[0]])
        joined.append(box)
    return joined
