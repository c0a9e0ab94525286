"""`dataset.only`: keys of the questions to ask, from a file."""

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec


def test_only_the_questions_of_the_file_are_asked(tmp_path) -> None:
    every = [question.key for question in load_exam_set(DatasetSpec()).questions]
    path = tmp_path / "keys.txt"
    path.write_text(f"{every[7]}\n\n {every[2]} \n")
    spec = DatasetSpec(only=path)
    assert [question.key for question in load_exam_set(spec).questions] == [every[2], every[7]]
    assert spec.whole.only is None
    assert "only" not in DatasetSpec().model_dump()
    with pytest.raises(DatasetError, match="only="):
        load_exam_set(DatasetSpec(only=path, years=(1900,)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("headqa-v1/1900/biology/1", "which is not in the data set"),
        ("\n", "names no question"),
        ('{"subset": 3}', "cannot read keys"),
    ],
)
def test_a_file_without_keys_is_refused(tmp_path, text, said) -> None:
    (tmp_path / "keys.txt").write_text(text)
    with pytest.raises(DatasetError, match=said):
        load_exam_set(DatasetSpec(only=tmp_path / "keys.txt"))
