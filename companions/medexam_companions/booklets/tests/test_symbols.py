"""Private characters: by the font's own names, by the symbol font that it is, else listed for review."""

from pathlib import Path

import pytest
from typesetting.booklet import Press, Style
from typesetting.reading import read_drafts
from typesetting.symbol_fonts import add_font, make_font
from typesetting.texts import sample_questions

from medexam_companions.booklets import find_doubts

QUESTIONS = sample_questions(4)


def print_signs(
    path: Path, base: str, codes: dict[int, str], *, names: bool, told: dict[int, str] | None = None
) -> Path:
    """A booklet whose fifth question has one option for each code, as `A <sign> B`."""
    press = Press(Style(cover=False))
    add_font(press.document, "sign", base, make_font(codes, names=names), list(codes), told)
    for asked in QUESTIONS:
        press.question(asked)
    press.paragraph("5.", "¿Qué signo es?", 0, 24)
    for place, code in enumerate(codes, start=1):
        left = press.style.margin + 26
        press.write(left, press.y, f"{place}. A", "times", 10)
        press.page.append(b"BT /sign 1 Tf 10 0 0 10 %g %g Tm <%02X> Tj ET" % (left + 24, press.y, code))
        press.write(left + 36, press.y, "B", "times", 10)
        press.y -= 12
    return press.document.save(path)


def read_signs(path: Path) -> str:
    return "".join(text.removeprefix("A ").removesuffix(" B") for text in read_drafts(path)[5].options.values())


@pytest.mark.parametrize("base", ["ABCDEF+Wingdings", "ABCDEF+Unheard", "Symbol"])
def test_the_font_s_own_names_come_first(tmp_path, base) -> None:
    signs = {0xE0: "→", 0x22: "°", 0x61: "≥", 0xB0: "β"}
    assert read_signs(print_signs(tmp_path / "a.pdf", base, signs, names=True)) == "→°≥β"


@pytest.mark.parametrize(
    ("base", "read"),
    [("ABCDEF+Wingdings-Regular", "→✓"), ("SymbolMT", "◊↓"), ("GHIJKL+Wingdings3", "\uf0e0\uf0fc"), ("Unheard", "→↓")],
)
def test_without_names_the_symbol_font_decides(tmp_path, base, read) -> None:
    codes = {0xE0: "→", 0xFC: "✓"} if "Wing" in base else {0xE0: "→", 0xAF: "↓"}
    assert read_signs(print_signs(tmp_path / "a.pdf", base, codes, names=False)) == read


@pytest.mark.parametrize("told", ["𝛼𝛽", "𝛼β\U0001d465", "😀🧬𠀀", "a\U0001d7d0b\U0001d7d1", "\U0001d453\U0001d456"])
def test_characters_beyond_two_bytes_are_joined(tmp_path, told) -> None:
    codes = dict(zip((0x61, 0x62, 0x63, 0x64)[: len(told)], "→°≥↓", strict=False))
    texts = dict(zip(codes, told, strict=True))
    path = print_signs(tmp_path / "a.pdf", "ABCDEF+CambriaMath", codes, names=False, told=texts)
    assert read_signs(path) == told


def test_what_nothing_explains_is_listed_by_question_and_page(tmp_path) -> None:
    path = print_signs(tmp_path / "a.pdf", "Wingdings2", {0x21: "→", 0x22: "°"}, names=False)
    draft = read_drafts(path)[5]
    assert draft.page == 1
    assert ("unreadable_character", "holds U+F021, U+F022: characters without a meaning") in list(
        find_doubts(draft, 2, "")
    )
