"""From a printed booklet to a data set: what is in it, what is left out, and what the human is shown."""

import io
import re
import sys

import pytest
from PIL import Image

from medexam.datasets import check_exam_set, load_exam_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec


def kinds(findings) -> set[tuple[int, str]]:
    return {(finding.number, finding.kind) for finding in findings}


def test_annulled_questions_are_removed_and_listed(build, print_booklet, questions, answer_all, read_built) -> None:
    built = build(print_booklet(questions), questions, answers=answer_all(questions) | {3: None, 9: None})
    assert built.report.annulled == (3, 9)
    assert (built.report.printed, built.report.built) == (14, 12)
    rows = read_built(built)
    assert set(rows) == set(range(1, 15)) - {3, 9}
    assert rows[1] == {
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
        r"\| Cuaderno_2020_0_B \| biology \| 2020 \| Spanish \| \d{4}-\d\d-\d\d \| 12 \| 0 \| 0 \| 12 \| 0 \|", card
    )
    assert "| Cuaderno_2021_0_E | nursing | 2021 |" in card
    assert "Ministry of Health" in card
    assert "The fields are those of HEAD-QA v2." in card
    assert "--set dataset.name=headqa_v2 --set" in card
    assert sorted(path.name for path in (tmp_path / "built").iterdir()) == [
        "Cuaderno_2020_0_B.report.json",
        "Cuaderno_2020_0_B.review.html",
        "Cuaderno_2021_0_E.report.json",
        "Cuaderno_2021_0_E.review.html",
        "README.md",
        "es",
    ]


def test_the_file_loads_with_the_datasets_library(build, print_booklet, questions, png, tmp_path) -> None:
    import datasets

    questions[0].stem = ["Pregunta vinculada a la imagen nº 1.", "¿Qué muestra?"]
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "BIR-2020-img1.png").write_bytes(png)
    built = build(print_booklet(questions), questions, images=tmp_path / "images")
    loaded = datasets.Dataset.from_parquet(str(built.parquet), cache_dir=str(tmp_path / "cache"))
    assert isinstance(loaded.features["image"], datasets.Image)
    assert loaded[0]["image"].size == (40, 30)
    assert loaded[1]["image"] is None
    exam_set = load_exam_set(DatasetSpec(name="headqa_v2", language="es", path=built.parquet))
    assert exam_set.questions[0].image == "BIR-2020-img1.png"
    (checked,) = check_exam_set("headqa_v2", ["es"], built.parquet.parents[1]).languages
    assert (checked.with_images, checked.notes) == (1, ())


def test_a_drawing_is_flagged_cut_out_and_kept_from_the_set_where_it_is_an_option(
    build, print_booklet, questions, read_built
) -> None:
    questions[1].drawn, questions[6].drawn = 0, 2
    built = build(print_booklet(questions), questions)
    assert kinds(built.report.suspicious) == {(2, "drawing"), (7, "drawing")}
    assert kinds(built.report.left_out) == {(7, "not_whole")}
    assert "no text in options 2: they may be drawn" in built.report.left_out[0].detail
    picture = read_built(built)[2]["image"]
    assert picture["path"] == "Cuaderno_2020_0_B-2.png"
    with Image.open(io.BytesIO(picture["bytes"])) as cut:
        assert cut.convert("L").getextrema()[0] < 100


def test_a_formula_reader_gives_the_drawn_option_its_text(
    build, print_booklet, questions, read_built, tmp_path
) -> None:
    questions[6].drawn = 2
    tool = tmp_path / "tool.py"
    tool.write_text("import sys; from PIL import Image; Image.open(sys.argv[1]).load(); print('C1=CC=CC=C1')")
    built = build(print_booklet(questions), questions, formula_reader=f"{sys.executable} {tool}")
    assert built.report.left_out == built.report.suspicious == ()
    assert [answer["atext"] for answer in read_built(built)[7]["answers"]][:2] == [
        "La opción 1 de la pregunta 7.",
        "C1=CC=CC=C1",
    ]


def test_a_formula_reader_that_fails_leaves_the_drawing_flagged(build, print_booklet, questions) -> None:
    questions[1].drawn = 0
    built = build(print_booklet(questions), questions, formula_reader="false")
    assert kinds(built.report.suspicious) == {(2, "drawing")}
    with pytest.raises(DatasetError, match="--formula-reader 'no-such-tool' cannot be started"):
        build(print_booklet(questions), questions, formula_reader="no-such-tool")


def test_corrections_are_applied_and_reported(build, print_booklet, questions, read_built, tmp_path, png) -> None:
    questions[6].drawn = 2
    del questions[9]
    (tmp_path / "new.png").write_bytes(png)
    corrections = tmp_path / "corrections.yaml"
    corrections.write_text(
        "headqa-v2/2020/biology/7: {options: {2: Un anillo de benceno.}, reason: drawn in the booklet}\n"
        "Cuaderno_2020_0_B/10: {stem: '¿Qué falta?', options: {1: A., 2: B.}, answer: 2, reason: number unreadable}\n"
        "1: {stem: '¿Qué es?', image: new.png, reason: misprint}\n"
        "2: {leave_out: true, reason: contested}\n"
        "3: {options: {4: null}, reason: the fourth belongs to the header}\n",
        encoding="utf-8",
    )
    answers = dict.fromkeys(range(1, 15), 1)
    built = build(print_booklet(questions), questions, answers=answers, corrections=corrections)
    rows = read_built(built)
    assert rows[1]["qtext"] == "¿Qué es?"
    assert rows[1]["image"]["bytes"] == png
    assert 2 not in rows
    assert len(rows[3]["answers"]) == 3
    assert rows[7]["answers"][1]["atext"] == "Un anillo de benceno."
    assert rows[10] == rows[10] | {"qtext": "¿Qué falta?", "ra": 2}
    report = built.report
    assert [(one.number, one.changes) for one in report.corrections] == [
        (1, ("stem", "image")),
        (2, ("leave_out",)),
        (3, ("options",)),
        (7, ("options",)),
        (10, ("stem", "options", "answer")),
    ]
    assert kinds(report.left_out) == {(2, "left_out_by_hand")}
    assert report.missing == ()
    assert not report.suspicious


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1: {stem: A}", "1: reason: field required"),
        ("1: {reason: why}", "1: changes nothing"),
        ("1: {reason: why, stems: A}", "1: stems: extra inputs are not permitted"),
        ("headqa-v2/2019/biology/1: {reason: why, stem: A}", "is no question of Cuaderno_2020_0_B"),
        ("99: {reason: why, stem: A}", "question 99 was not read from the booklet"),
        ("{1: {reason: why, stem: A}, headqa-v2/2020/biology/1: {reason: why, stem: B}}", "corrects question 1 twice"),
        ("1: {reason: why, image: none.png}", "none.png cannot be read"),
        ("- 1", "needs an entry for each question"),
        ("1: {", "line 1: not YAML"),
    ],
)
def test_wrong_corrections_are_named(build, print_booklet, questions, tmp_path, text, said) -> None:
    corrections = tmp_path / "corrections.yaml"
    corrections.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=re.escape(said)):
        build(print_booklet(questions), questions, corrections=corrections)
    assert not (tmp_path / "built").exists()


def test_odd_questions_are_flagged_with_their_page(build, print_booklet, questions) -> None:
    questions[0].options[1] = ["muy larga " * 4] * 12
    questions[1].options.pop()
    questions[3].stem = ["¿Qué se observa en la figura siguiente", "de la membrana?"]
    questions[4].options[3] = ["Fin. 6. La sexta pregunta quedó unida:"]
    built = build(print_booklet(questions), questions)
    assert kinds(built.report.suspicious) == {
        (1, "long_option"),
        (2, "missing_option"),
        (4, "picture_missing"),
        (5, "two_questions_in_one"),
    }
    assert {finding.page for finding in built.report.suspicious} == {2}
    assert built.report.suspicious[0].key == "headqa-v2/2020/biology/1"
    assert built.report.built == 14


def test_the_review_page_shows_the_booklet_beside_the_text(build, print_booklet, questions) -> None:
    questions[1].options.pop()
    questions[2].stem = ["¿Qué pasa si x<script> & y?", "Sigue:"]
    page = build(print_booklet(questions), questions).review.read_text(encoding="utf-8")
    assert page.index("To look at (1)") < page.index("The others (13)")
    assert "missing option: has options 1, 2, 3, most questions have 4" in page
    assert page.count("data:image/png;base64,") >= 14
    assert "x&lt;script&gt; &amp; y" in page
    assert "x<script>" not in page
    assert "http" not in page
