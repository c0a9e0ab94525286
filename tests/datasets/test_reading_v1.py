"""HEAD-QA v1's JSON: what is read, and one clear line for everything that is wrong with a file."""

import gzip

import pytest

from medexam.datasets import load_exam_set
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
    assert plain.version == "1.0"


def test_nursery_and_pictures(document, first, write_json) -> None:
    first["image"] = "./data/MIR/picture.png"
    exams = load_exam_set(_spec(write_json(document)))
    assert [question.image for question in exams.questions[:2]] == ["./data/MIR/picture.png", None]
    nursing = [question for question in exams.questions if question.exam.discipline == Discipline.NURSING]
    assert len(nursing) == 20
    assert all(question.key.split("/")[2] == "nursing" for question in nursing)


EXAM = '{"language": "en", "exams": {"A": {"category": "%s", "year": "%s", "data": [%s]}}}'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is not JSON", "truncated"]),
        ('{"version": "1.0", "language": "en", "exams": {"Cuaderno_201', ["is not JSON", "fetch headqa_v1"]),
        ("[]", ["is not a HEAD-QA v1 file", '"exams"']),
        ('{"version": "1.0", "language": "en", "exams": []}', ["is not a HEAD-QA v1 file"]),
        ('{"version": "1.0", "language": "en", "exams": {}}', ["holds no questions"]),
        ('{"version": "1.0", "language": "es", "exams": {}}', ["'es'", "not 'en'", "dataset.language"]),
        ('{"version": "1.0", "exams": {}}', ["language None"]),
        ('{"language": "en", "exams": {"A": 3}}', ["exam A", '"data"']),
        (EXAM % ("law", "2013", ""), ["exam A", "'law'"]),
        (EXAM % ("biology", "MMXIII", ""), ["'MMXIII'"]),
        (EXAM % ("biology", "2013", "5"), ["entry 1", "is 5"]),
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
        ({"qtext": None}, ["headqa-v1/2013/biology/8", "qtext is None"]),
        ({"image": 4}, ["image is 4"]),
        ({"answers": None}, ["answers is None"]),
        ({"answers": [{"aid": 1, "atext": "Cones."}]}, ["at least two options, this one has 1"]),
        ({"answers": [{"aid": 1, "atext": "a"}, {"aid": 1, "atext": "b"}]}, ["same number: [1, 1]"]),
        ({"answers": [{"aid": 1, "atext": "a"}, {"aid": 2}]}, ["{'aid': 2}", "not an option"]),
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


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("HEAD_EN.json.gz", gzip.compress(b"{" * 9000, mtime=0)[:-12], "cannot be read"),
        ("HEAD_EN.json", b'{"language": "en", "exams": {"\xff\xfe": 1}}', "is not UTF-8"),
    ],
)
def test_a_torn_archive_and_another_encoding_are_refused(tmp_path, name, content, said) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=said):
        load_exam_set(_spec(tmp_path / name))


def test_neither_the_order_of_fields_nor_the_name_of_an_exam_changes_its_questions(document, write_json) -> None:
    plain = load_exam_set(_spec(write_json(document)))
    turned = {name: dict(reversed(exam.items())) for name, exam in document["exams"].items()}
    for exam in turned.values():
        del exam["name"]
    again = load_exam_set(_spec(write_json({"exams": turned, **{k: document[k] for k in ("language", "version")}})))
    assert again.questions == plain.questions
