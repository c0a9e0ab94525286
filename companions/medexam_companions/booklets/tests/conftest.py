"""Prints small booklets as the Ministry does: a cover, two columns, hyphens, sub- and superscripts, pictures."""

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from fpdf import FPDF
from PIL import Image

from data_folders import full_data, only_what_a_test_brings

__all__ = ["full_data", "only_what_a_test_brings"]

WIDTH, HEIGHT = 595.0, 842.0
SIZE, LEADING = 10.0, 11.5
TOP, BOTTOM = 60.0, 770.0
NAME = "Cuaderno_2020_0_B"
COVER = (
    "MINISTERIO DE SANIDAD",
    "PRUEBAS SELECTIVAS {year}",
    "{discipline} - VERSIÓN: {version}",
    "ADVERTENCIA IMPORTANTE: LEA ATENTAMENTE LAS SIGUIENTES INSTRUCCIONES",
    "1. MUY IMPORTANTE: Compruebe que este Cuaderno de Examen, integrado por {count} preguntas",
    "más 0 de reserva, lleva todas sus páginas y no tiene defectos de impresión.",
    "2. Compruebe que el número de versión de examen coincide con el de su Hoja de Respuestas.",
    "3. La Hoja de Respuestas está nominalizada.",
)


@dataclass
class Printed:
    """A question as it is printed: a text for each line, `^{2+}` raised and `_{2}` lowered."""

    number: int
    stem: list[str]
    options: list[list[str]]
    drawn: int | None = None
    """The option in whose place a picture is drawn; 0 for one below the stem."""


class Press:
    """Puts questions on pages, in one column or two."""

    def __init__(self, columns: int = 2, hanging: float = 28.0, option_indent: float = 31.0) -> None:
        self.pdf = FPDF(unit="pt", format="A4")
        self.pdf.set_auto_page_break(False)
        self.columns, self.hanging, self.option_indent = columns, hanging, option_indent
        self.lefts = (43.0, 311.0) if columns == 2 else (43.0,)
        self.column, self.y, self.page = -1, BOTTOM, 0

    def cover(self, lines: Sequence[str]) -> None:
        self.pdf.add_page()
        for place, line in enumerate(lines):
            self.write(85, 300 + 14 * place, line)

    def write(self, x: float, y: float, text: str, *, bold: bool = False) -> None:
        for part in re.split(r"([\^_]\{[^}]*\})", text):
            small = part[:2] in ("^{", "_{")
            size = SIZE * 0.65 if small else SIZE
            self.pdf.set_font("times", "B" if bold else "", size)
            shown = part[2:-1] if small else part
            rise = {"^{": -0.35 * SIZE, "_{": 0.15 * SIZE}.get(part[:2], 0.0)
            if shown:
                self.pdf.text(x, y + rise, shown)
                x += self.pdf.get_string_width(shown)

    def room(self, lines: float = 1) -> None:
        if self.y + lines * LEADING > BOTTOM:
            self.y, self.column = TOP, self.column + 1
            if self.column in (0, self.columns):
                self.column, self.page = 0, self.page + 1
                self.pdf.add_page()
                self.write(WIDTH / 2 - 8, HEIGHT - 45, f"- {self.page} -")
                self.write(WIDTH / 2 - 60, HEIGHT - 25, "FSE BIOLOGÍA 2020/21")

    def question(self, printed: Printed) -> None:
        self._paragraph(printed.number, printed.stem, 0, self.hanging, bold=True)
        if printed.drawn == 0:
            self.drawing()
        self.y += LEADING
        for number, lines in enumerate(printed.options, start=1):
            if printed.drawn == number:
                self._paragraph(number, [""], self.option_indent, self.option_indent + 18)
                self.y -= LEADING
                self.drawing()
            else:
                self._paragraph(number, lines, self.option_indent, self.option_indent + 18)
        self.y += LEADING

    def _paragraph(self, number: int, lines: list[str], label: float, text: float, *, bold: bool = False) -> None:
        for place, line in enumerate(lines):
            self.room()
            left = self.lefts[self.column]
            if place == 0:
                self.write(left + label, self.y, f"{number}.", bold=bold)
            self.write(left + text, self.y, line, bold=bold)
            self.y += LEADING

    def drawing(self) -> None:
        self.room(5)
        x, y = self.lefts[self.column] + 60, self.y - 8
        for step in range(3):
            self.pdf.line(x, y + 10 * step, x + 40, y + 40 - 10 * step)
        self.y += 5 * LEADING

    def free(self, text: str, indent: float = 0.0) -> None:
        self.room()
        self.write(self.lefts[self.column] + indent, self.y, text)
        self.y += LEADING

    def save(self, path: Path) -> Path:
        self.pdf.output(str(path))
        return path


def make_questions(count: int, options: int = 4) -> list[Printed]:
    return [
        Printed(
            number,
            [
                f"La pregunta de número {number} trata de",
                f"las proteínas {'abcdefghijklmnopqrstuvwxyzáéíóúñABCDEFGHIJ'[number - 1]} de la membrana:",
            ],
            [[f"La opción {option} de la pregunta {number}."] for option in range(1, options + 1)],
        )
        for number in range(1, count + 1)
    ]


@pytest.fixture
def questions() -> list[Printed]:
    """Fourteen plain questions of four options, which a test may change."""
    return make_questions(14)


@pytest.fixture
def print_booklet(tmp_path: Path) -> Callable[..., Path]:
    """Print questions on a booklet with a cover that announces them."""

    def call(
        questions: Sequence[Printed],
        *,
        press: Press | None = None,
        name: str = "booklet.pdf",
        year: int = 2020,
        discipline: str = "BIOLOGÍA",
        version: int = 0,
        cover: bool = True,
    ) -> Path:
        press = press or Press()
        fields = {"year": year, "discipline": discipline, "version": version, "count": len(questions)}
        if cover:
            press.cover([line.format(**fields) for line in COVER])
        for question in questions:
            press.question(question)
        return press.save(tmp_path / name)

    return call


@pytest.fixture
def write_key(tmp_path: Path) -> Callable[..., Path]:
    """Write a key by question; None is an annulled one."""

    def call(answers: dict[int, int | None], name: str = "key.csv", heading: str = "pregunta,respuesta") -> Path:
        path = tmp_path / name
        rows = [f"{number},{'' if answer is None else answer}" for number, answer in answers.items()]
        path.write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
        return path

    return call


@pytest.fixture
def png() -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (40, 30), "navy").save(content, "PNG")
    return content.getvalue()


@pytest.fixture
def printed() -> type[Printed]:
    return Printed


@pytest.fixture
def press() -> type[Press]:
    return Press


@pytest.fixture
def plain() -> Callable[..., list[Printed]]:
    return make_questions


@pytest.fixture
def answer_all() -> Callable[[Sequence[Printed]], dict[int, int | None]]:
    """A key that fits: option 1, 2, 3 and 4 in turn."""

    def call(questions: Sequence[Printed]) -> dict[int, int | None]:
        return {question.number: 1 + question.number % len(question.options) for question in questions}

    return call


class Built(NamedTuple):
    """What a build leaves."""

    report: dict[str, Any]
    folder: Path
    parquet: Path
    review: Path

    @property
    def rows(self) -> dict[int, dict[str, Any]]:
        """The questions by number."""
        return {row["qid"]: row for row in pq.read_table(self.parquet).to_pylist()}

    def found(self, what: str) -> set[tuple[int, str]]:
        """Numbers and kinds of what the report lists under `suspicious` or `left_out`."""
        return {(finding["number"], finding["kind"]) for finding in self.report[what]}


@pytest.fixture
def run_build(medexam, tmp_path: Path):
    """`run_build(booklet, key, name, images=...)`: `medexam data build --json` into the folder `built`."""

    def call(booklet: Path, key: Path, name: str = NAME, **options: object):
        words: list[object] = []
        for option, value in options.items():
            flag = f"--{option.replace('_', '-')}"
            words += [flag] if value is True else [flag, value]
        return medexam(
            *("data", "build", "--booklet", booklet, "--key", key, "--name", name, "--out", tmp_path / "built"), *words
        )

    return call


@pytest.fixture
def build(run_build, tmp_path: Path, write_key: Callable[..., Path], answer_all: Callable[..., Any]):
    """Build a printed booklet; its key fits unless `answers` says otherwise."""

    def call(
        booklet: Path, questions: Sequence[Printed], *, answers=None, name="Cuaderno_2020_0_B", **options
    ) -> Built:
        key = write_key(answer_all(questions) if answers is None else answers)
        code, out, err = run_build(booklet, key, name, json=True, **options)
        assert code == 0, err
        report = json.loads(out)
        folder = tmp_path / "built"
        return Built(report, folder, folder / "es" / f"{name}.parquet", folder / f"{name}.review.html")

    return call


@pytest.fixture
def refuse(run_build, tmp_path: Path, write_key: Callable[..., Path], answer_all: Callable[..., Any]):
    """`refuse(said, booklet, questions)`: the build is refused in one line that says this, and writes nothing."""

    def call(said: str, booklet: Path, questions: Sequence[Printed], *, answers=None, key=None, **options) -> None:
        key = key or write_key(answer_all(questions) if answers is None else answers)
        code, out, err = run_build(booklet, key, **options)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert said in err
        assert not (tmp_path / "built").exists()

    return call
