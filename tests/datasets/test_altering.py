"""`dataset.alter`: a function of one's own, or of a package, changes what is asked."""

from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, MedExamError
from medexam.specs import DatasetSpec

LOUD = """
from dataclasses import replace
from medexam.datasets import Altered


def loud(rows, language, *, seed=2):
    shouted = tuple(replace(row, question=row.question.model_copy(update={"stem": row.question.stem.upper()}))
                    for row in rows[:: seed])
    return Altered(shouted, tuple(row.question.key for row in rows if row not in rows[:: seed]), "they are quiet")
"""


@pytest.fixture
def load(tmp_path):
    path = tmp_path / "mine.py"

    def load(source=LOUD, **settings):
        path.write_text(source)
        return load_exam_set(DatasetSpec.model_validate({"alter": {"how": f"{path}:loud", **settings}}))

    return load


def test_ones_own_function_alters(load) -> None:
    plain, found = load_exam_set(DatasetSpec()), load()
    assert [each.stem for each in found.questions] == [each.stem.upper() for each in plain.questions[::2]]
    assert len(found.left_out) == 60
    assert dict(found.golds) == {each.key: plain.golds[each.key] for each in found.questions}
    assert found.notes == ("60 of the data set's 120 questions cannot be altered and are left out: they are quiet",)
    assert len({found.fingerprint, plain.fingerprint, load(seed=3).fingerprint}) == 3
    assert load(LOUD + "# another version").files_digest != found.files_digest


def test_what_it_does_not_take_is_refused(load, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("id")
    with pytest.raises(MedExamError, match=r"dataset.alter: loud: got an unexpected keyword argument 'table'"):
        load(table=tmp_path / "table.csv")
    with pytest.raises(DatasetError, match="none of the selected questions can be altered by loud: select others"):
        load("from medexam.datasets import Altered\ndef loud(rows, language):\n    return Altered(())\n")
    with pytest.raises(ValueError, match=r"'loud' (names no code|is none of)"):
        DatasetSpec.model_validate({"alter": "loud"})
