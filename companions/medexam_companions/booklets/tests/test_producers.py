"""Booklets set by other programs come back as they were set; fonts that do not tell their characters are reported."""

import re
from pathlib import Path

import pytest
from fpdf import FPDF
from typesetting.reading import compare, read_drafts
from typesetting.symbol_fonts import SOURCE
from typesetting.texts import sample_questions

from medexam_companions.booklets import find_doubts

BOOKLETS = Path(__file__).with_name("booklets")
QUESTIONS = sample_questions(24)


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


def print_subset(path: Path, told: str) -> Path:
    """A booklet in a font whose codes are those of its glyphs, and that tells them, wrong ones, or none."""
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
    content = path.read_bytes()
    if told == "none":
        content = re.sub(rb"/ToUnicode \d+ 0 R", lambda found: b" " * len(found.group()), content)
    elif told == "the next letter":
        content = re.sub(
            rb"(?<=> <00)(6[1-9a-f]|7[0-9])(?=>)", lambda found: b"%02x" % (int(found[0], 16) + 1), content, flags=re.I
        )
    path.write_bytes(content)
    return path


def test_a_font_that_does_not_tell_its_characters_is_refused(refuse, tmp_path) -> None:
    assert compare(print_subset(tmp_path / "told.pdf", "all"), QUESTIONS).exact == 24
    refuse("characters cannot be read: its fonts do not say", print_subset(tmp_path / "none.pdf", "none"), QUESTIONS)


def test_text_of_no_words_is_refused(refuse, tmp_path) -> None:
    path = print_subset(tmp_path / "moved.pdf", "the next letter")
    refuse("words are in the word lists: its fonts do not say", path, QUESTIONS)
