"""Private-use characters of HEAD-QA, read as what they stand for, or left as published."""

import json
import unicodedata
from itertools import chain

import pytest

from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec

KEY = "headqa-v1/2013/nursing/152"
GREEK = {"a": "ALPHA", "b": "BETA", "g": "GAMMA", "m": "MU", "z": "ZETA", "q": "THETA", "w": "OMEGA", "l": "LAMDA"}
"""A letter's place in the font Symbol -> the sign there."""
SIGNS = {
    **{chr(0xF000 + ord(latin)): f"GREEK SMALL LETTER {name}" for latin, name in GREEK.items()},
    **{chr(0xF000 + ord(latin.upper())): f"GREEK CAPITAL LETTER {name}" for latin, name in GREEK.items()},
    "\uf0b0": "DEGREE SIGN",
    "\uf0b1": "PLUS-MINUS SIGN",
    "\uf0e0": "RIGHTWARDS ARROW",
}


def _load(**settings):
    return load_exam_set(DatasetSpec.model_validate({"name": "headqa_sample", **settings}))


def _texts(exams) -> list[str]:
    return list(chain.from_iterable((one.stem, *(o.text for o in one.options)) for one in exams.questions))


def test_every_sign_is_that_of_its_font(write_exam) -> None:
    path = write_exam({"qtext": "".join(SIGNS)})
    (question,) = _load(name="headqa_v1", path=path).questions
    assert [unicodedata.name(sign) for sign in question.stem] == [*SIGNS.values()]
    (published,) = _load(name="headqa_v1", path=path, as_published=True).questions
    assert published.stem == "".join(SIGNS)


@pytest.mark.parametrize(("language", "words"), [("en", "between 2 and 8°C."), ("es", "entre los 2 y los 8°C.")])
def test_the_sample_is_read_with_its_sign(language, words) -> None:
    exams, published = _load(language=language), _load(language=language, as_published=True)
    question = next(one for one in exams.questions if one.key == KEY)
    assert question.options[2].text.endswith(words)
    assert not any(unicodedata.category(char) == "Co" for text in _texts(exams) for char in text)
    changed = [a.key for a, b in zip(exams.questions, published.questions, strict=True) if a != b]
    assert changed == list(exams.corrected) == [KEY]
    assert exams.fingerprint != published.fingerprint
    assert exams.golds_fingerprint == published.golds_fingerprint


@pytest.mark.data
@pytest.mark.nightly
@pytest.mark.parametrize(("language", "characters", "questions"), [("en", 45, 24), ("es", 48, 26)])
def test_all_of_the_full_data_are_read(full_data, language, characters, questions) -> None:
    exams = _load(name="headqa_v1", language=language)
    published = _load(name="headqa_v1", language=language, as_published=True)
    before, after = ("".join(_texts(one)) for one in (published, exams))
    assert sum(unicodedata.category(char) == "Co" for char in before) == characters
    assert not any(unicodedata.category(char) == "Co" for char in after)
    assert len(exams.corrected) == questions
    assert len(before) == len(after)


def test_a_run_says_which_text_it_asked(medexam, tmp_path) -> None:
    (tmp_path / "spec.yaml").write_text("{name: signs, dataset: {name: headqa_sample, limit: 12}, program: longest}")
    records = []
    for published in (False, True):
        runs = tmp_path / f"runs-{published}"
        code, _, err = medexam(
            "run", "spec.yaml", "--runs-dir", runs, *(["--set", "dataset.as_published=true"] * published)
        )
        assert code == 0, err
        (record,) = runs.glob("*/spec.json")
        records.append(json.loads(record.read_text()))
    assert records[0]["dataset_fingerprint"] != records[1]["dataset_fingerprint"]
