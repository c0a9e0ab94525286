"""Tables inside stems, and options that stand beside each other."""

import random
from pathlib import Path

import pytest
from typesetting.booklet import Press, Style
from typesetting.lines import break_lines
from typesetting.reading import read_drafts
from typesetting.texts import Asked, sample_questions

from medexam_companions.booklets import Draft, find_doubts

QUESTIONS = sample_questions(6)
VALUES = (("Prueba", "Resultado", "Intervalo"), ("Hemoglobina", "9,8 g/dl", "12 - 16"), ("VCM", "71 fl", "80 - 100"))


def print_rows(press: Press, cells, starts, *, right: bool = False) -> None:
    left = press.style.margin + press.column * (press.column_width + press.style.gutter)
    for row in cells:
        for text, start in zip(row, starts, strict=True):
            back = press._width(text, press.style.font) if right and start else 0.0
            press.write(left + start - back, press.y, text, press.style.font, press.style.size)
        press.y -= press.style.leading * press.style.size


def print_with_table(style: Style, path: Path, **fields) -> Path:
    press = Press(style)
    starts = (28, 110, 180) if not fields else (28, 140, 225)
    for asked in QUESTIONS:
        if asked.number != 3:
            press.question(asked)
            continue
        press.paragraph("3.", "Los análisis de un paciente de 40 años muestran:", 0, 24)
        if style.rules:
            left = style.margin + press.column * (press.column_width + style.gutter)
            for row in range(4):
                y = press.y + 9 - 11.5 * row
                press.page.append(b"q 0.5 w %g %g m %g %g l S Q" % (left + 25, y, left + 240, y))
            press.page.append(b"q 0.5 w %g %g m %g %g l S Q" % (left + 100, press.y + 9, left + 100, press.y - 26))
        print_rows(press, VALUES, starts, **fields)
        press.paragraph("", "¿Cuál es el diagnóstico más probable?", 20, 24)
        for place, text in enumerate(("Ferropenia.", "Talasemia.", "Uremia.", "Ninguno."), start=1):
            press.paragraph(f"{place}.", text, 26, 42)
        press.y -= 11.5
    return press.document.save(path)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("rules", [False, True])
@pytest.mark.parametrize("fields", [{}, {"right": True}])
def test_a_table_in_a_stem_keeps_its_rows_and_columns(tmp_path, columns, rules, fields) -> None:
    style = Style(columns=columns, sizing="matrix", rules=rules, cover=False)
    drafts = read_drafts(print_with_table(style, tmp_path / "table.pdf", **fields))
    assert drafts[3].stem == (
        "Los análisis de un paciente de 40 años muestran:\n"
        "Prueba   Resultado   Intervalo\nHemoglobina   9,8 g/dl   12 - 16\nVCM   71 fl   80 - 100\n"
        "¿Cuál es el diagnóstico más probable?"
    )
    assert list(drafts[3].options.values()) == ["Ferropenia.", "Talasemia.", "Uremia.", "Ninguno."]
    assert drafts[3].drawings == ()
    assert [draft.stem for number, draft in drafts.items() if number != 3] == [
        asked.stem for asked in QUESTIONS if asked.number != 3
    ]


WORDS = ("fiebre", "dolor", "tos", "disnea", "anemia", "varón", "mujer", "ictericia", "señale", "probable", "causa")


def print_beside(path: Path, style: Style, columns: int, label: str, *, down: bool, long: bool) -> list[Asked]:
    """Questions of five options in columns, whose texts run over lines of their column if they are `long`."""
    press, pick, asked = Press(style), random.Random(columns), []
    width, lead = press.column_width / columns - 12, 11.5
    rows = -(-5 // columns)
    for number in range(1, 25):
        counts = [pick.randint(1, 9 if long else 2) for _ in range(5)]
        options = tuple(" ".join(pick.choices(WORDS, k=count)).capitalize() + "." for count in counts)
        asked.append(Asked(number, " ".join(pick.choices(WORDS, k=pick.randint(5, 25))).capitalize() + "?", options))
        if press.column >= 0 and press.y < 240:
            press.y = 0.0
        press.paragraph(f"{number}.", asked[-1].stem, 0, 24)
        left = style.margin + press.column * (press.column_width + style.gutter) + 26
        y, lows = press.y, [press.y] * columns
        for place, text in enumerate(options):
            column = place // rows if down else place % columns
            if down or column == 0:
                y = lows[column] if down else min(lows)
            press.write(left + column * width, y, label.format("ABCDE"[place], place + 1), "times", 10)
            lines = break_lines(text, width - 26, width - 26, lambda part: press._width(part, "times"))
            for line, shown in enumerate(lines):
                press.write(left + column * width + 16, y - lead * line, shown, "times", 10)
            lows[column] = y - lead * len(lines)
        press.y = min(lows) - lead
    press.document.save(path)
    return asked


@pytest.mark.parametrize(
    ("pages", "columns", "down", "long", "label"),
    [
        (1, 2, False, False, "{0}."),
        (1, 2, True, True, "{1}."),
        (2, 2, True, False, "({0})"),
        (2, 2, False, True, "{1}."),
        (1, 3, False, True, "({0})"),
        (1, 3, True, True, "{0}."),
    ],
)
def test_uneven_columns_of_options_are_read_in_their_order(tmp_path, pages, columns, down, long, label) -> None:
    style = Style(cover=False, columns=pages, footer="")
    asked = print_beside(tmp_path / "beside.pdf", style, columns, label, down=down, long=long)
    drafts = read_drafts(tmp_path / "beside.pdf")
    for question in asked:
        draft = drafts[question.number]
        assert (draft.stem, tuple(draft.options.values())) == (question.stem, question.options)
        assert not list(find_doubts(draft, 5, ""))


@pytest.mark.parametrize(
    ("first", "options", "doubtful"),
    [
        ("A", ("Ferropenia D. Ninguno", "Talasemia E. Otra", "Uremia"), [1, 2]),
        ("a", ("Ferropenia (b) Talasemia", "Uremia", "Otra"), [1]),
        ("1", ("Ferropenia 3) Uremia", "Talasemia 4. Otra"), [1, 2]),
        ("1", ("Ferropenia 2. Talasemia", "Uremia", "Otra"), [1]),
        ("1", ("Tipo 1. Fin", "De 3,5. Y", "Desde 1990. Y", "Vitamina D. Sol"), []),
        ("A", ("Otra", "Hepatitis A. Aguda", "2. Fin", "Borrelia spp. Otra"), []),
    ],
)
def test_a_label_inside_an_option_is_a_doubt(first, options, doubtful) -> None:
    draft = Draft(9, "¿Cuál es?", dict(enumerate(options, start=1)), (), first_label=first)
    found = [detail for kind, detail in find_doubts(draft, len(options), "") if kind == "label_inside"]
    assert [int(detail.split()[1]) for detail in found] == doubtful


@pytest.mark.parametrize("size", [8, 12])
def test_justified_lines_with_wide_gaps_are_no_tables(tmp_path, size) -> None:
    questions = sample_questions(40, 60)
    path = Press(Style(size=size, columns=2, justify=True, filling="tw", gutter=40)).set(questions, tmp_path / "j.pdf")
    assert not any("\n" in draft.text for draft in read_drafts(path).values())
