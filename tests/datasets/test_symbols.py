"""Private-use characters of HEAD-QA, read as what they stand for, or left as published."""

import json
import unicodedata
from itertools import chain

import pytest

from medexam.datasets import load_exam_set
from medexam.datasets.symbols import SIGNS
from medexam.errors import SpecError
from medexam.specs import DatasetSpec, validate

KEY = "headqa-v1/2013/nursing/152"


def _load(**settings):
    return load_exam_set(DatasetSpec(name="headqa_sample", **settings))


def _texts(exams) -> list[str]:
    return list(chain.from_iterable((one.stem, *(o.text for o in one.options)) for one in exams.questions))


def test_every_sign_is_that_of_its_font() -> None:
    names = {code - 0xF000: unicodedata.name(sign) for code, sign in ((ord(c), s) for c, s in SIGNS.items())}
    greek = {"a": "ALPHA", "b": "BETA", "g": "GAMMA", "m": "MU", "z": "ZETA", "q": "THETA", "w": "OMEGA", "l": "LAMDA"}
    for latin, name in greek.items():
        assert names[ord(latin)] == f"GREEK SMALL LETTER {name}"
        assert names[ord(latin.upper())] == f"GREEK CAPITAL LETTER {name}"
    assert (names[0xB0], names[0xB1], names[0xE0]) == ("DEGREE SIGN", "PLUS-MINUS SIGN", "RIGHTWARDS ARROW")
    assert not any(unicodedata.category(sign) == "Co" for sign in SIGNS.values())


@pytest.mark.parametrize(("language", "words"), [("en", "between 2 and 8°C."), ("es", "entre los 2 y los 8°C.")])
def test_the_sample_is_read_with_its_sign(language, words) -> None:
    exams, published = _load(language=language), _load(language=language, as_published=True)
    question = next(one for one in exams.questions if one.key == KEY)
    assert question.options[2].text.endswith(words)
    assert not any(unicodedata.category(char) == "Co" for text in _texts(exams) for char in text)
    changed = [a.key for a, b in zip(exams.questions, published.questions, strict=True) if a != b]
    assert changed == list(exams.corrected) == [KEY]
    assert (exams.published_fingerprint, published.published_fingerprint) == (published.fingerprint, None)
    assert exams.fingerprint != published.fingerprint
    assert exams.golds_fingerprint == published.golds_fingerprint


@pytest.mark.parametrize(("language", "characters", "questions"), [("en", 45, 24), ("es", 48, 26)])
def test_all_of_the_full_data_are_read(full_data, language, characters, questions) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_v1", language=language))
    published = load_exam_set(DatasetSpec(name="headqa_v1", language=language, as_published=True))
    before, after = ("".join(_texts(one)) for one in (published, exams))
    assert sum(unicodedata.category(char) == "Co" for char in before) == characters
    assert not any(unicodedata.category(char) == "Co" for char in after)
    assert len(exams.corrected) == questions
    assert len(before) == len(after)


def test_the_field_belongs_to_headqa() -> None:
    with pytest.raises(SpecError, match=r"as_published belongs to headqa_sample, .*, headqa_sample_open, .*, not to"):
        validate(DatasetSpec, {"name": "cliniqlink", "as_published": True})


def test_a_run_says_which_text_it_asked(tmp_path) -> None:
    import medexam

    spec = {"name": "signs", "dataset": {"name": "headqa_sample", "limit": 12}, "program": "longest"}
    (read,) = medexam.run(spec, runs_dir=tmp_path)
    (left,) = medexam.run({**spec, "dataset": {**spec["dataset"], "as_published": True}}, runs_dir=tmp_path)
    records = [json.loads((run.folder / "spec.json").read_text()) for run in (read, left)]
    assert [record["dataset_as_published"] for record in records] == [records[1]["dataset_fingerprint"], None]
    assert [record["dataset_corrected"] for record in records] == [[KEY], []]
    reports = [(run.folder / "report.md").read_text() for run in (read, left)]
    assert ["data set SHA-256 as published" in report for report in reports] == [True, False]
