"""A plain PDF writer: pages of content streams, the standard fonts by name, nothing compressed.

What libraries of PDF do not let a caller choose is chosen here: how the size is given, what is a space, what is turned.
"""

from dataclasses import dataclass, field
from pathlib import Path

from fpdf.fonts import CORE_FONTS_CHARWIDTHS

FONTS = {
    "times": ("Times-Roman", "times"),
    "timesB": ("Times-Bold", "timesB"),
    "timesI": ("Times-Italic", "timesI"),
    "helvetica": ("Helvetica", "helvetica"),
    "helveticaB": ("Helvetica-Bold", "helveticaB"),
}


def measure(text: str, font: str, size: float) -> float:
    """Points that `text` is wide."""
    widths = CORE_FONTS_CHARWIDTHS[FONTS[font][1]]
    return sum(widths[letter] for letter in text) * size / 1000


def escape(text: str) -> bytes:
    """A string of a content stream."""
    coded = text.encode("latin-1")
    return b"(" + coded.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b")"


@dataclass
class Document:
    """Pages and the objects that they use."""

    width: float
    height: float
    rotate: int = 0
    """What the pages' /Rotate says."""
    origin: tuple[float, float] = (0.0, 0.0)
    """Lower left corner of the pages' box."""
    pages: list[list[bytes]] = field(default_factory=list)
    fonts: dict[str, bytes] = field(default_factory=dict)
    """More fonts: dictionaries by name."""
    objects: list[bytes] = field(default_factory=list)
    """Objects that `fonts` refer to, numbered from 100."""

    def add_page(self) -> list[bytes]:
        """A new page's operators."""
        self.pages.append([])
        return self.pages[-1]

    def save(self, path: Path) -> Path:
        """Write it to `path`."""
        bodies: dict[int, bytes] = {100 + place: body for place, body in enumerate(self.objects)}
        fonts = b"".join(b"/%s %s " % (name.encode(), self._font(name)) for name in [*FONTS, *self.fonts])
        first = 100 + len(self.objects)
        kids = b" ".join(b"%d 0 R" % (first + 2 * place) for place in range(len(self.pages)))
        bodies[1] = b"<< /Type /Catalog /Pages 2 0 R >>"
        bodies[2] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(self.pages))
        bodies[3] = b"<< /Font << %s >> >>" % fonts
        x, y = self.origin
        box = b"%g %g %g %g" % (x, y, x + self.width, y + self.height)
        for place, operators in enumerate(self.pages):
            content = b"\n".join(operators)
            bodies[first + 2 * place] = (
                b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Rotate %d /Resources 3 0 R /Contents %d 0 R >>"
                % (box, self.rotate, first + 2 * place + 1)
            )
            bodies[first + 2 * place + 1] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
        path.write_bytes(_serialize(bodies))
        return path

    def _font(self, name: str) -> bytes:
        if name in self.fonts:
            return self.fonts[name]
        return b"<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>" % FONTS[name][0].encode()


def _serialize(bodies: dict[int, bytes]) -> bytes:
    out, places = b"%PDF-1.5\n", {}
    for number, body in sorted(bodies.items()):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, last = len(out), max(bodies)
    rows = [b"%010d 00000 n \n" % places[n] if n in places else b"0000000000 65535 f \n" for n in range(last + 1)]
    out += b"xref\n0 %d\n%s" % (last + 1, b"".join(rows))
    return out + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (last + 1, start)
