"""The real exam booklet of biology 2020 against its key, and against forty questions that were typed by hand."""

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from medexam.cli import load_command

FULL_DATA = os.environ.get("MEDEXAM_DATA")
BY_HAND = Path(__file__).with_name("bir_2020_by_hand.txt")
NAME = "Cuaderno_2020_0_B"
MOST_ERRORS = 0.002
"""Share of the characters."""
LONGEST_S = 20.0

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built exam."""
    if not FULL_DATA:
        pytest.skip("MEDEXAM_DATA does not name a folder with the real booklet")
    exams, out = Path(FULL_DATA) / "exams", tmp_path_factory.mktemp("real") / "built"
    booklet = exams / "Cuaderno_2020_BIOLOGIA_0_C.pdf"
    if not booklet.exists():
        pytest.skip(f"MEDEXAM_DATA has no {booklet}")
    words = ["--booklet", booklet, "--key", exams / "Respuestas_2020_BIOLOGIA_0.csv", "--name", NAME, "--out", out]
    begun = time.process_time()
    load_command("data").main(["build", *map(str, words)], standalone_mode=False)
    # Of this process's work: how busy the machine is does not count.
    assert time.process_time() - begun < LONGEST_S
    return out


@pytest.fixture
def report(built: Path) -> dict[str, Any]:
    return json.loads((built / f"{NAME}.report.json").read_text(encoding="utf-8"))


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


def test_every_answered_question_is_built_in_time(report) -> None:
    assert (report["announced"], report["printed"], report["built"]) == (185, 185, 177)
    assert report["annulled"] == [50, 55, 81, 92, 102, 117, 122, 128]
    assert report["by_option_count"] == {"4": 177}
    assert report["missing"] == report["left_out"] == report["suspicious"] == report["corrections"] == []
    assert (report["columns"], report["version"], report["dated"]) == (2, "0", "2021-03-24")
    assert "- # -" in report["headers"]
    # A word that a line breaks at its own hyphen keeps it.
    assert {(end["number"], end["text"], end["kept"]) for end in report["hyphens"]} == {
        (10, "hipotálamo-hipofisario", True),
        (143, "disco-difusión", True),
        (156, "antibiótico-mecanismo", True),
    }


def test_forty_questions_are_as_they_were_typed_by_hand(built: Path) -> None:
    rows = {row["qid"]: row for row in pq.read_table(built / "es" / f"{NAME}.parquet").to_pylist()}
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
