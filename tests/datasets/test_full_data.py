"""The full HEAD-QA v1 as released: its published counts, splits and quirks."""

from collections import Counter
from pathlib import Path

import pytest

from data_folders import FULL_DATA
from medexam.datasets import check_exam_set, load_exam_set
from medexam.questions import Discipline
from medexam.specs import DatasetSpec
from table_cases import read_cases, read_table

pytestmark = pytest.mark.data
PUBLISHED = {case.id: sum(case.values[0]["splits"]) for case in read_cases("headqa_v1_in_numbers")}
"""Questions by discipline."""


def _load(**spec):
    return load_exam_set(DatasetSpec(name="headqa_v1", **spec)).questions


@pytest.fixture(scope="module")
def whole():
    """`whole["en"]`: all questions of a language, read once."""
    if not FULL_DATA:
        pytest.skip("MEDEXAM_DATA does not name a folder with the full data sets")
    path = Path(FULL_DATA) / "headqa_v1"
    return {
        language: load_exam_set(DatasetSpec(name="headqa_v1", language=language, path=path))
        for language in ("en", "es")
    }


def test_the_published_counts(whole) -> None:
    for exams in whole.values():
        questions = exams.questions
        assert len({question.exam.name for question in questions}) == 30
        assert Counter(len(question.options) for question in questions) == {4: 4108, 5: 2657}
        assert sum(question.image is not None for question in questions) == 165
        assert Counter(question.exam.discipline for question in questions) == PUBLISHED


def test_languages_share_keys_and_golds(whole) -> None:
    english, spanish = whole["en"], whole["es"]
    assert [q.key for q in english.questions] == [q.key for q in spanish.questions]
    assert dict(english.golds) == dict(spanish.golds)
    assert Counter(gold.number for gold in english.golds.values()) == {1: 1525, 2: 1656, 3: 1674, 4: 1492, 5: 418}


@pytest.mark.parametrize(
    ("spec", "n"),
    [
        ({"split": "train"}, 2657),
        ({"split": "dev"}, 1366),
        ({"split": "test"}, 2742),
        ({"option_counts": (5,)}, 2657),
        ({"images": "with"}, 165),
        ({"images": "without"}, 6600),
    ],
)
def test_selections(full_data, spec, n) -> None:
    assert len(_load(**spec)) == n


def test_a_limit_is_spread_evenly(full_data) -> None:
    questions = _load(limit=600, seed=3)
    assert Counter(q.exam.discipline for q in questions) == dict.fromkeys(Discipline, 100)
    assert set(Counter((q.exam.discipline, q.exam.year) for q in questions).values()) == {20}


def test_the_bundled_sample_is_part_of_it_word_for_word(whole) -> None:
    for language, exams in whole.items():
        found = {question.key: question for question in exams.questions}
        sample = load_exam_set(DatasetSpec.model_validate({"language": language})).questions
        assert all(found[question.key] == question for question in sample)


@pytest.mark.nightly
@pytest.mark.parametrize(*read_table("full_data_checks"))
def test_a_check_passes_and_the_known_quirks_are_notes(full_data, language, notes) -> None:
    report = check_exam_set("headqa_v1", [language])
    assert report.passed
    (checked,) = report.languages
    assert (checked.exams, checked.questions, checked.with_images) == (30, 6765, 165)
    assert checked.by_discipline["nursing"] == {2013: 181, 2014: 203, 2015: 230, 2016: 223, 2017: 232}
    assert Counter(anomaly.kind for anomaly in checked.notes) == notes
    assert len(checked.corrections) == {"en": 45, "es": 48}[language]
    assert checked.errors == ()
