"""Booklets set by other programs come back as they were set; fonts that do not tell their characters are reported."""

import re
import shutil
from pathlib import Path

import pytest
from fpdf import FPDF

from medexam.companions.booklets.pages.hyphens import load_dictionary
from medexam.companions.booklets.pages.layout import read_booklet_layout
from medexam.companions.booklets.pages.legible import check_legible
from medexam.companions.booklets.pages.opening import open_booklet
from medexam.companions.booklets.suspicious import find_doubts
from medexam.errors import DatasetError
from typesetting.producers import TURNED, print_chromium, write_html
from typesetting.reading import compare, read_drafts
from typesetting.symbol_fonts import SOURCE
from typesetting.texts import sample_questions

BOOKLETS = Path(__file__).with_name("booklets")
QUESTIONS = sample_questions(24)
STYLES = {
    "justified": (2, "body { text-align: justify; hyphens: auto; } .s { letter-spacing: 0.03em; }"),
    "small": (1, "body { font-family: sans-serif; } .s { font-variant: small-caps; }"),
    "turned": (1, TURNED),
}


@pytest.mark.parametrize("name", ["chromium-justified-gs", "latex-ot1-gs", "libreoffice", "libreoffice-pdftocairo"])
def test_a_booklet_is_read_as_it_was_set(name) -> None:
    compared = compare(BOOKLETS / f"{name}.pdf", QUESTIONS)
    assert (compared.set, compared.exact, compared.wrong) == (24, 24, ())


def test_fonts_of_dots_give_letters_and_a_list_of_what_is_doubtful() -> None:
    compared = compare(BOOKLETS / "latex-dots.pdf", QUESTIONS)
    assert compared.found == 24
    assert all("\ufffd" in read for _, read in compared.wrong)
    doubts = dict(find_doubts(read_drafts(BOOKLETS / "latex-dots.pdf")[6], 5, ""))
    assert doubts["unreadable_character"] == "holds U+FFFD: characters without a meaning"
    assert "the font does not name them" in doubts["guessed_characters"]


@pytest.mark.browser
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
@pytest.mark.parametrize("style", ["justified", "small", "turned"])
def test_pages_that_chromium_prints(tmp_path, style) -> None:
    columns, source = STYLES[style]
    print_chromium(write_html(QUESTIONS, columns=columns, style=source), tmp_path / "printed.pdf")
    compared = compare(tmp_path / "printed.pdf", QUESTIONS)
    assert (compared.set, compared.exact, compared.wrong) == (24, 24, ())


def print_subset(path: Path, *, told: bool) -> Path:
    """A booklet in a font whose codes are those of its glyphs, `told` or not which characters they print."""
    pdf = FPDF(unit="pt", format="A4")
    pdf.set_compression(False)
    pdf.add_font("sans", "", str(SOURCE))
    pdf.add_page()
    pdf.set_font("sans", "", 9)
    for asked in QUESTIONS:
        pdf.multi_cell(480, 11, f"{asked.number}. {asked.stem}", align="L", new_x="LMARGIN", new_y="NEXT")
        for place, text in enumerate(asked.options, start=1):
            pdf.set_x(70)
            pdf.multi_cell(440, 11, f"{place}. {text}", align="L", new_x="LMARGIN", new_y="NEXT")
        pdf.ln(8)
    pdf.output(str(path))
    if not told:
        without = re.sub(rb"/ToUnicode \d+ 0 R", lambda found: b" " * len(found.group()), path.read_bytes())
        path.write_bytes(without)
    return path


def test_a_font_that_does_not_tell_its_characters_is_refused(tmp_path) -> None:
    assert compare(print_subset(tmp_path / "told.pdf", told=True), QUESTIONS).exact == 24
    path = print_subset(tmp_path / "untold.pdf", told=False)
    with open_booklet(path) as booklet:
        layout = read_booklet_layout(booklet.read_pages())
    with pytest.raises(DatasetError, match=r"characters cannot be read: its fonts do not say .* by OCR"):
        check_legible(path, layout.lines, load_dictionary("es"))


def test_text_of_no_words_is_refused(tmp_path) -> None:
    with open_booklet(BOOKLETS / "libreoffice.pdf") as booklet:
        lines = read_booklet_layout(booklet.read_pages()).lines
    check_legible(BOOKLETS, lines, load_dictionary("es"))
    moved = [type(line)(re.sub(r"[a-y]", lambda found: chr(ord(found.group()) + 1), line.text), line.box,
                        line.baseline, line.column, line.indent) for line in lines]  # fmt: skip
    with pytest.raises(DatasetError, match=r"words are in the word lists: its fonts do not say"):
        check_legible(BOOKLETS, moved, load_dictionary("es"))
    check_legible(BOOKLETS, moved, frozenset())
