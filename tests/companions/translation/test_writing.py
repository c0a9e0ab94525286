"""A translated data set as a file: what the reader of HEAD-QA v2 and `medexam data check` make of it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam.companions.translation.layout import QuestionText, text_of
from medexam.companions.translation.writing import write_translation
from medexam.datasets import check_exam_set, load_exam_set
from medexam.datasets.pictures.originals import read_embedded
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec


@pytest.fixture(scope="module")
def exams():
    return load_exam_set(DatasetSpec(name="headqa_sample", language="es", limit=20))


def test_the_file_is_read_as_headqa_v2_and_found_sound(tmp_path, exams) -> None:
    texts = {question.key: text_of(question) for question in exams.questions[:-1]}
    first = exams.questions[0]
    texts[first.key] = QuestionText(first.key, "Otra?", tuple((n, f"O{n}") for n in first.option_numbers))

    written = write_translation(tmp_path / "gl.parquet", exams.questions, exams.golds, texts, origin="a test")
    report = check_exam_set("headqa_v2", ["gl"], tmp_path)
    read = load_exam_set(DatasetSpec(name="headqa_v2", language="gl", path=tmp_path))

    assert written == len(read.questions) == 19
    assert report.passed
    assert "a test" in read.source
    assert read.questions[0].stem == "Otra?"
    assert [question.number for question in read.questions] == [question.number for question in exams.questions[:-1]]
    golds = [read.golds[question.key] for question in read.questions]
    assert golds == [exams.golds[question.key] for question in exams.questions[:-1]]


def test_pictures_go_along_with_their_bytes(tmp_path, exams) -> None:
    question = exams.questions[0].model_copy(update={"image": "a.png"})
    source = tmp_path / "es.parquet"
    picture = {"bytes": b"PNG", "path": "a.png"}
    pq.write_table(
        pa.Table.from_pylist([{"name": question.exam.name, "qid": question.number, "image": picture}]), source
    )

    pictures = read_embedded([source])
    path = tmp_path / "en.parquet"
    write_translation(path, [question], exams.golds, {question.key: text_of(question)}, origin="x", pictures=pictures)

    assert pq.read_table(path).column("image").to_pylist() == [picture]
    assert load_exam_set(DatasetSpec(name="headqa_v2", language="en", path=path)).questions[0].image == "a.png"


def test_a_folder_that_cannot_be_written_is_named(tmp_path, exams) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DatasetError, match="choose another folder with --out"):
        write_translation(tmp_path / "file" / "en.parquet", exams.questions, exams.golds, {}, origin="x")
