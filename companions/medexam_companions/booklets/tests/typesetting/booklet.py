"""Questions on pages, in a style: columns, type, how the size is given, how lines are filled, how pages are turned."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from typesetting.lines import break_lines
from typesetting.pdf import Document, escape, measure
from typesetting.texts import Asked

WIDTH, HEIGHT = 595.0, 842.0
COVER = (
    "MINISTERIO DE SANIDAD",
    "PRUEBAS SELECTIVAS 2021",
    "BIOLOGÍA - VERSIÓN: 0",
    "CUADERNO DE EXAMEN",
    "ADVERTENCIA IMPORTANTE",
    "ANTES DE COMENZAR SU EXAMEN, LEA ATENTAMENTE LAS SIGUIENTES INSTRUCCIONES",
    "1. MUY IMPORTANTE: Compruebe que este Cuaderno de Examen, integrado por {count} preguntas",
    "más 0 de reserva, lleva todas sus páginas y no tiene defectos de impresión.",
    "2. El número de versión de examen coincide con el de su Hoja de Respuestas.",
    "3. La Hoja de Respuestas está nominalizada.",
)


@dataclass(frozen=True)
class Style:
    """How a booklet is set. Lengths are points."""

    size: float = 10.0
    leading: float = 1.15
    """Of the size."""
    columns: int = 2
    margin: float = 45.0
    gutter: float = 18.0
    font: str = "times"
    sizing: Literal["font", "matrix"] = "font"
    """Where the size stands: in the font's operator or the text's matrix."""
    filling: Literal["ragged", "tw", "tc", "tj"] = "ragged"
    """How lines get their width: by word or letter spacing, or by offsets."""
    spaces: bool = True
    """Whether spaces are drawn; else they are gaps."""
    tracking: float = 0.0
    """Points between letters everywhere."""
    justify: bool = False
    rotate: int = 0
    """The pages' /Rotate; what is printed is turned back, so that the page is seen upright."""
    turned: int = 0
    """Degrees that the whole page is seen turned."""
    origin: tuple[float, float] = (0.0, 0.0)
    question_label: str = "{}."
    option_label: str = "{}."
    letters: bool = False
    """Whether options are labelled by letters."""
    hanging: float = 2.4
    """Of the size: where a question's text begins."""
    option_indent: float = 2.6
    """Of the size: where an option's label stands."""
    option_hanging: float = 1.6
    """Of the size: from an option's label to its text."""
    bold: bool = True
    apart: float = 1.0
    """Leadings between questions."""
    footer: str = "- {} -"
    rules: bool = False
    """Whether decorative lines and white and grey fills stand behind the text."""
    cover: bool = True


class Press:
    """Sets questions in one style."""

    def __init__(self, style: Style) -> None:
        self.style = style
        turned = (style.rotate + style.turned) % 180 != 0
        wide, high = (HEIGHT, WIDTH) if turned else (WIDTH, HEIGHT)
        self.document = Document(wide, high, style.rotate, style.origin)
        self.column_width = (WIDTH - 2 * style.margin - (style.columns - 1) * style.gutter) / style.columns
        self.page: list[bytes] = []
        self.column, self.y, self.number = style.columns, 0.0, 0

    def set(self, questions: Sequence[Asked], path: Path) -> Path:
        """All of `questions`, saved as `path`."""
        if self.style.cover:
            self._open_page()
            for place, line in enumerate(COVER):
                self.write(90, HEIGHT - 250 - 14 * place, line.format(count=len(questions)), self.style.font, 10)
        for question in questions:
            self.question(question)
        return self.document.save(path)

    def question(self, asked: Asked) -> None:
        """One question, over columns and pages as it comes."""
        style, size = self.style, self.style.size
        bold = f"{style.font}B" if style.bold else style.font
        label = style.question_label.format(asked.number)
        self.paragraph(label, asked.stem, 0.0, style.hanging * size, bold)
        for place, text in enumerate(asked.options):
            mark = "abcdefghi"[place] if style.letters else place + 1
            indent = style.option_indent * size
            self.paragraph(style.option_label.format(mark), text, indent, indent + style.option_hanging * size)
        self.y -= style.apart * style.leading * size

    def paragraph(self, label: str, text: str, indent: float, hanging: float, font: str = "") -> None:
        """A labelled paragraph."""
        style = self.style
        font = font or style.font
        width = self.column_width - hanging
        hanging_first = max(hanging, indent + self._width(f"{label} ", font))
        first = self.column_width - hanging_first
        lines = break_lines(text, first, width, lambda part: self._width(part, font))
        for place, line in enumerate(lines):
            self._room()
            left = style.margin + self.column * (self.column_width + style.gutter)
            x = hanging_first if place == 0 else hanging
            if place == 0:
                self.write(left + indent, self.y, label, font, style.size)
            filled = self.column_width - x if style.justify and place < len(lines) - 1 else None
            self.write(left + x, self.y, line, font, style.size, filled)
            self.y -= style.leading * style.size

    def write(self, x: float, y: float, text: str, font: str, size: float, filled: float | None = None) -> None:
        """One line at a place of the page as it is seen, stretched to `filled` points."""
        style = self.style
        gaps = text.count(" ")
        natural = self._width(text, font, size)
        extra = (filled - natural) if filled is not None else 0.0
        per_space = extra / gaps if gaps and style.filling != "tc" else 0.0
        per_letter = style.tracking + (extra / len(text) if style.filling == "tc" and text else 0.0)
        show = b"%s Tj" % escape(text)
        if style.filling == "tj" or not style.spaces:
            show = self._offsets(text, font, per_space / size * 1000)
        spacing = b"%.4f Tc" % self._scaled(per_letter, size)
        if style.filling in ("tw", "ragged", "tc") and style.spaces:
            spacing += b" %.4f Tw" % self._scaled(per_space, size)
        self._show(x, y, font, size, spacing + b" " + show)

    def _offsets(self, text: str, font: str, more: float) -> bytes:
        parts, space = [], measure(" ", font, 1000)
        for place, word in enumerate(text.split(" ")):
            if place and self.style.spaces:
                parts.append(b"%s %.1f" % (escape(" "), -more))
            elif place:
                parts.append(b"%.1f" % -(space + more))
            parts.append(escape(word))
        return b"[%s] TJ" % b" ".join(parts)

    def _scaled(self, points: float, size: float) -> float:
        """Points in the unscaled units of the text's space."""
        return points / size if self.style.sizing == "matrix" else points

    def _show(self, x: float, y: float, font: str, size: float, show: bytes) -> None:
        if self.style.sizing == "matrix":
            self._add(b"BT /%s 1 Tf %.5f 0 0 %.5f %.3f %.3f Tm %s ET" % (font.encode(), size, size, x, y, show))
        else:
            self._add(b"BT /%s %g Tf %.3f %.3f Td %s ET" % (font.encode(), size, x, y, show))

    def _add(self, operators: bytes) -> None:
        self.page.append(operators)

    def _width(self, text: str, font: str, size: float | None = None) -> float:
        return measure(text, font, self.style.size if size is None else size) + self.style.tracking * len(text)

    def _room(self) -> None:
        if self.column < self.style.columns and self.y >= 70:
            return
        self.column += 1
        if self.column >= self.style.columns:
            self.column = 0
            self._open_page()
            self.number += 1
            small = min(self.style.size, 9)
            if self.style.footer:
                self.write(WIDTH / 2 - 10, 36, self.style.footer.format(self.number), self.style.font, small)
            if self.style.rules:
                self._decorate()
        self.y = HEIGHT - 70

    def _open_page(self) -> None:
        self.page = self.document.add_page()
        angle = (self.style.rotate + self.style.turned) % 360
        x, y = self.style.origin
        wide, high = self.document.width, self.document.height
        turns = {
            0: (1, 0, 0, 1, x, y),
            90: (0, 1, -1, 0, x + wide, y),
            180: (-1, 0, 0, -1, x + wide, y + high),
            270: (0, -1, 1, 0, x, y + high),
        }
        self._add(b"%d %d %d %d %g %g cm" % turns[angle])

    def _decorate(self) -> None:
        style = self.style
        self._add(b"q 1 g %g 60 %g %g re f Q" % (style.margin - 5, self.column_width + 8, HEIGHT - 140))
        self._add(b"q 0.92 g %g %g %g 40 re f Q" % (style.margin - 5, HEIGHT - 300, self.column_width + 8))
        self._add(b"q 1 1 1 rg %g 200 120 60 re f Q" % (style.margin + 20))
        for column in range(1, style.columns):
            x = style.margin + column * (self.column_width + style.gutter) - style.gutter / 2
            self._add(b"q 0.5 w %g 60 m %g %g l S Q" % (x, x, HEIGHT - 60))
        self._add(b"q 0.7 w %g %g m %g %g l S Q" % (style.margin, HEIGHT - 50, WIDTH - style.margin, HEIGHT - 50))
