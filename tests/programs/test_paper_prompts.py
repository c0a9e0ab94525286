"""The prompts of HEAD-QA v2, letter by letter as figures 5 to 8 print them, and their versions in other languages."""

import json
from types import SimpleNamespace

import pytest

from medexam.errors import SpecError
from medexam.programs import ProgramContext, build_program, loaded_words, save_program
from medexam.programs.replay import replay
from medexam.questions import Question
from medexam.retrievers import Hit, Passage
from medexam.serve.chat_messages import TemplateRules
from medexam.specs import ChainOfThoughtSpec, FewShotSpec, LikelihoodSpec, RetrieveThenAnswerSpec, ZeroShotSpec
from medexam.specs.programs.base import WordsSpec
from medexam.specs.programs.tasks import ShortAnswerSpec

LANGUAGES = ("en", "es", "gl", "it", "ru")
NUMBER = {"en": "[number]", "es": "[número]", "gl": "[número]", "it": "[numero]", "ru": "[номер]"}
ASKED = "Which ion enters the cell first?\n1. Sodium\n2. Calcium\n3. Chloride\n4. Magnesium"


def asking(language: str = "en") -> Question:
    return Question.of(
        "Which ion enters the cell first?", ["Sodium", "Calcium", "Chloride", "Magnesium"], language=language
    )


def turns(spec: WordsSpec, language: str = "en") -> list[tuple[str, str]]:
    """The chat turns of a program's first call, as an engine receives them."""
    prompts, *_ = replay(build_program(spec, language), asking(language), ())
    return [(turn["role"], turn["content"]) for turn in prompts[0]]


@pytest.mark.parametrize(
    ("form", "asked_for"),
    [
        (
            "braces",
            "You are an expert in specialized scientific and health disciplines. Respond to the following "
            "multiple-choice question:\n"
            "Provide the answer in the following JSON format: {Answer: [number]}\n"
            "For example, if the answer is 1, write: {Answer: 1}",
        ),
        (
            "angles",
            "You are an expert in specialized scientific and health disciplines. Respond to the following "
            "multiple-choice question:\n"
            "Provide the answer in the following JSON format: <Answer: [number]>\n"
            "For example, if the answer is 1, write: <Answer: 1>",
        ),
    ],
)
def test_figure_6_has_an_empty_system_turn_and_two_user_turns(form, asked_for) -> None:
    assert turns(ZeroShotSpec(answer_form=form)) == [("system", ""), ("user", asked_for), ("user", ASKED)]


@pytest.mark.parametrize("form", ["braces", "angles"])
def test_figure_7_has_three_examples_and_names_no_format(form) -> None:
    opening, closing = {"braces": "{}", "angles": "<>"}[form]
    assert turns(FewShotSpec(answer_form=form)) == [
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


@pytest.mark.parametrize(("form", "asked_for"), [("braces", "{Answer: [number]}"), ("angles", "<Answer: [number]>")])
def test_figure_8_ends_in_a_full_stop(form, asked_for) -> None:
    assert turns(ChainOfThoughtSpec(answer_form=form)) == [
        (
            "system",
            "You are an expert in scientific and health disciplines. Carefully analyze the following multiple-choice "
            "question and provide the correct answer. There is one and only one correct answer. Think through each "
            f"option briefly before responding in the JSON format: {asked_for}.",
        ),
        ("user", ASKED),
    ]


def test_section_3_2_2_shows_passages_in_the_turn_of_the_question() -> None:
    found = [Hit(Passage("1", "", "Sodium enters first.", "own"), 1.0, 1)]
    context = ProgramContext(finder=SimpleNamespace(find=lambda _: found))
    (shown,), *_ = replay(build_program(RetrieveThenAnswerSpec(), "en", context), asking(), ())
    assert [turn["role"] for turn in shown] == ["system", "user", "user"]
    assert shown[0]["content"] == ""
    assert shown[2]["content"] == f"Sodium enters first.\n\n{ASKED}"


def test_what_a_chat_template_refuses_is_joined() -> None:
    asked = [{"role": role, "content": text} for role, text in turns(ZeroShotSpec())]
    (joined,) = TemplateRules(system=False, repeats=False, empty_system=False).fit(asked)
    assert joined == {"role": "user", "content": f"{asked[1]['content']}\n\n{ASKED}"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_turns(language) -> None:
    number = NUMBER[language]
    system, told, asked = turns(ZeroShotSpec(), language)
    assert (system, asked) == (("system", ""), ("user", ASKED))
    lines = told[1].splitlines()
    assert (told[0], len(lines)) == ("user", 3)
    assert lines[1].endswith(f": {{Answer: {number}}}")
    assert lines[2].endswith(": {Answer: 1}")
    shown = turns(FewShotSpec(), language)
    assert [role for role, _ in shown] == ["system", *["user", "assistant"] * 3, "user"]
    assert [text for role, text in shown if role == "assistant"] == ["{Answer: 2}", "{Answer: 4}", "{Answer: 1}"]
    assert "{Answer" not in shown[0][1]
    assert "\n2. Na + Cl2 -> 2NaCl\n" in shown[3][1]
    reasoned = turns(ChainOfThoughtSpec(), language)
    assert [role for role, _ in reasoned] == ["system", "user"]
    assert reasoned[0][1].endswith(f"JSON: {{Answer: {number}}}." if language != "en" else "{Answer: [number]}.")


def test_no_two_languages_share_their_words() -> None:
    for spec in (ZeroShotSpec(), FewShotSpec(), ChainOfThoughtSpec()):
        assert len({tuple(turns(spec, language)) for language in LANGUAGES}) == len(LANGUAGES)


@pytest.mark.parametrize("spec", [ZeroShotSpec, FewShotSpec, ChainOfThoughtSpec, LikelihoodSpec])
@pytest.mark.parametrize("language", ["it", "fr", "ja", "zh"])
def test_words_of_another_language_can_be_asked_in(spec, language) -> None:
    assert turns(spec(prompt_language="en"), language) == turns(spec(), "en")


@pytest.mark.parametrize("language", ["fr", "ja", "zh"])
@pytest.mark.parametrize("spec", [ZeroShotSpec, FewShotSpec, ChainOfThoughtSpec, LikelihoodSpec])
def test_a_language_without_words_says_how_it_can_be_asked(spec, language) -> None:
    with pytest.raises(SpecError) as raised:
        build_program(spec(), language)
    assert str(raised.value) == (
        f"prompt 'paper' has no words in {language!r}: set program.prompt_language to one that it has "
        "(en, es, gl, it, ru), or name a file of your own in program.prompt"
    )


@pytest.mark.parametrize("discipline", ["", "discipline: medicine,", "discipline: arithmetic,"])
def test_examples_of_ones_own_are_read_in_the_language_of_the_words(tmp_path, discipline) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"en: [{{stem: 'Which is even?', {discipline} options: ['1', '2'], answer: 2}}]")
    assert turns(FewShotSpec(examples=path, prompt_language="en"), "fr")[1] == ("user", "Which is even?\n1. 1\n2. 2")
    with pytest.raises(SpecError, match=r"has no words in 'es': .* file of your own in program\.examples"):
        build_program(FewShotSpec(examples=path), "es")


def test_questions_in_words_take_another_language_too() -> None:
    spec = ShortAnswerSpec(prompt_language="it")
    assert (spec.label, spec.words.language) == ("short_answer-words_it", "it")


def test_a_prompt_file_says_whose_turn_instructions_are(tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("en: {few_shot: {turn: user, instructions: Choose.}, zero_shot: {instructions: Choose.}}")
    assert turns(FewShotSpec(prompt=path))[:2] == [("system", ""), ("user", "Choose.")]
    assert turns(ZeroShotSpec(prompt=path)) == [("system", "Choose."), ("user", ASKED)]
    path.write_text("en: {zero_shot: {turn: assistant, instructions: Choose.}}")
    with pytest.raises(SpecError, match=r"mine\.yaml: en\.zero_shot\.turn: Input should be 'system' or 'user'"):
        build_program(ZeroShotSpec(prompt=path), "en")


def test_an_optimized_program_keeps_whose_turn_its_instructions_are(tmp_path) -> None:
    saved, earlier = tmp_path / "program.json", tmp_path / "earlier.json"
    spec = ZeroShotSpec()
    program = build_program(spec, "en")
    program.respond.signature = program.respond.signature.with_instructions("Choose. Write {Answer: n}.")
    save_program(program, saved, spec, "en")
    asked = [("system", ""), ("user", "Choose. Write {Answer: n}."), ("user", ASKED)]
    assert turns(ZeroShotSpec(load=saved)) == turns(ZeroShotSpec(load=saved, prompt="paper_v0")) == asked
    state = json.loads(saved.read_text())
    assert (state["metadata"]["medexam"].pop("turn"), loaded_words(saved)["turn"]) == ("user", "user")
    earlier.write_text(json.dumps(state))
    assert turns(ZeroShotSpec(load=earlier)) == [("system", "Choose. Write {Answer: n}."), ("user", ASKED)]
    assert "turn" not in loaded_words(earlier)
    state["metadata"]["medexam"]["turn"] = "nobody"
    earlier.write_text(json.dumps(state))
    with pytest.raises(SpecError, match=r"earlier\.json is damaged"):
        turns(ZeroShotSpec(load=earlier))
