"""`medexam data stats`: a data set in numbers, counted by hand, and HEAD-QA v1's published counts."""

import json

import pytest
from scipy.stats import chi2

from table_cases import read_cases

PAPER = [case.values[0] for case in read_cases("headqa_v1_in_numbers")]
"""By discipline: questions of train, dev and test."""


@pytest.fixture
def stats(medexam):
    """`stats("headqa_v1", ...)`: what is counted."""
    return lambda *words: json.loads(medexam("data", "stats", *words, "--json")[1])


def _options(*texts: str, first: int = 1) -> list[dict]:
    return [{"aid": number, "atext": text} for number, text in enumerate(texts, start=first)]


def test_lengths_and_counts_are_those_of_the_texts(stats, write_exam, write_json) -> None:
    biology = [
        {"qtext": "one two", "ra": "2", "answers": _options("x", "x y")},
        {"qtext": "one two three four", "ra": "1", "answers": _options("x", "x", "x"), "image": "a.png"},
    ]
    documents = [
        json.loads(write_exam(*entries, category=category, year=year).read_text())
        for entries, category, year in (
            ([biology[0]], "biology", "2013"),
            ([biology[1]], "biology", "2015"),
            ([{"qtext": "one", "ra": "2", "answers": _options("x", "x")}], "nursery", "2013"),
        )
    ]
    exams = {f"e{n}": exam for n, document in enumerate(documents) for exam in document["exams"].values()}
    found = stats("headqa_v1", "--path", write_json(documents[0] | {"exams": exams}))
    assert found["by_exam"] == {"biology": {"2013": 1, "2015": 1}, "nursing": {"2013": 1}}
    words = found["by_discipline"]["biology"]["questions"]["words"]
    assert (words["n"], words["mean"], words["deviation"]) == (2, 3, pytest.approx(2**0.5))
    assert found["by_year"]["2013"]["questions"]["characters"]["most"] == 7
    assert found["by_year"]["2013"]["answers"]["words"]["mean"] == pytest.approx(5 / 4)
    assert found["by_year"]["2015"]["answers"]["words"]["n"] == 3
    assert [(group["options"], group["n"]) for group in found["positions"]] == [(2, 2), (3, 1)]
    assert (found["with_images"], found["images_by_discipline"]) == (1, {"biology": 1})
    assert [group["right"] for group in found["positions"]] == [[0, 2], [1, 0, 0]]


def test_places_are_tested_against_uniform(stats, write_exam) -> None:
    golds = [5] * 30 + [6] * 20 + [7] * 10
    path = write_exam(*({"ra": str(gold), "answers": _options("a", "b", "c", first=5)} for gold in golds))
    (found,) = stats("headqa_v1", "--path", path)["positions"]
    assert found["right"] == [30, 20, 10]
    assert found["chi_square"] == pytest.approx((100 + 0 + 100) / 20)
    assert found["p"] == pytest.approx(chi2.sf(10, 2))


@pytest.mark.data
@pytest.mark.nightly
@pytest.mark.usefixtures("full_data")
def test_headqa_v1_is_counted_as_it_was_published(stats) -> None:
    found = stats("headqa_v1", "--language", "es", "--as-published")
    assert {name: [*counts.values()] for name, counts in found["by_split"].items()} == {
        each["name"]: each["splits"] for each in PAPER
    }
    assert (found["questions"], found["exams"], found["with_images"]) == (6765, 30, 165)
    assert [sum(group["right"]) for group in found["positions"]] == [4108, 2657]
    assert all(group["p"] < 0.001 for group in found["positions"])
