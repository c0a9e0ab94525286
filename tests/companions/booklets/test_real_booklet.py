"""The real exam booklet of biology 2020 against its key, and against forty questions that were typed by hand."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medexam.companions.booklets.building import BuildRequest, Built, build_exam
from medexam.datasets import check_exam_set, load_exam_set
from medexam.specs import DatasetSpec

FULL_DATA = os.environ.get("MEDEXAM_DATA")
BY_HAND = Path(__file__).with_name("bir_2020_by_hand.txt")
ANNULLED = (50, 55, 81, 92, 102, 117, 122, 128)
MOST_ERRORS = 0.002
"""Share of the characters."""
LONGEST_S = 20.0

pytestmark = pytest.mark.data


@dataclass(frozen=True)
class Timed:
    built: Built
    seconds: float
    """Of this process's work: how busy the machine is does not count."""


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Timed:
    if not FULL_DATA:
        pytest.skip("MEDEXAM_DATA does not name a folder with the real booklet")
    exams = Path(FULL_DATA) / "exams"
    booklet = exams / "Cuaderno_2020_BIOLOGIA_0_C.pdf"
    if not booklet.exists():
        pytest.skip(f"MEDEXAM_DATA has no {booklet}")
    request = BuildRequest(booklet, (exams / "Respuestas_2020_BIOLOGIA_0.csv",), "Cuaderno_2020_0_B")
    begun = time.process_time()
    return Timed(build_exam(request, tmp_path_factory.mktemp("real") / "built"), time.process_time() - begun)


@pytest.fixture
def built(timed: Timed) -> Built:
    return timed.built


def read_by_hand() -> dict[int, dict[int, str]]:
    """By question, the stem under 0 and the options under their numbers."""
    questions: dict[int, dict[int, str]] = {}
    number = 0
    for line in BY_HAND.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"^(\d+)\. (.+)$", line):
            number = int(match.group(1))
            questions[number] = {0: match.group(2)}
        elif match := re.match(r"^  (\d)\. (.+)$", line):
            questions[number][int(match.group(1))] = match.group(2)
    return questions


def count_edits(one: str, two: str) -> int:
    row = list(range(len(two) + 1))
    for place, letter in enumerate(one, start=1):
        before, row[0] = row[0], place
        for other, wanted in enumerate(two, start=1):
            before, row[other] = row[other], min(row[other] + 1, row[other - 1] + 1, before + (letter != wanted))
    return row[-1]


def test_every_answered_question_is_built_in_time(timed: Timed) -> None:
    report = timed.built.report
    assert timed.seconds < LONGEST_S
    assert (report.announced, report.printed, report.built) == (185, 185, 177)
    assert report.annulled == ANNULLED
    assert report.by_option_count == {4: 177}
    assert report.missing == ()
    assert report.left_out == report.suspicious == report.corrections == ()
    assert report.columns == 2
    assert (report.version, report.dated) == ("0", "2021-03-24")
    assert "- # -" in report.headers


def test_forty_questions_are_as_they_were_typed_by_hand(built: Built) -> None:
    rows = {row["qid"]: row for row in pq.read_table(built.parquet).to_pylist()}
    typed = read_by_hand()
    assert len(typed) == 40
    edits = letters = 0
    for number, texts in typed.items():
        read = {0: rows[number]["qtext"]} | {answer["aid"]: answer["atext"] for answer in rows[number]["answers"]}
        assert list(read) == list(texts), number
        for place, text in texts.items():
            edits += count_edits(text, read[place])
            letters += len(text)
    assert letters > 10_000
    assert edits / letters < MOST_ERRORS, f"{edits} of {letters} characters"


def test_the_data_set_is_sound_and_can_be_asked(built: Built) -> None:
    folder = built.parquet.parent.parent
    report = check_exam_set("headqa_v2", path=folder)
    assert report.passed
    assert [check.language for check in report.languages] == ["es"]
    assert report.languages[0].notes == ()
    exam_set = load_exam_set(DatasetSpec(name="headqa_v2", language="es", path=folder))
    assert len(exam_set.questions) == 177
    first = exam_set.questions[0]
    assert first.key == "headqa-v2/2020/biology/1"
    assert exam_set.golds[first.key].number == 1
    assert exam_set.left_out == ()


def test_the_word_that_a_line_breaks_at_its_own_hyphen_keeps_it(built: Built) -> None:
    assert {(end.number, end.text, end.kept) for end in built.report.hyphens} == {
        (10, "hipotálamo-hipofisario", True),
        (143, "disco-difusión", True),
        (156, "antibiótico-mecanismo", True),
    }
