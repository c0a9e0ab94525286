"""The prompts of HEAD-QA v2, letter by letter as figures 5 to 8 print them, and their versions in other languages."""

import pytest

import medexam
from medexam.errors import SpecError
from medexam.programs import build_program, save_program
from medexam.specs import build_cells

LANGUAGES = ("en", "es", "gl", "it", "ru")
NUMBER = {"en": "[number]", "es": "[número]", "gl": "[número]", "it": "[numero]", "ru": "[номер]"}
ASKED = "Which ion enters the cell first?\n1. Sodium\n2. Calcium\n3. Chloride\n4. Magnesium"
KINDS = ("zero_shot", "few_shot", "chain_of_thought")
FORMS = [("braces", "{}"), ("angles", "<>")]


@pytest.fixture
def turns(ask):
    """`turns(kind, language)` -> the chat turns of a program's first call, as an engine receives them."""

    def first_call(kind, language="en", **program):
        stem, *options = [line.removeprefix(f"{n}. ") for n, line in enumerate(ASKED.splitlines())]
        asked = ask({"kind": kind, **program}, "x", row={"stem": stem}, options=options, language=language)
        return [(turn["role"], turn["content"]) for turn in asked.dialogues[0].turns_with_opening]

    return first_call


@pytest.mark.parametrize(("form", "brackets"), FORMS)
def test_figure_6_has_an_empty_system_turn_and_two_user_turns(turns, form, brackets) -> None:
    opening, closing = brackets
    asked_for = (
        "You are an expert in specialized scientific and health disciplines. Respond to the following "
        "multiple-choice question:\n"
        f"Provide the answer in the following {'JSON ' * (form == 'braces')}format: "
        f"{opening}Answer: [number]{closing}\n"
        f"For example, if the answer is 1, write: {opening}Answer: 1{closing}"
    )
    assert turns("zero_shot", answer_form=form) == [("system", ""), ("user", asked_for), ("user", ASKED)]


@pytest.mark.parametrize(("form", "brackets"), FORMS)
def test_figure_7_has_three_examples_and_names_no_format(turns, form, brackets) -> None:
    opening, closing = brackets
    assert turns("few_shot", answer_form=form) == [
        (
            "system",
            "You are an expert in specialized scientific and health disciplines. Respond to the following "
            "multiple-choice question by indicating only the number of the correct option. No explanations are needed.",
        ),
        (
            "user",
            "Which neurotransmitter is primarily involved in mood regulation?\n"
            "1. Dopamine\n2. Serotonin\n3. GABA\n4. Acetylcholine",
        ),
        ("assistant", f"{opening}Answer: 2{closing}"),
        (
            "user",
            "Which of the following is an example of a neutralization reaction in chemistry?\n"
            "1. CH4 + 2O2 -> CO2 + 2H2O\n2. Na + Cl2 -> 2NaCl\n3. 2H2 + O2 -> 2H2O\n4. HCl + NaOH -> NaCl + H2O",
        ),
        ("assistant", f"{opening}Answer: 4{closing}"),
        (
            "user",
            "Which laboratory finding confirms the diagnosis of iron-deficiency anemia?\n"
            "1. Low serum ferritin\n2. High mean corpuscular volume\n3. Low platelet count\n4. High serum bilirubin",
        ),
        ("assistant", f"{opening}Answer: 1{closing}"),
        ("user", ASKED),
    ]


@pytest.mark.parametrize(("form", "brackets"), FORMS)
def test_figure_8_ends_in_a_full_stop(turns, form, brackets) -> None:
    opening, closing = brackets
    assert turns("chain_of_thought", answer_form=form) == [
        (
            "system",
            "You are an expert in scientific and health disciplines. Carefully analyze the following multiple-choice "
            "question and provide the correct answer. There is one and only one correct answer. Think through each "
            f"option briefly before responding in the {'JSON ' * (form == 'braces')}format: "
            f"{opening}Answer: [number]{closing}.",
        ),
        ("user", ASKED),
    ]


def test_section_3_2_2_shows_passages_in_the_turn_of_the_question(turns, finder) -> None:
    shown = turns("retrieve_then_answer", retriever=finder([("1", "", "Sodium enters first.", 1.0)]))
    assert shown[0] == ("system", "")
    assert [role for role, _ in shown[1:]] == ["user", "user"]
    assert shown[2][1] == f"Sodium enters first.\n\n{ASKED}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_turns(turns, language) -> None:
    number = NUMBER[language]
    system, told, asked = turns("zero_shot", language)
    assert (system, asked) == (("system", ""), ("user", ASKED))
    lines = told[1].splitlines()
    assert (told[0], len(lines)) == ("user", 3)
    assert lines[1].endswith(f": {{Answer: {number}}}")
    assert lines[2].endswith(": {Answer: 1}")
    shown = turns("few_shot", language)
    assert [role for role, _ in shown] == ["system", *["user", "assistant"] * 3, "user"]
    assert [text for role, text in shown if role == "assistant"] == ["{Answer: 2}", "{Answer: 4}", "{Answer: 1}"]
    assert "{Answer" not in shown[0][1]
    assert "\n2. Na + Cl2 -> 2NaCl\n" in shown[3][1]
    reasoned = turns("chain_of_thought", language)
    assert [role for role, _ in reasoned] == ["system", "user"]
    assert reasoned[0][1].endswith(f"JSON: {{Answer: {number}}}." if language != "en" else "{Answer: [number]}.")


def test_no_two_languages_share_their_words(turns) -> None:
    for kind in KINDS:
        assert len({str(turns(kind, language)) for language in LANGUAGES}) == len(LANGUAGES)


@pytest.mark.parametrize("kind", [*KINDS, "likelihood"])
def test_a_language_without_words_is_asked_in_another_or_says_how(turns, kind) -> None:
    for language in ("fr", "ja", "zh"):
        assert turns(kind, language, prompt_language="en") == turns(kind, "en")
        with pytest.raises(SpecError) as raised:
            medexam.build_program(kind, language=language)
        assert str(raised.value) == (
            f"prompt 'paper' has no words in {language!r}: set program.prompt_language to one that it has "
            "(en, es, gl, it, ru), or name a file of your own in program.prompt"
        )


@pytest.mark.parametrize("discipline", ["", "discipline: arithmetic,"])
def test_examples_of_ones_own_are_read_in_the_language_of_the_words(turns, tmp_path, discipline) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"en: [{{stem: 'Which is even?', {discipline} options: ['1', '2'], answer: 2}}]")
    shown = turns("few_shot", "fr", examples=str(path), prompt_language="en")
    assert shown[1] == ("user", "Which is even?\n1. 1\n2. 2")
    with pytest.raises(SpecError, match=r"has no words in 'es': .* file of your own in program\.examples"):
        medexam.build_program("few_shot", language="es", examples=str(path))


def test_a_prompt_file_says_whose_turn_instructions_are(turns, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("en: {few_shot: {turn: user, instructions: Choose.}, zero_shot: {instructions: Choose.}}")
    assert turns("few_shot", prompt=str(path))[:2] == [("system", ""), ("user", "Choose.")]
    assert turns("zero_shot", prompt=str(path)) == [("system", "Choose."), ("user", ASKED)]
    path.write_text("en: {zero_shot: {turn: assistant, instructions: Choose.}}")
    with pytest.raises(SpecError, match=r"mine\.yaml, line 1: en\.zero_shot\.turn: input should be 'system' or 'user'"):
        turns("zero_shot", prompt=str(path))


@pytest.mark.parametrize("is_dspys", [False, True], ids=["by medexam", "by DSPy"])
def test_whose_turn_instructions_are_is_the_specs_whatever_saved_the_program(turns, tmp_path, is_dspys) -> None:
    saved, system = tmp_path / "program.json", tmp_path / "mine.yaml"
    system.write_text("en: {zero_shot: {turn: system, instructions: Choose.}}")
    spec = build_cells({"name": "x", "dataset": "headqa_sample"}, {})[1][0].program
    program = build_program(spec, "en")
    program.respond.signature = program.respond.signature.with_instructions("Choose. Write {Answer: n}.")
    program.save(str(saved)) if is_dspys else save_program(program, saved, spec, "en")
    asked = [("user", "Choose. Write {Answer: n}."), ("user", ASKED)]
    assert turns("zero_shot", load=str(saved)) == [("system", ""), *asked]
    assert turns("zero_shot", load=str(saved), prompt=str(system)) == [("system", asked[0][1]), asked[1]]
