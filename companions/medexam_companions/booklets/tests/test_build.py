"""`medexam data build`: what is in the data set, what is left out, what a human is shown, and what is refused."""

import io
import re

import pytest
from fpdf import FPDF
from fpdf.enums import AccessPermission
from PIL import Image

from medexam.datasets import check_exam_set, load_exam_set
from medexam.specs import DatasetSpec


def test_annulled_questions_are_removed_and_listed(build, print_booklet, questions, answer_all) -> None:
    built = build(print_booklet(questions), questions, answers=answer_all(questions) | {3: None, 9: None})
    assert built.report["annulled"] == [3, 9]
    assert (built.report["announced"], built.report["printed"], built.report["built"]) == (14, 14, 12)
    assert built.report["headers"] == ["- # -"]
    assert set(built.rows) == set(range(1, 15)) - {3, 9}
    assert built.rows[1] == {
        "name": "Cuaderno_2020_0_B",
        "year": 2020,
        "category": "biology",
        "qid": 1,
        "qtext": "La pregunta de número 1 trata de las proteínas a de la membrana:",
        "ra": 2,
        "image": None,
        "answers": [{"aid": number, "atext": f"La opción {number} de la pregunta 1."} for number in range(1, 5)],
    }


def test_several_exams_lie_in_one_folder_and_a_rebuild_replaces_its_own(build, print_booklet, plain, tmp_path) -> None:
    biology, nursing = plain(12), plain(10, options=5)
    build(print_booklet(biology), biology)
    build(print_booklet(nursing, discipline="ENFERMERÍA", year=2021), nursing, name="Cuaderno_2021_0_E")
    build(print_booklet(biology), biology)
    report = check_exam_set("headqa_v2", path=tmp_path / "built")
    assert report.passed
    assert report.languages[0].by_discipline == {"biology": {2020: 12}, "nursing": {2021: 10}}
    card = (tmp_path / "built" / "README.md").read_text(encoding="utf-8")
    assert re.search(
        r"\| Cuaderno_2020_0_B \| biology \| 2020 \| es \| \d{4}-\d\d-\d\d \| 12 \| 0 \| 0 \| 12 \| 0 \|", card
    )
    assert "| Cuaderno_2021_0_E | nursing | 2021 |" in card


PICTURES = {
    1: ("Pregunta vinculada a la imagen nº1 Hombre de 40 años", 1),
    2: ("Pregunta vinculada a la imagen n.º 12. Mujer de 31 años", 12),
    3: ("Pregunta vinculada a la imagen n° 3", 3),
    4: ("Pregunta vinculada a la imagen núm. 7", 7),
    5: ("PREGUNTA ASOCIADA A LA IMAGEN 25. Niño de 12 años", 25),
    6: ("Pregunta asociada a la imagen número 4:", 4),
    7: ("Preguntas relacionadas con la imagen 9", 9),
    8: ("Pregunta vinculada a las imágenes nº 5 y nº 6. Varón", 5),
    9: ("¿Cuál es el diagnóstico (ver imagen 8)?", 8),
    10: ("Hombre de 40 años con dolor", None),
    11: ("El trastorno de la imagen corporal en 3 pacientes", None),
    12: ("Lo que se muestra en la imagen adjunta. Dolor", None),
    13: ("¿Qué puede observarse en la figura?", None),
    14: ("¿Cuáles son técnicas de imagen?", None),
}
"""Question -> its stem, in the words of ten years of exams, and the number of the picture that it is linked to."""


def test_pictures_go_to_the_questions_that_are_linked_to_them(build, print_booklet, questions, png, tmp_path) -> None:
    import datasets

    (tmp_path / "images").mkdir()
    for question in questions:
        stem, picture = PICTURES[question.number]
        words = stem.split()
        question.stem = [" ".join(words[:5]), " ".join(words[5:])] if len(words) > 5 else [stem]
        if picture:
            (tmp_path / "images" / f"BIR-2020-img{picture}.png").write_bytes(png)
    built = build(print_booklet(questions), questions, images=tmp_path / "images")
    linked = {number: row["image"] and row["image"]["path"] for number, row in built.rows.items()}
    assert linked == {number: picture and f"BIR-2020-img{picture}.png" for number, (_, picture) in PICTURES.items()}
    assert built.found("suspicious") == {(8, "several_pictures"), (12, "picture_missing"), (13, "picture_missing")}
    loaded = datasets.Dataset.from_parquet(str(built.parquet), cache_dir=str(tmp_path / "cache"))
    assert isinstance(loaded.features["image"], datasets.Image)
    assert loaded[0]["image"].size == (40, 30)
    exam_set = load_exam_set(DatasetSpec(name="headqa_v2", language="es", path=built.parquet))
    assert exam_set.questions[0].image == "BIR-2020-img1.png"
    (checked,) = check_exam_set("headqa_v2", ["es"], built.folder).languages
    assert (checked.with_images, checked.notes) == (9, ())


def test_missing_pictures(refuse, build, print_booklet, questions, tmp_path, png) -> None:
    questions[2].stem = ["Pregunta asociada a la imagen 7.", "¿Qué muestra?"]
    booklet = print_booklet(questions)
    refuse("question 3 of the booklet are linked", booklet, questions)
    images = tmp_path / "images"
    refuse("is not a folder", booklet, questions, images=images)
    images.mkdir()
    (images / "img1.png").write_bytes(png)
    refuse("lacks picture 7 (question 3); it holds img1.png", booklet, questions, images=images)
    (images / "img7.png").write_bytes(png[:40])
    refuse("img7.png: is not a complete picture", booklet, questions, images=images)
    (images / "img7.jpg").write_bytes(png)
    refuse("both carry number 7", booklet, questions, images=images)
    bare = build(booklet, questions, without_images=True)
    assert (bare.found("suspicious"), bare.report["with_images"]) == ({(3, "picture_missing")}, 0)


def test_a_drawing_is_flagged_cut_out_and_kept_from_the_set_where_it_is_an_option(
    build, print_booklet, questions
) -> None:
    questions[1].drawn, questions[6].drawn = 0, 2
    built = build(print_booklet(questions), questions)
    assert built.found("suspicious") == {(2, "drawing"), (7, "drawing")}
    assert built.found("left_out") == {(7, "not_whole")}
    assert "no text in options 2: they may be drawn" in built.report["left_out"][0]["detail"]
    picture = built.rows[2]["image"]
    assert picture["path"] == "Cuaderno_2020_0_B-2.png"
    with Image.open(io.BytesIO(picture["bytes"])) as cut:
        assert cut.convert("L").getextrema()[0] < 100


def test_corrections_are_applied_and_reported(build, print_booklet, questions, tmp_path, png) -> None:
    questions[6].drawn = 2
    del questions[9]
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "new.png").write_bytes(png)
    corrections = tmp_path / "corrections.yaml"
    corrections.write_text(
        "headqa-v2/2020/biology/7: {options: {2: Un anillo de benceno.}, reason: drawn in the booklet}\n"
        "Cuaderno_2020_0_B/10: {stem: '¿Qué falta?', options: {1: A., 2: B.}, answer: 2, reason: number unreadable}\n"
        "1: {stem: '¿Qué es?', image: pictures/new.png, reason: misprint}\n"
        "2: {leave_out: true, reason: contested}\n"
        "3: {options: {4: null}, reason: the fourth belongs to the header}\n",
        encoding="utf-8",
    )
    built = build(print_booklet(questions), questions, answers=dict.fromkeys(range(1, 15), 1), corrections=corrections)
    rows = built.rows
    assert (rows[1]["qtext"], rows[1]["image"]["bytes"]) == ("¿Qué es?", png)
    assert 2 not in rows
    assert len(rows[3]["answers"]) == 3
    assert rows[7]["answers"][1]["atext"] == "Un anillo de benceno."
    assert rows[10] == rows[10] | {"qtext": "¿Qué falta?", "ra": 2}
    assert {one["number"]: one["changes"] for one in built.report["corrections"]} == {
        1: ["stem", "image"],
        2: ["leave_out"],
        3: ["options"],
        7: ["options"],
        10: ["stem", "options", "answer"],
    }
    assert built.found("left_out") == {(2, "left_out_by_hand")}
    assert built.report["missing"] == built.report["suspicious"] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1: {stem: A}", "1: reason: is missing"),
        ("1: {reason: why}", "1: changes nothing"),
        ("headqa-v2/2019/biology/1: {reason: why, stem: A}", "is no question of Cuaderno_2020_0_B"),
        ("99: {reason: why, stem: A}", "question 99 was not read from the booklet"),
        ("{1: {reason: why, stem: A}, headqa-v2/2020/biology/1: {reason: why, stem: B}}", "corrects question 1 twice"),
        ("1: {reason: why, image: none.png}", "none.png cannot be read"),
        ("- 1", "needs an entry for each question"),
    ],
)
def test_wrong_corrections_are_named(refuse, print_booklet, questions, tmp_path, text, said) -> None:
    corrections = tmp_path / "corrections.yaml"
    corrections.write_text(text, encoding="utf-8")
    refuse(said, print_booklet(questions), questions, corrections=corrections)


def test_odd_questions_are_flagged_and_shown_beside_the_booklet(build, print_booklet, questions, answer_all) -> None:
    questions[0].options[1] = ["muy larga " * 4] * 12
    questions[1].options.pop()
    questions[2].stem = ["¿Qué pasa si x<script> & y?", "Sigue:"]
    questions[4].options[3] = ["Fin. 6. La sexta pregunta quedó unida:"]
    # The official answer of the second question is the option that is missing.
    built = build(print_booklet(questions), questions, answers=answer_all(questions) | {2: 4})
    assert built.found("suspicious") == {(1, "long_option"), (2, "missing_option"), (5, "two_questions_in_one")}
    assert {finding["page"] for finding in built.report["suspicious"]} == {2}
    assert built.report["suspicious"][0]["key"] == "headqa-v2/2020/biology/1"
    assert (built.report["built"], built.found("left_out")) == (13, {(2, "not_whole")})
    page = built.review.read_text(encoding="utf-8")
    assert page.index("To look at (3)") < page.index("The others (11)")
    assert page.count("data:image/png;base64,") >= 14
    assert "x&lt;script&gt; &amp; y" in page
    assert not re.search("x<script>|http", page)


def test_what_is_no_booklet(refuse, print_booklet, questions, press, tmp_path, png) -> None:
    pdf = FPDF(unit="pt", format="A4")
    (tmp_path / "page.png").write_bytes(png)
    for _ in range(3):
        pdf.add_page()
        pdf.image(str(tmp_path / "page.png"), 0, 0, 595, 842)
    pdf.output(str(tmp_path / "scan.pdf"))
    refuse("it is a scan", tmp_path / "scan.pdf", questions)
    asked = press()
    asked.pdf.set_encryption(owner_password="owner", user_password="user", permissions=AccessPermission.none())
    for question in questions:
        asked.question(question)
    refuse("is encrypted: decrypt it", asked.save(tmp_path / "locked.pdf"), questions)
    path = print_booklet(questions)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refuse("is truncated", path, questions)
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
        (
            {15: 1, 16: 2},
            "16 rows, the booklet 14 questions; it answers questions 15 and 16, which the booklet does not ask",
        ),
        ({14: 5}, "gives question 14 an option over 4, the most that a question has"),
        ({5: ..., 6: ...}, "has no row for questions 5 and 6"),
    ],
)
def test_a_key_of_another_exam(refuse, print_booklet, questions, answer_all, change, said) -> None:
    answers = {number: answer for number, answer in (answer_all(questions) | change).items() if answer is not ...}
    refuse(said, print_booklet(questions), questions, answers=answers)


def test_a_booklet_of_which_little_is_read(refuse, print_booklet, plain, answer_all) -> None:
    asked = plain(20)
    said = "answers questions 9, 10 and 11, not found in the booklet"
    refuse(said, print_booklet([*asked[:8], *asked[11:]]), asked, answers=answer_all(asked))


def test_a_key_of_another_version(refuse, print_booklet, questions, answer_all, write_key) -> None:
    booklet = print_booklet(questions)
    other = write_key(answer_all(questions), "v1.csv", heading="pregunta,V1")
    refuse("is the key of version 1, and the booklet is version 0", booklet, questions, key=other)


def test_a_name_that_the_cover_contradicts(refuse, print_booklet, questions) -> None:
    booklet = print_booklet(questions)
    for name, said in (
        ("Cuaderno_2019_0_B", "says year 2019, the booklet's cover 2020"),
        ("Cuaderno_2020_0_M", "says discipline medicine, the booklet's cover biology"),
        ("Cuaderno_2020_1_B", "says version 1, the booklet's cover 0"),
        ("BIR-2020", "is not of the form Cuaderno_YEAR_VERSION_LETTER (B biology, E nursing"),
        ("../x", "is not of the form"),
    ):
        refuse(said, booklet, questions, name=name)


def test_a_folder_of_other_files_is_left_alone(run_build, print_booklet, questions, write_key, tmp_path) -> None:
    key = write_key({question.number: 1 for question in questions})
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "thesis.docx").write_text("mine")
    code, _, err = run_build(print_booklet(questions), key)
    assert (code, "holds files that are not built exams" in err) == (2, True)
    assert [path.name for path in (tmp_path / "built").iterdir()] == ["thesis.docx"]


def test_a_disk_that_fills_leaves_the_earlier_build(
    build, run_build, print_booklet, questions, monkeypatch, tmp_path
) -> None:
    import pyarrow.parquet as pq

    booklet = print_booklet(questions)
    built = build(booklet, questions)
    before = {path: path.read_bytes() for path in built.folder.rglob("*") if path.is_file()}

    def fail(*_args: object, **_fields: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    code, _, err = run_build(booklet, tmp_path / "key.csv")
    assert (code, "No space left on device" in err) == (2, True)
    assert {path: path.read_bytes() for path in built.folder.rglob("*") if path.is_file()} == before
