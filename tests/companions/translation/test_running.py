"""Translations from end to end: what is asked, what is kept, what is pending, and what is written."""

import json
import shutil

import pytest

from asked import as_request
from medexam.companions.translation.layout import text_digest
from medexam.companions.translation.outcome import find_outcome, write_data_set
from medexam.companions.translation.plan import build_spec, check_goes_on, load_plan
from medexam.companions.translation.selecting import SelectionRule
from medexam.companions.translation.validity import TranslationFault
from medexam.datasets import check_exam_set
from medexam.errors import RunFolderError, SpecError
from medexam.experiments import current_run, plan_resume
from medexam.experiments.report.page.document import render_page
from medexam.serve import ScriptedEngine

EARLIER_DIGEST = "48a91c3048fd"
"""By which an earlier version named the file of these replies of `expert`."""
GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."


def test_three_setups_end_in_a_data_set_that_is_sound(translate, script) -> None:
    plan, watching, stop = translate(script({"*": f"English:\n{GOOD}\n\nSpanish:\n¿Qué?"}))
    outcome = find_outcome(plan)

    assert stop is None
    assert watching.tasks == ["zero_shot", "one_shot", "expert"]
    assert watching.asked_for == 12
    assert outcome.pending == 0
    assert [count.valid for count in outcome.counts] == [4, 4, 4]
    assert [count.repeated for count in outcome.counts] == [4, 4, 4]
    assert outcome.rules[SelectionRule.MOST_SIMILAR] == 4
    path, written = write_data_set(plan, outcome)
    assert (path.name, written) == ("en.parquet", 4)
    report = check_exam_set("headqa_v2", None, path.parent)
    assert report.passed
    assert [check.language for check in report.languages] == ["en", "es"]


def test_errors_are_counted_by_setup_and_a_question_without_a_valid_one_is_discarded(translate, script) -> None:
    settings = script({"Translate the following": "Which?\n1. One.\n2. Two.", "*": GOOD})
    plan, _, _ = translate(settings)
    outcome = find_outcome(plan)

    zero_shot, one_shot, expert = outcome.counts
    assert zero_shot.faults[TranslationFault.OPTION_COUNT] == one_shot.faults[TranslationFault.OPTION_COUNT] == 4
    assert (expert.valid, expert.chosen) == (4, 4)
    assert outcome.rules == {SelectionRule.ONLY_VALID: 4, SelectionRule.FEWER_ERRORS: 0, SelectionRule.MOST_SIMILAR: 0}
    assert outcome.document()["discarded"] == []
    alone, _, _ = translate(settings, setups=("zero_shot",))
    assert len(find_outcome(alone).selection.discarded) == 4
    assert write_data_set(alone, find_outcome(alone)) is None


def test_the_prompts_hold_the_question_in_its_layout(translate, script, monkeypatch) -> None:
    asked = []
    answer = ScriptedEngine.answer
    monkeypatch.setattr(ScriptedEngine, "answer", lambda self, one: asked.append(as_request(one)) or answer(self, one))
    plan, _, _ = translate(script({"*": GOOD}), limit=1)
    source = next(iter(plan.sources.values()))

    zero_shot, one_shot, expert = ((request.system, request.messages[-1].parts[0].text) for request in asked)
    shown = f"{source.stem}\n1. {source.options[0][1]}"
    assert zero_shot[0] is None
    assert zero_shot[1].startswith("Translate the following multiple-choice question from Spanish to English.")
    assert f"Spanish:\n{shown}" in zero_shot[1]
    assert zero_shot[1].endswith("English:")
    assert one_shot[1].count("English:") == 2
    assert "3. Omeprazole." in one_shot[1]
    assert "expert translator" in expert[0]
    assert expert[1].startswith(shown)
    assert asked[0].config.stop == ("\nSpanish:", "\nEnglish:", "\n5. ")


def _answer_by_another(monkeypatch, file):
    """Have another model answer for the script in `file`: what a server serves is not seen before it is asked."""
    build = ScriptedEngine.from_file

    def build_another(path):
        engine = build(path)
        if path.name == file:
            info = engine.info()
            identity = info.identity.model_copy(update={"dtype": "float16"})
            other = info.model_copy(update={"identity": identity})
            engine.info = lambda: other
        return engine

    monkeypatch.setattr(ScriptedEngine, "from_file", build_another)


def _two_models(script, base=GOOD):
    """Settings of a translation whose plain set-ups another model continues."""
    model, other = script({"*": GOOD}), script({"*": base, "no such words": GOOD}, "base.yaml")
    return model | {key.replace("model.", "base."): value for key, value in other.items()}


def test_a_base_model_continues_what_has_no_system_message(translate, script, monkeypatch) -> None:
    asked = []
    answer = ScriptedEngine.answer
    monkeypatch.setattr(ScriptedEngine, "answer", lambda self, one: asked.append(as_request(one)) or answer(self, one))
    plan, watching, _ = translate(_two_models(script), limit=1)
    outcome = find_outcome(plan)

    assert [run.role for run in plan.setups] == ["base", "base", "model"]
    assert (watching.asked_for, outcome.pending, outcome.mixed) == (3, 0, False)
    zero_shot, one_shot, expert = asked
    for request in (zero_shot, one_shot):
        assert request.config.extensions == {"plain": True}
        assert (request.system, len(request.messages)) == (None, 1)
        assert request.config.stop == (
            *("\nSpanish:", "\nEnglish:", "\nTranslate the following", "\nTranslation:", "\nQuestion:"),
            "\n5. ",
        )
    assert (expert.config.extensions, expert.config.stop) == (None, ("\nSpanish:", "\nEnglish:", "\n5. "))
    assert sum(one.answers for one in outcome.answered) == 3
    folder = plan.folder.path
    assert json.loads((folder / "models.json").read_text()) != json.loads((folder / "base_models.json").read_text())
    whole, more, _ = translate(_two_models(script), limit=2)
    assert (whole.folder.path, more.asked_for) == (folder, 3)


def test_words_that_a_base_model_continues_are_other_replies_than_in_a_dialogue(translate, script, tmp_path) -> None:
    settings = script({"*": GOOD})
    plain = {key.replace("model.", "base."): value for key, value in settings.items()}
    alone, _, _ = translate(settings, limit=1)
    both, watching, _ = translate(settings | plain, limit=1)
    assert both.folder != alone.folder
    assert watching.asked_for == 3
    assert [one.digest == other.digest for one, other in zip(alone.setups, both.setups, strict=True)] == [
        False,
        False,
        True,
    ]
    with pytest.raises(RunFolderError, match=r"it differs in base\..*--out"):
        translate(_two_models(script), limit=1, out=both.folder.path)


def test_another_base_model_does_not_go_on_and_the_other_model_does(translate, script, monkeypatch) -> None:
    settings = _two_models(script)
    translate(settings, limit=1)
    _answer_by_another(monkeypatch, "base.yaml")
    with pytest.raises(RunFolderError, match=r"its 2 answers are of scripted .*with --out DIR$"):
        translate(settings, limit=2)
    monkeypatch.undo()
    _, watching, _ = translate(settings, limit=2, setups=("expert",))
    assert watching.asked_for == 1


def test_going_on_asks_only_what_is_pending(translate, script) -> None:
    settings = script({"*": GOOD})
    translate(settings, limit=2)

    plan, watching, _ = translate(settings, limit=4)
    assert watching.asked_for == 6
    assert len(plan.setups[0].predictions) == 4
    _, again, _ = translate(settings, limit=4)
    assert again.asked_for == 0


def test_a_failed_question_is_pending_and_nothing_is_chosen_of_it(translate, script, tmp_path, monkeypatch) -> None:
    settings = script({"*": GOOD})
    plan, _, _ = translate(settings, limit=3)
    key, source = next(iter(plan.sources.items()))
    breaking = ScriptedEngine({source.stem: {"error": "transport"}, "*": GOOD})._reply_to
    monkeypatch.setattr(ScriptedEngine, "_reply_to", lambda _, asked: breaking(asked))

    failed, _, _ = translate(settings, limit=3, out=tmp_path / "other")
    outcome = find_outcome(failed)
    assert outcome.pending == 3
    assert key not in outcome.candidates
    assert len(outcome.candidates) == 2
    stored = [path.read_text() for path in (failed.folder.path / "replies").glob("*/predictions.jsonl")]
    lines = [json.loads(line) for text in stored for line in text.splitlines()]
    assert {line["failure"]["kind"] for line in lines if line["question"].startswith(key)} == {"LMTransportError"}

    monkeypatch.undo()
    whole, watching, _ = translate(settings, limit=3, out=tmp_path / "other")
    assert watching.asked_for == 3
    assert find_outcome(whole).pending == 0


def test_a_prompt_that_does_not_fit_is_an_invalid_translation_and_not_pending(translate, script) -> None:
    plan, _, _ = translate(script({"*": {"error": "context"}}), limit=1)

    assert plan.pending == 0
    assert find_outcome(plan).counts[0].faults[TranslationFault.EMPTY_TEXT] == 1


def test_a_folder_of_another_translation_is_refused(translate, script, tmp_path) -> None:
    settings = script({"*": GOOD})
    translate(settings, limit=1, out=tmp_path / "here")

    with pytest.raises(RunFolderError, match=r"holds another translation \(it differs in target\).*--out"):
        translate(settings, limit=1, target="gl", out=tmp_path / "here")


def _replies(folder):
    lines = [
        line for path in (folder / "replies").glob("*/predictions.jsonl") for line in path.read_text().splitlines()
    ]
    return [json.loads(line) for line in lines]


def test_another_model_does_not_go_on(translate, script, tmp_path, monkeypatch) -> None:
    settings = script({"*": GOOD})
    plan, _, _ = translate(settings, limit=2)
    models = json.loads((plan.folder.path / "models.json").read_text())
    assert {reply["answered_by"] for reply in _replies(plan.folder.path)} == set(models)
    kept = {path: path.read_bytes() for path in plan.folder.path.rglob("*.json*")}

    _answer_by_another(monkeypatch, "replies.yaml")
    with pytest.raises(RunFolderError, match=r"its 6 answers are of scripted .*float16.*with --out DIR$"):
        translate(settings, limit=4)
    assert {path: path.read_bytes() for path in kept if path.name not in ("translation.json", "texts.jsonl")} == {
        path: data for path, data in kept.items() if path.name not in ("translation.json", "texts.jsonl")
    }
    monkeypatch.undo()
    with pytest.raises(RunFolderError, match=r"it differs in model\.script.*--out"):
        translate(script({"*": "Another"}, "other.yaml"), limit=2, out=plan.folder.path)
    whole, watching, _ = translate(settings, limit=4)
    assert (watching.asked_for, whole.pending) == (6, 0)
    assert [(one.print, one.answers) for one in find_outcome(whole).answered] == [(*models, 12)]


def test_the_same_model_from_another_place_goes_on(translate, script, tmp_path) -> None:
    plan, _, _ = translate(script({"*": GOOD}), limit=2)
    moved = script({"*": GOOD}, "moved.yaml")
    (tmp_path / "replies.yaml").unlink()
    plan.folder.path.rename(tmp_path / "translate-renamed")

    whole, watching, _ = translate(moved, limit=3)
    assert (whole.folder.name, watching.asked_for) == ("translate-renamed", 3)


def test_replies_of_two_models_are_counted_apart(translate, script) -> None:
    plan, _, _ = translate(script({"*": GOOD}), limit=2, setups=("expert",))
    (path,) = (plan.folder.path / "replies").glob("*/predictions.jsonl")
    first, second = path.read_text().splitlines(keepends=True)
    other = json.dumps(json.loads(second) | {"answered_by": "0" * 8, "model": "other"}) + "\n"
    path.write_text(first + other)

    outcome = find_outcome(load_plan(plan.folder.path))
    assert sorted((one.name, one.answers) for one in outcome.answered) == [("other", 1), ("scripted", 1)]
    assert len(outcome.document()["answered_by"]) == 2


def test_the_runs_of_a_translation_are_reported_and_resumed_as_every_run(translate, script) -> None:
    settings = script({"Translate the following": "Which?\n1. One.", "*": GOOD})
    plan, _, _ = translate(settings, limit=4, setups=("zero_shot", "expert"))
    zero_shot, expert = (current_run(run.cell.folder, print) for run in plan.setups)

    assert zero_shot.complete
    assert (zero_shot.metrics.measures["valid"].value, expert.metrics.measures["valid"].value) == (0, 1)
    assert zero_shot.metrics.measures["option_count"].value == 1
    assert plan_resume(str(expert.folder.path), runs_dir=plan.folder.replies).cells[0].pending == ()
    assert "Translate-setup_expert" in "".join(render_page([zero_shot, expert]))


def test_replies_of_an_earlier_version_are_taken_over_and_continued(translate, script) -> None:
    settings = script({"*": GOOD})
    fresh, _, _ = translate(settings, limit=2, setups=("expert",))
    (run,) = fresh.setups
    shutil.rmtree(run.cell.folder.path)
    first, second = fresh.sources
    assert run.digest == EARLIER_DIGEST
    line = {"question": first, "source": text_digest(fresh.sources[first]), "reply": f"English:\n{GOOD}"}
    line |= {"answered_by": "0" * 8, "model": "m"}
    (fresh.folder.replies / f"expert-{EARLIER_DIGEST}.jsonl").write_text(json.dumps(line) + "\n")

    again, watching, _ = translate(settings, limit=2, setups=("expert",))
    assert watching.asked_for == 1
    assert [candidates[0].valid for candidates in find_outcome(again).candidates.values()] == [True, True]
    assert again.setups[0].predictions[second].answered_by != "0" * 8


def test_one_of_an_earlier_version_is_read_and_does_not_go_on(translate, script) -> None:
    settings = script({"*": GOOD})
    plan, _, _ = translate(settings, limit=2)
    record = json.loads((plan.folder.path / "translation.json").read_text())
    (plan.folder.path / "translation.json").write_text(
        json.dumps({key: value for key, value in record.items() if key != "schema"})
    )
    old = load_plan(plan.folder.path)
    assert find_outcome(old).texts == find_outcome(plan).texts
    with pytest.raises(RunFolderError, match="cannot continue: an earlier version of medexam made it"):
        check_goes_on(old)
    with pytest.raises(RunFolderError, match=r"cannot continue: an earlier version of medexam made it.*--out"):
        translate(settings, limit=2)


def test_a_stored_translation_is_planned_again_from_its_folder(translate, script) -> None:
    plan, _, _ = translate(script({"*": GOOD}), limit=2)

    again = load_plan(plan.folder.path)
    assert again.pending == 0
    assert again.spec == plan.spec


def test_any_pair_of_languages_can_be_named(translate, script) -> None:
    plan, _, _ = translate(script({"*": GOOD}), limit=1, target="Swedish", setups=("zero_shot", "expert"))

    assert "from Spanish to Swedish" in plan.setups[0].words.user
    path, written = write_data_set(plan, find_outcome(plan))
    assert (path.name, written) == ("Swedish.parquet", 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "es"}, "both es: name two languages"),
        ({"target": "xx"}, "does not know the language 'xx': the codes are .*; or write its name"),
        ({"target": "Swedish"}, "no example in Swedish, and setup one_shot shows one: leave one_shot out"),
        ({"setups": ("few_shot",)}, "no setup 'few_shot': the choices are zero_shot, one_shot, expert"),
        ({"setups": ("expert", "expert")}, "is empty, or names one twice"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is(translate, script, changes, message) -> None:
    with pytest.raises(SpecError, match=message):
        translate(script({"*": GOOD}), **changes)


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SpecError, match="only keys of model, base and dataset"):
        build_spec({"program.kind": "x"}, dataset={}, target="en")
    with pytest.raises(SpecError, match="unknown key 'model"):
        build_spec({"model.engin": "x"}, dataset={}, target="en")


def test_words_of_ones_own_take_the_place_of_the_shipped_ones(translate, script, tmp_path) -> None:
    words = tmp_path / "mine.yaml"
    words.write_text(
        "languages: {es: Español, en: Inglés}\nkeywords: []\nsetups: {plain: {user: 'A $target: $question'}}\n"
    )

    plan, _, _ = translate(script({"A Inglés": GOOD}), limit=1, setups=("plain",), words=words)

    assert find_outcome(plan).counts[0].valid == 1
    words.write_text("languages: {es: Español, en: Inglés}\nkeywords: []\nsetups: {plain: {user: 'nothing'}}\n")
    with pytest.raises(SpecError, match=r"mine.yaml: plain: user lacks \$question"):
        translate(script({"*": GOOD}), setups=("plain",), words=words)
