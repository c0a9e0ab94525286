"""Booklets, keys and pictures that cannot be built from: one clear line each, and nothing written."""

import re

import pytest
from fpdf import FPDF
from fpdf.enums import AccessPermission

from medexam.errors import DatasetError


@pytest.fixture
def refuse(build, tmp_path):
    def call(said, *args, **fields):
        with pytest.raises(DatasetError, match=re.escape(said)) as raised:
            build(*args, **fields)
        assert "\n" not in str(raised.value)
        assert not (tmp_path / "built").exists()

    return call


def test_a_scan_says_so_and_names_ocr(refuse, questions, tmp_path, png) -> None:
    pdf = FPDF(unit="pt", format="A4")
    (tmp_path / "page.png").write_bytes(png)
    for _ in range(3):
        pdf.add_page()
        pdf.image(str(tmp_path / "page.png"), 0, 0, 595, 842)
    pdf.output(str(tmp_path / "scan.pdf"))
    refuse("it is a scan", tmp_path / "scan.pdf", questions)
    refuse("ocrmypdf", tmp_path / "scan.pdf", questions)


def test_an_encrypted_booklet(refuse, questions, press, tmp_path) -> None:
    asked = press()
    asked.pdf.set_encryption(owner_password="owner", user_password="user", permissions=AccessPermission.none())
    for question in questions:
        asked.question(question)
    refuse("is encrypted: decrypt it", asked.save(tmp_path / "locked.pdf"), questions)


def test_a_truncated_booklet(refuse, print_booklet, questions) -> None:
    path = print_booklet(questions)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refuse("is truncated", path, questions)


def test_what_is_no_booklet(refuse, questions, press, tmp_path) -> None:
    (tmp_path / "page.pdf").write_text("<html>")
    refuse("is not a PDF", tmp_path / "page.pdf", questions)
    refuse("cannot be read (No such file or directory)", tmp_path / "none.pdf", questions)
    prose = press()
    for _ in range(40):
        prose.free("Una línea de prosa sin pregunta alguna.")
    refuse("no question was found", prose.save(tmp_path / "prose.pdf"), questions)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({15: 1, 16: 2}, "has 16 rows, the booklet 14 questions; it answers questions 15 and 16"),
        ({15: 1, 16: 2}, "differ first at question 15: the key answers it, the booklet ends after question 14 on page"),
        ({14: 5}, "differ first at question 14: the key says option 5, a question has 4 options at most"),
    ],
)
def test_a_key_of_another_exam(refuse, print_booklet, questions, answer_all, change, said) -> None:
    refuse(said, print_booklet(questions), questions, answers=answer_all(questions) | change)


def test_a_key_that_lacks_questions(refuse, print_booklet, questions, answer_all) -> None:
    answers = answer_all(questions)
    del answers[5], answers[6]
    refuse("has no row for questions 5 and 6", print_booklet(questions), questions, answers=answers)
    refuse("first at question 5: the booklet asks it on page 2", print_booklet(questions), questions, answers=answers)


def test_a_booklet_of_which_little_is_read(refuse, print_booklet, plain, answer_all) -> None:
    asked = plain(20)
    said = "first at question 9: the key answers it, the booklet goes on with question 12 after question 8 on page 2"
    refuse(said, print_booklet([*asked[:8], *asked[11:]]), asked, answers=answer_all(asked))


def test_a_key_of_another_version(refuse, print_booklet, questions, answer_all, write_key) -> None:
    key = write_key(answer_all(questions), "v1.csv", heading="pregunta,V1")
    refuse("is the key of version 1, and the booklet is version 0", print_booklet(questions), questions, keys=(key,))


def test_two_keys_that_disagree(refuse, print_booklet, questions, answer_all, write_key) -> None:
    first = write_key(answer_all(questions), "first.csv")
    second = write_key(answer_all(questions) | {4: None, 7: 2}, "second.csv")
    refuse(
        "give different answers to questions 4 and 7 (question 4: 1 and annulled)",
        print_booklet(questions),
        questions,
        keys=(first, second),
    )


def test_a_name_that_the_cover_contradicts(refuse, build, print_booklet, questions) -> None:
    booklet = print_booklet(questions)
    for name, said in (
        ("Cuaderno_2019_0_B", "says year 2019, the booklet's cover 2020"),
        ("Cuaderno_2020_0_M", "says discipline medicine, the booklet's cover biology"),
        ("Cuaderno_2020_1_B", "says version 1, the booklet's cover 0"),
        ("BIR-2020", "does not contain the year and the discipline"),
        ("../x", "cannot be a file's name"),
    ):
        refuse(said, booklet, questions, name=name)
    assert build(booklet, questions, name="Cuaderno_2019_0_B", year=2019).report.year == 2019


def test_missing_pictures(refuse, build, print_booklet, questions, tmp_path, png) -> None:
    questions[2].stem = ["Pregunta asociada a la imagen 7.", "¿Qué muestra?"]
    booklet = print_booklet(questions)
    refuse("question 3 of the booklet are linked", booklet, questions)
    refuse("is not a folder", booklet, questions, images=tmp_path / "images")
    images = tmp_path / "images"
    images.mkdir()
    (images / "img1.png").write_bytes(png)
    refuse("lacks picture 7 (question 3); it holds img1.png", booklet, questions, images=images)
    (images / "img7.png").write_bytes(png[:40])
    refuse("img7.png: is not a complete picture", booklet, questions, images=images)
    (images / "img7.jpg").write_bytes(png)
    refuse("both carry number 7", booklet, questions, images=images)
    bare = build(booklet, questions, without_images=True).report
    assert [(finding.number, finding.kind) for finding in bare.suspicious] == [(3, "picture_missing")]
    (images / "img7.png").unlink()
    assert build(booklet, questions, images=images, without_images=True).report.with_images == 1
    (images / "img7.jpg").unlink()
    assert build(booklet, questions, images=images, without_images=True).report.with_images == 0


def test_folders_that_are_not_ours(build, print_booklet, questions, tmp_path) -> None:
    booklet = print_booklet(questions)
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "thesis.docx").write_text("mine")
    with pytest.raises(DatasetError, match="holds files that are not built exams"):
        build(booklet, questions)
    assert [path.name for path in (tmp_path / "built").iterdir()] == ["thesis.docx"]


def test_a_folder_that_cannot_be_made(build, print_booklet, questions, tmp_path) -> None:
    (tmp_path / "built").write_text("a file")
    with pytest.raises(DatasetError, match="is a file: give --out a folder"):
        build(print_booklet(questions), questions)


def test_a_first_build_that_fails_leaves_no_folder(refuse, print_booklet, questions, monkeypatch) -> None:
    import pyarrow.parquet as pq

    def fail(*_args: object, **_fields: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    refuse("No space left on device", print_booklet(questions), questions)


def test_a_disk_that_fills_leaves_the_earlier_build(build, print_booklet, questions, monkeypatch) -> None:
    import pyarrow.parquet as pq

    booklet = print_booklet(questions)
    built = build(booklet, questions)
    before = {path: path.read_bytes() for path in built.review.parent.rglob("*") if path.is_file()}

    def fail(*_args: object, **_fields: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(DatasetError, match="No space left on device"):
        build(booklet, questions)
    assert {path: path.read_bytes() for path in built.review.parent.rglob("*") if path.is_file()} == before
    assert not list(built.review.parent.glob(".*.part"))
