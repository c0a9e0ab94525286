"""The full HEAD-QA v1 as released: its published counts, splits and quirks."""

import json
from collections import Counter

import pytest
from typer.testing import CliRunner

from medexam.cli.data.commands import app
from medexam.datasets import check_exam_set, load_exam_set, select_questions
from medexam.datasets.kept import reads_kept
from medexam.questions import Discipline
from medexam.specs import DatasetSpec

pytestmark = [pytest.mark.data, pytest.mark.usefixtures("full_data")]


@pytest.fixture(autouse=True, scope="module")
def _read_once():
    """The data are read once for all tests of the file."""
    with reads_kept():
        yield


def _load(language="en"):
    return load_exam_set(DatasetSpec(name="headqa_v1", language=language))


def test_a_check_of_both_languages_passes_with_the_published_counts() -> None:
    report = check_exam_set("headqa_v1")
    assert report.passed
    assert report.language_errors == report.language_notes == ()
    for checked in report.languages:
        assert (checked.exams, checked.questions, checked.with_images) == (30, 6765, 165)
        assert checked.by_option_count == {4: 4108, 5: 2657}
        assert {name: sum(years.values()) for name, years in checked.by_discipline.items()} == {
            "biology": 1132,
            "chemistry": 1142,
            "medicine": 1149,
            "nursing": 1069,
            "pharmacology": 1139,
            "psychology": 1134,
        }
        assert checked.by_discipline["nursing"] == {2013: 181, 2014: 203, 2015: 230, 2016: 223, 2017: 232}


@pytest.mark.parametrize(
    ("language", "notes"),
    [
        ("es", {"identical_options": 2, "repeated_question": 3, "repeated_stem": 46, "pictures_not_here": 1}),
        ("en", {"identical_options": 6, "repeated_question": 9, "repeated_stem": 58, "pictures_not_here": 1}),
    ],
)
def test_the_known_quirks_are_notes(language, notes) -> None:
    (checked,) = check_exam_set("headqa_v1", [language]).languages
    assert Counter(anomaly.kind for anomaly in checked.notes) == notes
    assert len(checked.corrections) == {"en": 45, "es": 48}[language]
    assert checked.errors == ()


@pytest.mark.parametrize(
    ("spec", "n"),
    [
        ({}, 6765),
        ({"split": "train"}, 2657),
        ({"split": "dev"}, 1366),
        ({"split": "test"}, 2742),
        ({"option_counts": (5,)}, 2657),
        ({"images": "with"}, 165),
        ({"images": "without"}, 6600),
        ({"disciplines": ("medicine",), "images": "with"}, 165),
        ({"limit": 200}, 200),
    ],
)
def test_selections(spec, n) -> None:
    assert len(select_questions(_load().questions, DatasetSpec(name="headqa_v1", **spec))) == n


def test_languages_share_keys_and_golds() -> None:
    english, spanish = _load(language="en"), _load(language="es")
    assert [q.key for q in english.questions] == [q.key for q in spanish.questions]
    assert dict(english.golds) == dict(spanish.golds)
    assert Counter(gold.number for gold in english.golds.values()) == {1: 1525, 2: 1656, 3: 1674, 4: 1492, 5: 418}


def test_a_limit_is_spread_evenly() -> None:
    questions = select_questions(_load().questions, DatasetSpec(name="headqa_v1", limit=600, seed=3))
    assert Counter(q.exam.discipline for q in questions) == dict.fromkeys(Discipline, 100)
    assert set(Counter((q.exam.discipline, q.exam.year) for q in questions).values()) == {20}


@pytest.mark.parametrize("language", ["en", "es"])
def test_the_bundled_sample_is_part_of_it_word_for_word(language) -> None:
    whole = {question.key: question for question in _load(language=language).questions}
    sample = load_exam_set(DatasetSpec(language=language))
    assert all(whole[question.key] == question for question in sample.questions)


def test_the_command_prints_the_published_counts() -> None:
    result = CliRunner().invoke(app, ["check", "headqa_v1", "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert [(c["exams"], c["questions"], c["with_images"]) for c in report["languages"]] == [(30, 6765, 165)] * 2
