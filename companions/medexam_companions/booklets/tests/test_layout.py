"""Booklets as they are printed: columns, hyphens, raised signs, and what belongs to no question."""

from typesetting.reading import read_drafts


def texts(draft):
    return [draft.stem, *draft.options.values()]


def test_options_at_the_same_indent_as_questions_are_told_by_the_next_number(print_booklet, press, plain) -> None:
    drafts = read_drafts(print_booklet(plain(30, options=5), press=press(hanging=18, option_indent=0)))
    assert {number: len(draft.options) for number, draft in drafts.items()} == dict.fromkeys(range(1, 31), 5)


def test_super_and_subscripts_stand_on_the_line(print_booklet, questions) -> None:
    questions[2].options = [["Ca^{2+}."], ["Na^{+} y K^{+}."], ["Presión de CO_{2} en", "sangre."], ["CD4^{+}/mL."]]
    questions[3].options = [["10^{-6} M."], ["10^{6} copias."], ["2 x 10^{3}."], ["H_{2}SO_{4}."]]
    drafts = read_drafts(print_booklet(questions))
    assert texts(drafts[3])[1:] == ["Ca2+.", "Na+ y K+.", "Presión de CO2 en sangre.", "CD4+/mL."]
    assert texts(drafts[4])[1:] == ["10^-6 M.", "10^6 copias.", "2 x 10^3.", "H2SO4."]


def test_a_number_alone_at_the_foot_of_a_page_is_text(press, questions, tmp_path) -> None:
    asked = press()
    asked.question(questions[0])
    asked.free("2.")
    asked.y -= 11.5
    asked.free("¿Cuántas vértebras tiene?:", 28)
    asked.y = 790
    asked.write(43 + 31, 790, "1. Entre treinta y")
    asked.write(43 + 49, 801, "33.")
    asked.y = 820
    for number in (2, 3, 4):
        asked.free(f"{number}. Otra {number}.", 31)
    asked.y += 11.5
    for question in questions[2:]:
        asked.question(question)
    drafts = read_drafts(asked.save(tmp_path / "foot.pdf"))
    assert texts(drafts[2])[1:] == ["Entre treinta y 33.", "Otra 2.", "Otra 3.", "Otra 4."]


def test_numbers_inside_options_are_no_labels(print_booklet, questions) -> None:
    questions[4].options = [["10 nm."], ["1.5 mg/kg y", "2.5 mg/kg."], ["Entre 3 y", "4. La dosis."], ["2020."]]
    drafts = read_drafts(print_booklet(questions))
    assert texts(drafts[5])[1:] == ["10 nm.", "1.5 mg/kg y 2.5 mg/kg.", "Entre 3 y 4. La dosis.", "2020."]
    assert len(drafts) == 14


def test_options_that_are_numbers_with_a_full_stop_are_texts(print_booklet, plain) -> None:
    asked = plain(40)
    asked[30].options = [["2."], ["4."], ["8."], ["16."]]
    asked[31].options = [["3."], ["2."], ["1."], ["0."]]
    drafts = read_drafts(print_booklet(asked))
    assert texts(drafts[31])[1:] == ["2.", "4.", "8.", "16."]
    assert texts(drafts[32])[1:] == ["3.", "2.", "1.", "0."]


def test_statements_listed_in_a_stem_stay_in_it(press, questions, tmp_path) -> None:
    asked = press()
    for question in questions[:5]:
        asked.question(question)
    asked.free("6.")
    asked.y -= 11.5
    asked.free("Respecto a las siguientes afirmaciones:", 28)
    for number, text in enumerate(("La primera.", "La segunda."), start=1):
        asked.free(f"{number}. {text}", 31)
    asked.y += 11.5
    for number in range(1, 5):
        asked.free(f"{number}. Son ciertas {number}.", 31)
    asked.y += 11.5
    for question in questions[6:]:
        asked.question(question)
    sixth = read_drafts(asked.save(tmp_path / "listed.pdf"))[6]
    assert sixth.restarted
    assert texts(sixth) == [
        "Respecto a las siguientes afirmaciones: 1. La primera. 2. La segunda.",
        *(f"Son ciertas {number}." for number in range(1, 5)),
    ]


def test_a_question_whose_number_is_lost_is_missed_alone(print_booklet, plain) -> None:
    printed = plain(20)
    del printed[8]
    assert list(read_drafts(print_booklet(printed))) == [*range(1, 9), *range(10, 21)]


def test_text_between_questions_is_set_apart(press, questions, tmp_path) -> None:
    asked = press()
    for question in questions:
        asked.question(question)
        if question.number == 3:
            asked.free("Caso clínico para las preguntas 4 y 5.")
            asked.y += 11.5
    drafts = read_drafts(asked.save(tmp_path / "between.pdf"))
    assert (drafts[3].after, drafts[4].after) == ("Caso clínico para las preguntas 4 y 5.", "")
    assert texts(drafts[3])[-1] == "La opción 4 de la pregunta 3."
