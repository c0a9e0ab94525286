"""A data set in numbers: counted by hand, and HEAD-QA v1's published counts."""

import pytest
from scipy.stats import chi2

from medexam.datasets import load_exam_set
from medexam.experiments.report.dataset_statistics import compute_statistics, count_positions
from medexam.questions import AnswerKey, Discipline, Exam, Gold, Option, Question
from medexam.specs import DatasetSpec


def make(key, stem, options, *, year=2013, discipline="biology", image=None):
    return Question(
        key=key,
        exam=Exam(name=f"Cuaderno_{year}_{discipline}", year=year, discipline=Discipline(discipline)),
        number=1,
        language="en",
        stem=stem,
        options=tuple(Option(number=n, text=text) for n, text in options),
        image=image,
    )


def test_lengths_and_counts_are_those_of_the_texts() -> None:
    questions = [
        make("a", "one two", [(1, "x"), (2, "x y")]),
        make("b", "one two three four", [(1, "x"), (2, "x"), (3, "x")], year=2015, image="a.png"),
        make("c", "one", [(1, "x"), (2, "x")], discipline="nursing"),
    ]
    key = AnswerKey({"a": Gold(number=2), "b": Gold(number=1), "c": Gold(number=2)})

    found = compute_statistics(questions, key, name="headqa_v1", language="en")

    assert found.by_exam == {"biology": {2013: 1, 2015: 1}, "nursing": {2013: 1}}
    assert found.by_discipline["biology"].questions.words.mean == 3
    assert found.by_discipline["biology"].questions.words.deviation == pytest.approx(2**0.5)
    assert found.by_year[2013].questions.characters.most == 7
    assert found.by_year[2013].answers.words.mean == pytest.approx(5 / 4)
    assert found.by_discipline_and_year["biology"][2015].answers.words.n == 3
    assert found.by_option_count == {2: 2, 3: 1}
    assert (found.with_images, found.images_by_discipline) == (1, {"biology": 1})
    assert [group.right for group in found.positions] == [(0, 2), (1, 0, 0)]


def test_places_are_tested_against_uniform() -> None:
    golds = [5] * 30 + [6] * 20 + [7] * 10
    questions = [make(f"q{n}", "Which?", [(5, "a"), (6, "b"), (7, "c")]) for n in range(60)]
    key = AnswerKey({f"q{n}": Gold(number=gold) for n, gold in enumerate(golds)})

    found = count_positions(questions, key)

    assert found.right == (30, 20, 10)
    assert found.chi_square == pytest.approx((100 + 0 + 100) / 20)
    assert found.p == pytest.approx(chi2.sf(10, 2))


@pytest.mark.data
@pytest.mark.usefixtures("full_data")
def test_headqa_v1_is_counted_as_it_was_published() -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_v1", language="es"))

    found = compute_statistics(exams.questions, exams.golds, name=exams.name, language=exams.language)

    # HEAD-QA v1, table 1.
    whole = {name: sum(years.values()) for name, years in found.by_exam.items()}
    assert whole == {
        "biology": 1132,
        "chemistry": 1142,
        "medicine": 1149,
        "nursing": 1069,
        "pharmacology": 1139,
        "psychology": 1134,
    }
    assert (found.questions, found.exams, found.with_images) == (6765, 30, 165)
    assert found.by_option_count == {4: 4108, 5: 2657}
    assert [sum(group.right) for group in found.positions] == [4108, 2657]
    assert all(group.p < 0.001 for group in found.positions)
