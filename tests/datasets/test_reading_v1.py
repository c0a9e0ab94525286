"""HEAD-QA v1's JSON: what is read of it."""

import gzip

from medexam.datasets import load_exam_set
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


def test_neither_the_order_of_fields_nor_the_name_of_an_exam_changes_its_questions(document, write_json) -> None:
    plain = load_exam_set(_spec(write_json(document)))
    turned = {name: dict(reversed(exam.items())) for name, exam in document["exams"].items()}
    for exam in turned.values():
        del exam["name"]
    again = load_exam_set(_spec(write_json({"exams": turned, **{k: document[k] for k in ("language", "version")}})))
    assert again.questions == plain.questions
