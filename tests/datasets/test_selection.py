"""Filters, official splits, and the even sampling of a limit."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medexam.datasets import load_exam_set, make_exam_set
from medexam.errors import DatasetError
from medexam.questions import Discipline, Exam, Option, Question
from medexam.specs import DatasetSpec
from table_cases import read_table

SAMPLE = load_exam_set(DatasetSpec()).questions


def _select(questions, spec: DatasetSpec) -> tuple[Question, ...]:
    return make_exam_set(spec, [(question, 1) for question in questions], source="x", version="x").questions


def _sample(questions, limit: int, seed: int) -> tuple[Question, ...]:
    return _select(questions, DatasetSpec(limit=limit, seed=seed))


def _question(discipline: Discipline, year: int, number: int) -> Question:
    exam, options = (
        Exam(name=f"{year}-{discipline}", year=year, discipline=discipline),
        (Option(1, "a"), Option(2, "b")),
    )
    key = f"test/{year}/{discipline}/{number}"
    return Question(key=key, exam=exam, number=number, language="en", stem="?", options=options)


@pytest.mark.parametrize(*read_table("selections"))
def test_selection_counts(spec, n) -> None:
    chosen = _select(SAMPLE, DatasetSpec.model_validate(spec))
    assert len(chosen) == n
    order = [question.key for question in SAMPLE]
    assert [question.key for question in chosen] == sorted((question.key for question in chosen), key=order.index)


@pytest.mark.parametrize(*read_table("empty_selections"))
def test_an_empty_selection_names_the_filters_and_the_choice(spec, words) -> None:
    with pytest.raises(DatasetError) as caught:
        _select(SAMPLE, DatasetSpec.model_validate(spec))
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in ["headqa_sample: no question matches", *words]), message


def test_exams_of_later_years_belong_to_no_split() -> None:
    questions = [_question(Discipline.MEDICINE, year, 1) for year in (2013, 2015, 2016, 2022)]
    splits = {split: _select(questions, DatasetSpec(split=split)) for split in ("train", "dev", "test")}
    assert {split: [q.exam.year for q in chosen] for split, chosen in splits.items()} == {
        "train": [2013],
        "dev": [2015],
        "test": [2016],
    }


def test_another_seed_chooses_other_questions() -> None:
    chosen = {tuple(q.key for q in _sample(SAMPLE, 30, seed)) for seed in range(5)}
    assert len(chosen) == 5


def test_what_is_chosen_depends_on_keys_and_not_on_order_or_language() -> None:
    spanish = load_exam_set(DatasetSpec(language="es", limit=37, seed=4)).questions
    english = _sample(tuple(reversed(SAMPLE)), 37, 4)
    assert {q.key for q in spanish} == {q.key for q in english}


def test_a_known_draw_stays() -> None:
    """Runs that were made with a limit ask the same questions after an upgrade."""
    assert [q.key for q in _sample(SAMPLE, 6, 0)] == [
        "headqa-v1/2013/nursing/152",
        "headqa-v1/2014/medicine/41",
        "headqa-v1/2014/chemistry/41",
        "headqa-v1/2015/biology/86",
        "headqa-v1/2016/psychology/233",
        "headqa-v1/2017/pharmacology/138",
    ]


exams = st.dictionaries(
    st.tuples(st.sampled_from(list(Discipline)), st.integers(2013, 2022)), st.integers(1, 6), min_size=1, max_size=12
)


@settings(deadline=None)
@given(sizes=exams, seed=st.integers(0, 9), limits=st.tuples(st.integers(1, 80), st.integers(1, 80)))
def test_a_limit_is_even_and_grows(sizes, seed, limits) -> None:
    questions = [_question(d, year, n) for (d, year), size in sizes.items() for n in range(1, size + 1)]
    small, large = (_sample(questions, limit, seed) for limit in sorted(limits))
    assert len(small) == min(min(limits), len(questions))
    assert {q.key for q in small} <= {q.key for q in large}
    assert list(small) == [q for q in questions if q in small]
    taken = Counter((q.exam.discipline, q.exam.year) for q in small)
    most = max(taken.values())
    assert all(taken[exam] >= min(most - 1, size) for exam, size in sizes.items())
