"""HEAD-QA v1's JSON: what is read, and one clear line for everything that is wrong with a file."""

import gzip
import json

import pytest

from medexam.datasets import load_exam_set
from medexam.datasets.headqa_v1 import parse_headqa_v1
from medexam.errors import DatasetError
from medexam.questions import Discipline
from medexam.specs import DatasetSpec


def _spec(path, **more) -> DatasetSpec:
    return DatasetSpec(name="headqa_v1", path=path, **more)


def test_a_file_and_its_compressed_twin_are_the_same_set(document, write_json) -> None:
    path = write_json(document)
    packed = path.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    plain, small = load_exam_set(_spec(path)), load_exam_set(_spec(packed))
    assert plain.questions == small.questions
    assert (plain.source, small.source) == (str(path), str(packed))


def test_nursery_text_numbers_and_pictures(document, first) -> None:
    first["image"] = "./data/MIR/picture.png"
    version, rows, faults = parse_headqa_v1(document, "en")
    assert (version, faults) == ("1.0", ())
    assert rows[0].question.image == "./data/MIR/picture.png"
    assert rows[1].question.image is None
    nursing = [row.question for row in rows if row.question.exam.discipline == Discipline.NURSING]
    assert len(nursing) == 20
    assert all(question.key.split("/")[2] == "nursing" for question in nursing)
    assert {type(row.gold) for row in rows} == {int}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is not JSON", "truncated"]),
        ("{", ["is not JSON"]),
        (
            '{"version": "1.0", "language": "en", "exams": {"Cuaderno_2013_1_B": {"na',
            ["is not JSON", "fetch headqa_v1"],
        ),
        ("qid,qtext\n1,What", ["is not JSON"]),
        ("[]", ["is not a HEAD-QA v1 file", '"exams"']),
        ("3", ["is not a HEAD-QA v1 file"]),
        ('{"version": "1.0", "language": "en"}', ["is not a HEAD-QA v1 file"]),
        ('{"version": "1.0", "language": "en", "exams": []}', ["is not a HEAD-QA v1 file"]),
        ('{"version": "1.0", "language": "en", "exams": {}}', ["holds no questions"]),
        ('{"version": "1.0", "language": "es", "exams": {}}', ["'es'", "not 'en'", "dataset.language"]),
        ('{"version": "1.0", "exams": {}}', ["language None"]),
        ('{"language": "en", "exams": {"A": 3}}', ["exam A", '"data"']),
        ('{"language": "en", "exams": {"A": {"category": "law", "year": "2013", "data": []}}}', ["exam A", "'law'"]),
        ('{"language": "en", "exams": {"A": {"category": "biology", "year": "MMXIII", "data": []}}}', ["'MMXIII'"]),
        (
            '{"language": "en", "exams": {"A": {"category": "biology", "year": "2013", "data": [5]}}}',
            ["entry 1", "is 5"],
        ),
    ],
)
def test_a_broken_file_is_refused_in_one_line(write_json, content, words) -> None:
    path = write_json(content)
    with pytest.raises(DatasetError) as caught:
        load_exam_set(_spec(path))
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in [str(path), *words]), message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ra": "9"}, ["headqa-v1/2013/biology/8", "gold answer 9", "none of the options [1, 2, 3, 4, 5]"]),
        ({"ra": "0"}, ["headqa-v1/2013/biology/8", "gold answer 0"]),
        ({"ra": ""}, ["headqa-v1/2013/biology/8", "ra is ''"]),
        ({"ra": None}, ["ra is None"]),
        ({"ra": "3.5"}, ["ra is '3.5'"]),
        ({"ra": True}, ["ra is True"]),
        ({"qid": "seven"}, ["exam Cuaderno_2013_1_B, entry 1", "qid is 'seven'"]),
        ({"qid": None}, ["qid is None"]),
        ({"qtext": None}, ["headqa-v1/2013/biology/8", "qtext is None"]),
        ({"image": 4}, ["image is 4"]),
        ({"answers": None}, ["answers is None"]),
        ({"answers": []}, ["at least two options, this one has 0"]),
        ({"answers": [{"aid": 1, "atext": "Cones."}]}, ["this one has 1"]),
        ({"answers": [{"aid": 1, "atext": "a"}, {"aid": 1, "atext": "b"}]}, ["same number: [1, 1]"]),
        ({"answers": [{"aid": 1, "atext": "a"}, {"aid": 2}]}, ["{'aid': 2}", "not an option"]),
        ({"answers": ["a", "b"]}, ["'a'", "not an option"]),
    ],
)
def test_a_broken_question_is_refused_by_name(document, first, write_json, change, words) -> None:
    first |= change
    with pytest.raises(DatasetError) as caught:
        load_exam_set(_spec(write_json(document)))
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in [*words, "medexam data check headqa_v1"]), message


def test_a_question_that_stands_twice_is_refused(document, first, write_json) -> None:
    document["exams"]["Cuaderno_2013_1_B"]["data"].append(dict(first))
    with pytest.raises(DatasetError, match="headqa-v1/2013/biology/8: stands 2 times"):
        load_exam_set(_spec(write_json(document)))


def test_several_problems_are_counted(document, write_json) -> None:
    for entry in document["exams"]["Cuaderno_2013_1_B"]["data"]:
        entry["ra"] = "8"
    with pytest.raises(DatasetError, match=r"biology/8: .* \(and 3 more\)"):
        load_exam_set(_spec(write_json(document)))


def test_a_torn_archive_is_refused(document, tmp_path) -> None:
    path = tmp_path / "HEAD_EN.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode())[:2000])
    with pytest.raises(DatasetError, match="cannot be read"):
        load_exam_set(_spec(path))


def test_text_that_is_not_utf8_is_refused(tmp_path) -> None:
    path = tmp_path / "HEAD_EN.json"
    path.write_bytes(b'{"language": "en", "exams": {"\xff\xfe": 1}}')
    with pytest.raises(DatasetError, match="is not UTF-8"):
        load_exam_set(_spec(path))


def test_an_exam_is_read_whatever_the_order_of_its_fields(document, write_json) -> None:
    plain = load_exam_set(_spec(write_json(document)))
    turned = {name: dict(reversed(exam.items())) for name, exam in document["exams"].items()}
    again = load_exam_set(_spec(write_json({"exams": turned, **{k: document[k] for k in ("language", "version")}})))
    assert again.questions == plain.questions


def test_an_exam_without_a_name_goes_by_its_key(document, write_json) -> None:
    named = load_exam_set(_spec(write_json(document)))
    for exam in document["exams"].values():
        del exam["name"]
    assert [q.exam.name for q in load_exam_set(_spec(write_json(document))).questions] == [
        question.exam.name for question in named.questions
    ]


def test_what_questions_have_in_common_is_held_once(document, first, write_json) -> None:
    twin = {**first, "qid": "9001", "qtext": "Another question?"}
    document["exams"]["Cuaderno_2013_1_B"]["data"].append(twin)
    questions = load_exam_set(_spec(write_json(document))).questions
    one, other = (q for q in questions if q.key in ("headqa-v1/2013/biology/8", "headqa-v1/2013/biology/9001"))
    assert one.exam is other.exam
    assert all(mine is its for mine, its in zip(one.options, other.options, strict=True))
