"""Translations from end to end: what is asked, what is kept, what is pending, and what is written."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam.datasets import check_exam_set, load_exam_set
from medexam.specs import DatasetSpec

GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."
EXPERT = ("--setups", "expert")


@pytest.fixture(scope="module")
def sources():
    """The four Spanish questions that are translated."""
    return load_exam_set(DatasetSpec(name="headqa_sample", language="es", limit=4, option_counts=(4,)))


def test_three_setups_end_in_a_data_set_that_is_sound(translate, script, sources) -> None:
    found = translate(*script({"*": f"English:\n{GOOD}\n\nSpanish:\n¿Qué?"}))
    assert len(found.asked) == 12
    document = found.document
    assert (document["owed_replies"], document["discarded"], document["rules"]["most_similar"]) == (0, [], 4)
    assert [(name, count["valid"], count["repeated"]) for name, count in found.counts.items()] == [
        (name, 4, 4) for name in ("zero_shot", "one_shot", "expert")
    ]
    for path in (found.folder / "replies").glob("*/spec.json"):
        record = path.read_text(encoding="utf-8")
        assert ("medexam_companions" in record, '"kind": "translate"' in record) == (False, True)
    report = check_exam_set("headqa_v2", None, found.folder)
    assert report.passed
    assert [check.language for check in report.languages] == ["en", "es"]
    read = load_exam_set(DatasetSpec(name="headqa_v2", language="en", path=found.folder))
    assert "es to en by scripted" in read.source
    assert {(question.stem, question.options[3].text) for question in read.questions} == {("Which?", "Four.")}
    of_source = [(one.exam.name, one.number, sources.golds[one.key].number) for one in sources.questions]
    assert [(one.exam.name, one.number, read.golds[one.key].number) for one in read.questions] == of_source


def test_errors_are_counted_by_setup_and_a_question_without_a_valid_one_is_discarded(translate, script) -> None:
    replies = script({"Translate the following": "Which?\n1. One.\n2. Two.", "*": GOOD})
    found = translate(*replies)
    assert [found.counts[name]["faults"]["option_count"] for name in ("zero_shot", "one_shot", "expert")] == [4, 4, 0]
    assert (found.counts["expert"]["valid"], found.counts["expert"]["chosen"]) == (4, 4)
    assert found.document["rules"] == {"only_valid": 4, "fewer_errors": 0, "most_similar": 0}
    alone = translate(*replies, "--setups", "zero_shot", code=2)
    assert (len(alone.document["discarded"]), alone.document["path"]) == (4, None)
    assert "none of the 4 questions has a valid translation, so no data set is written" in alone.err


def test_the_prompts_hold_the_question_in_its_layout(translate, script, sources) -> None:
    found = translate(*script({"*": GOOD}), limit=1)
    shown = [[message["content"] for message in one.messages] for one in found.asked]
    (zero_shot,), (one_shot,), (system, expert) = shown
    (source,) = (one for one in sources.questions if one.stem in zero_shot)
    layout = "\n".join([source.stem, *(f"{option.number}. {option.text}" for option in source.options)])
    assert zero_shot.startswith("Translate the following multiple-choice question from Spanish to English.")
    assert f"Spanish:\n{layout}" in zero_shot
    assert zero_shot.endswith("English:")
    assert (one_shot.count("English:"), "3. Omeprazole." in one_shot) == (2, True)
    assert "expert translator" in system
    assert expert.startswith(layout)
    assert {one.sampling["stop"] for one in found.asked} == {("\nSpanish:", "\nEnglish:", "\n5. ")}


def test_a_base_model_continues_what_has_no_system_message(translate, script) -> None:
    two = (*script({"*": GOOD}), *script({"*": GOOD, "no such words": GOOD}, "base"))
    found = translate(*two, limit=1)
    zero_shot, one_shot, expert = found.asked
    for one in (zero_shot, one_shot):
        assert (one.plain, len(one.messages)) == (True, 1)
        more = ("\nTranslate the following", "\nTranslation:", "\nQuestion:")
        assert one.sampling["stop"] == ("\nSpanish:", "\nEnglish:", *more, "\n5. ")
    assert (expert.plain, expert.sampling["stop"]) == (False, ("\nSpanish:", "\nEnglish:", "\n5. "))
    assert sum(one["answers"] for one in found.document["answered_by"]) == 3
    more = translate(*two, limit=2)
    assert (more.folder, len(more.asked)) == (found.folder, 3)


def test_a_failed_question_is_pending_and_nothing_is_chosen_of_it(translate, script, sources) -> None:
    key, stem = sources.questions[0].key, sources.questions[0].stem
    failed = translate(*script({stem: {"error": "transport"}, "*": GOOD}), limit=4, code=3)
    assert (failed.document["owed_replies"], failed.document["questions"], failed.document["path"]) == (3, 3, None)
    assert key not in failed.document["choices"]
    lines = [line for line in failed.replies if line["question"].startswith(key)]
    assert {line["failure"]["kind"] for line in lines} == {"LMTransportError"}
    assert "pending replies: 3, so the data set is not written" in failed.err
    replies = script({"Translate the following": GOOD, "*": {"error": "transport"}})
    expert = translate(*replies, "--out", "other", code=3)
    assert (expert.document["owed_replies"], expert.document["choices"]) == (4, {})


def test_another_model_or_translation_does_not_go_on(translate, script) -> None:
    tables = {"model": {"*": GOOD}, "base": {"*": GOOD, "no such words": GOOD}}
    two = (*script(tables["model"]), *script(tables["base"], "base"))
    found = translate(*two, limit=2)
    answerers = {reply["answered_by"] for reply in found.replies}
    for role in ("base", "model"):
        script({"of another": GOOD, **tables[role]}, role)
        refused = translate(*two, limit=4, code=2)
        script(tables[role], role)
        assert "its 2 answers are of scripted" in refused.err
        assert refused.err.splitlines()[-1].endswith("or in another folder")
        assert {reply["answered_by"] for reply in found.replies} == answerers
    refused = translate(*two, "--to", "gl", "--out", found.folder, limit=2, code=2)
    assert "holds another translation (it differs in target)" in refused.err
    other = script({"*": "Another"}, "model", "other.yaml")
    assert "it differs in model.args.path" in translate(*other, *two[4:], "--out", found.folder, code=2).err
    whole = translate(*two, limit=4)
    # The base model's pending questions were asked before the other model was refused.
    assert (len(whole.asked), sum(one["answers"] for one in whole.document["answered_by"])) == (2, 12)


def test_the_same_model_from_another_place_goes_on(translate, script, tmp_path) -> None:
    def by(file):
        script({"*": GOOD}, "model", file)
        return ("--set", "model.engine=scripted", "--set", f"model.path={tmp_path / file}")

    found = translate(*by("model.yaml"), limit=2)
    whole = translate(*by("moved.yaml"), limit=3)
    assert (whole.folder, len(whole.replies), len(whole.asked)) == (found.folder, 9, 0)


def test_pictures_go_along_with_their_bytes(translate, script, tmp_path) -> None:
    found = translate(*script({"*": GOOD}), *EXPERT, limit=2)
    path = found.folder / "es.parquet"
    table = pq.read_table(path)
    picture = {"bytes": b"PNG", "path": "a.png"}
    column = pa.array([picture, None])
    at = table.schema.get_field_index("image")
    (tmp_path / "v2").mkdir()
    pq.write_table(table.set_column(at, "image", column), tmp_path / "v2" / "es.parquet")
    more = translate(*script({"*": GOOD}), *EXPERT, "--path", tmp_path / "v2", dataset="headqa_v2", limit=2)
    assert [row["image"] for row in more.rows] == [picture, None]
    assert load_exam_set(DatasetSpec(name="headqa_v2", language="en", path=more.folder)).questions[0].image == "a.png"


def test_what_was_translated_is_asked_in_its_language(translate, script, medexam) -> None:
    found = translate(*script({"*": GOOD}), *EXPERT, "--to", "eu", limit=2)
    assert "from Spanish to Basque" in found.asked[0].messages[0]["content"]
    assert (found.document["path"].endswith("eu.parquet"), len(found.rows)) == (True, 2)
    report = check_exam_set("headqa_v2", None, found.folder)
    assert (report.passed, [check.language for check in report.languages]) == (True, ["es", "eu"])
    basque = ("--language", "eu", "--program", "random", "--set", f"dataset.path={found.folder}")
    code, out, err = medexam("run", "headqa_v2", *basque, "--json")
    assert code == 0, err
    (run,) = json.loads(out)
    assert (run["language"], run["metrics"]["selected"]) == ("eu", 2)


def test_words_of_ones_own_ask(translate, script, tmp_path) -> None:
    words = tmp_path / "mine.yaml"
    setup = "languages: {es: Español, en: Inglés}\nkeywords: []\nsetups: {plain: {user: '%s'}}\n"
    words.write_text(setup % "A $target: $question")
    own = (*script({"A Inglés": GOOD}), "--setups", "plain", "--words", words)
    assert translate(*own, limit=1).counts["plain"]["valid"] == 1
    words.write_text(setup % "nothing")
    assert "mine.yaml: plain: user lacks $question" in translate(*own, code=2).err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "es"), "both es: name two languages"),
        (("--to", "xx"), "target"),
        (("--to", "pt"), "no example in pt, and setup one_shot shows one: leave one_shot out"),
        (("--setups", "few_shot"), "--setups few_shot: name one or more of zero_shot, one_shot, expert"),
        (("--setups", "expert,expert"), "each once"),
        (("--set", "program.kind=x"), "only keys of model, base and dataset"),
        (("--set", "model.engin=x"), "unknown key 'model"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is(translate, script, words, said) -> None:
    refused = translate(*script({"*": GOOD}), *words, code=2)
    assert said in refused.err
    assert refused.asked == []
