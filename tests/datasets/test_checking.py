"""What a check counts, and which anomalies are errors and which are notes."""

import copy

import pytest

from medexam.datasets import check_exam_set
from table_cases import read_table


def _kinds(anomalies) -> list[str]:
    return sorted(anomaly.kind for anomaly in anomalies)


def test_the_sample_is_sound_in_both_languages() -> None:
    report = check_exam_set("headqa_sample")
    assert report.passed
    assert [checked.language for checked in report.languages] == ["en", "es"]
    for checked in report.languages:
        assert (checked.exams, checked.questions, checked.with_images) == (30, 120, 0)
        assert checked.by_option_count == {4: 72, 5: 48}
        assert set(checked.by_discipline) == {
            "biology", "chemistry", "medicine", "nursing", "pharmacology", "psychology",
        }  # fmt: skip
        assert checked.by_discipline["nursing"] == dict.fromkeys(range(2013, 2018), 4)
        assert (checked.errors, checked.notes) == ((), ())
        (corrected,) = checked.corrections
        assert corrected.place == "headqa-v1/2013/nursing/152"
        assert "U+F0B0 in option 3, for '°'" in corrected.detail


EMPTY = [{"aid": n, "atext": "" if n == 3 else "x" * n} for n in range(1, 6)]
SAME = [{"aid": n, "atext": "same"} for n in (1, 2)]


@pytest.mark.parametrize(*read_table("checked_questions"))
def test_errors_fail_a_check_and_notes_do_not(document, first, write_json, change, errors, notes) -> None:
    first |= change
    report = check_exam_set("headqa_v1", ["en"], write_json(document))
    (checked,) = report.languages
    assert (report.passed, _kinds(checked.errors), _kinds(checked.notes)) == (not errors, errors, notes)
    assert checked.questions == (119 if errors == ["unreadable"] else 120)
    assert checked.with_images == ("image" in change)


def test_a_repeated_question_is_a_note(document, first, write_json) -> None:
    document["exams"]["Cuaderno_2013_1_B"]["data"].append(first | {"qid": "235"})
    report = check_exam_set("headqa_v1", ["en"], write_json(document))
    assert report.passed
    assert _kinds(report.languages[0].notes) == ["repeated_question", "repeated_stem"]
    assert "biology/235" in report.languages[0].notes[0].detail


def test_a_check_goes_on_past_unreadable_exams_and_lists_them_all(document, write_json) -> None:
    exams = document["exams"]
    exams["Cuaderno_2013_1_B"] = "torn"
    exams["Cuaderno_2014_1_B"]["category"] = "law"
    exams["Cuaderno_2015_1_B"]["data"][2] = None
    checked = check_exam_set("headqa_v1", ["en"], write_json(document)).languages[0]
    assert checked.questions == 120 - 4 - 4 - 1
    assert [error.place for error in checked.errors] == [
        "exam Cuaderno_2013_1_B",
        "exam Cuaderno_2014_1_B",
        "exam Cuaderno_2015_1_B, entry 3",
    ]


def test_a_check_of_json_lines_goes_on_past_a_torn_line(records, write_jsonl) -> None:
    path = write_jsonl(records)
    path.write_text(path.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    report = check_exam_set("headqa_v2", path=path)
    assert not report.passed
    assert report.languages[0].questions == 119
    assert report.languages[0].errors[0].place == "line 120"


def test_rows_without_an_official_answer_are_counted(records, write_jsonl) -> None:
    records[3]["ra"] = 0
    report = check_exam_set("headqa_v2", path=write_jsonl(records))
    assert report.passed
    assert report.languages[0].without_official_answer == 1
    assert _kinds(report.languages[0].notes) == ["no_official_answer"]


@pytest.mark.parametrize(*read_table("languages_that_disagree"))
def test_languages_that_disagree_are_an_error(document, spanish, first, write_json, tmp_path, change, kind) -> None:
    first["ra"] = "2"
    twin = spanish["exams"]["Cuaderno_2013_1_B"]["data"][0]
    twin |= copy.deepcopy({"ra": "2"} | change)
    write_json(document, "HEAD_EN.json")
    write_json(spanish, "HEAD.json")
    report = check_exam_set("headqa_v1", path=tmp_path)
    assert _kinds(report.language_errors) == [kind]
    assert report.language_errors[0].place == "headqa-v1/2013/biology/8"
    assert not report.passed


def test_a_question_missing_in_a_language_is_an_error_in_v1_and_a_note_in_v2(
    document, spanish, records, spanish_records, write_json, write_jsonl, tmp_path
) -> None:
    spanish["exams"]["Cuaderno_2013_1_B"]["data"].pop(0)
    document["exams"]["Cuaderno_2013_1_E"]["data"].pop(0)
    write_json(document, "HEAD_EN.json")
    write_json(spanish, "HEAD.json")
    v1 = check_exam_set("headqa_v1", path=tmp_path)
    assert [anomaly.detail for anomaly in v1.language_errors] == ["is not there in es", "is not there in en"]
    write_jsonl(spanish_records, "es.jsonl")
    write_jsonl(records[1:], "en.jsonl")
    v2 = check_exam_set("headqa_v2", path=tmp_path)
    assert v2.passed
    assert _kinds(v2.language_notes) == ["missing_in_language"]
