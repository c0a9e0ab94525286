"""Booklets set in many ways, each read question by question as it was set: sizes, spaces, turned pages."""

import pytest
from typesetting.booklet import Press, Style
from typesetting.reading import compare, read_drafts
from typesetting.texts import Asked, sample_questions

QUESTIONS = sample_questions(11)


SPACED = {"sizing": "matrix", "filling": "tj", "spaces": False}
STYLES = (
    *(Style(sizing=sizing, columns=columns) for sizing in ("font", "matrix") for columns in (1, 2)),
    *(
        Style(sizing="matrix", filling=filling, spaces=spaces, justify=True)
        for filling in ("tw", "tc", "tj")
        for spaces in (True, False)
    ),
    *(Style(size=size, columns=2 if size < 12 else 1, **SPACED) for size in (6, 8, 9, 11, 12, 14)),
    *(Style(rotate=turn) for turn in (90, 180, 270)),
    *(Style(turned=turn) for turn in (90, 180, 270)),
    Style(rotate=270, turned=90, origin=(40, -30)),
    Style(origin=(100, -50)),
    *(Style(gutter=gutter, justify=True, filling="tw", apart=0) for gutter in (9, 14, 40)),
    *(Style(tracking=tracking, columns=1, filling="tj", spaces=False) for tracking in (0.3, 1.0, 2.0)),
    *(
        Style(question_label=question, option_label=option, letters=letters)
        for question, option, letters in (
            *(("{}.-", "{}.-", False), ("{})", "{})", False), ("{} .", "{} .", False), ("{}", "{}.", False)),
            *(("{}.", "({})", False), ("{}.", "{})", True), ("{}.-", "{}.", True)),
        )
    ),
)
"""Ways to say the size, to fill lines, to turn pages, to part columns and letters, and to label."""


@pytest.mark.parametrize("style", STYLES)
def test_a_booklet_is_read_as_it_was_set(tmp_path, style) -> None:
    compared = compare(Press(style).set(QUESTIONS, tmp_path / "set.pdf"), QUESTIONS)
    assert compared.found == compared.set
    assert not compared.wrong


@pytest.mark.parametrize("aside", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("filling", ["tw", "tj"])
def test_bold_that_is_printed_twice_is_read_once(tmp_path, aside, filling) -> None:
    class Twice(Press):
        def write(self, x, y, text, font, size, filled=None) -> None:
            super().write(x, y, text, font, size, filled)
            if font.endswith("B"):
                super().write(x + aside, y, text, font, size, filled)

    compared = compare(Twice(Style(sizing="matrix", filling=filling)).set(QUESTIONS, tmp_path / "b.pdf"), QUESTIONS)
    assert (compared.exact, compared.wrong) == (len(QUESTIONS), ())


def test_text_that_is_turned_aside_or_narrowed(tmp_path) -> None:
    class Marked(Press):
        def _open_page(self) -> None:
            super()._open_page()
            self.page.append(b"BT /helveticaB 1 Tf 50 50 -50 50 150 250 Tm (BORRADOR) Tj ET")
            self.page.append(b"BT /helveticaB 1 Tf 0 9 -9 0 20 250 Tm (MINISTERIO DE SANIDAD) Tj ET 85 Tz")

    compared = compare(Marked(Style(sizing="matrix")).set(QUESTIONS, tmp_path / "m.pdf"), QUESTIONS)
    assert (compared.exact, compared.wrong) == (len(QUESTIONS), ())


def test_fills_frames_and_rules_are_no_drawings(tmp_path) -> None:
    path = Press(Style(sizing="matrix", rules=True)).set(QUESTIONS, tmp_path / "rules.pdf")
    drafts = read_drafts(path)
    assert len(drafts) == len(QUESTIONS)
    assert not any(draft.drawings for draft in drafts.values())


def test_signs_that_all_stand_apart_keep_their_spaces(tmp_path) -> None:
    sums = ("A + G = T + C.", "O < N < P < Si.", "8 + 6 0,5 1 .", "3 + 2 + 1 = 6.")
    asked = [*QUESTIONS[:4], Asked(5, "Es cierto que:", sums)]
    path = Press(Style(sizing="matrix", filling="tj", spaces=False)).set(asked, tmp_path / "sums.pdf")
    assert tuple(read_drafts(path)[5].options.values()) == sums
