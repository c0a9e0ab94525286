"""The compressed blocks of a page: what each question becomes, and that nothing is lost on the way."""

import pytest

from medexam.benchmarks import find_benchmark
from medexam.datasets import load_exam_set
from medexam.experiments.report.page import blocks
from medexam.experiments.report.page.blocks import build_blocks, pack_block
from medexam.experiments.report.page.entries import (
    LONGEST_TEXT,
    SHORTEST_LIMIT,
    Answers,
    QuestionEntry,
    _asked_of_items,
    outcome,
    text_limit,
)
from medexam.predictions import Failure, Prediction, Reason, RetrievedPassage, Status
from medexam.specs import DatasetSpec
from page_blocks import unpack

FACETS = {"discipline": "Discipline", "year": "Year"}


def _prediction(key="k", **fields) -> Prediction:
    return Prediction(question=key, program="p", spec_digest="d", **{"status": Status.ANSWERED, "answer": 2, **fields})


def _asked(key="k", **fields) -> QuestionEntry:
    return QuestionEntry(key=key, **{"language": "en", "place": {}, "gold": 2, "wording": None, **fields})


@pytest.fixture(scope="module")
def sample_asked() -> dict[str, QuestionEntry]:
    return _asked_of_items(find_benchmark(DatasetSpec()), load_exam_set(DatasetSpec()))


@pytest.mark.parametrize("value", [[], {"a": [1, None, "é ☃ </script> \x00 \u2028"]}, "x" * 100_000])
def test_what_is_packed_is_unpacked(value) -> None:
    block = pack_block("name", value)
    assert unpack(block) == value
    assert block.text.isascii()
    assert not set("<>&\"'") & set(block.text)


def test_half_a_character_does_not_stop_a_page() -> None:
    assert unpack(pack_block("name", "before \ud800 after")) == "before ? after"


@pytest.mark.parametrize(
    ("asked", "prediction", "letter"),
    [
        (_asked(), _prediction(), "r"),
        (_asked(gold=1), _prediction(), "w"),
        (_asked(), _prediction(status=Status.UNANSWERED, answer=None, reason=Reason.TRUNCATED), "u"),
        (_asked(), _prediction(status=Status.FAILED, answer=None, failure=Failure(kind="K", message="m")), "f"),
        (_asked(), None, "m"),
        (None, None, "-"),
        (None, _prediction(), "-"),
        (_asked(gold=None), _prediction(), "a"),
    ],
)
def test_one_letter_says_how_a_question_came_out(asked, prediction, letter) -> None:
    assert outcome(asked, prediction) == letter


def _parts(found):
    return [unpack(block)["items"] for block in found if block.name.startswith("part-")]


def test_parts_are_cut_by_questions_and_by_characters(sample_asked, monkeypatch) -> None:
    keys = list(sample_asked)
    predictions = {key: _prediction(key, reply="long " * 100) for key in keys}
    run = Answers("run", sample_asked, predictions, None)
    monkeypatch.setattr(blocks, "MOST_QUESTIONS", 50)
    found = build_blocks([run], FACETS)
    assert unpack(found[0])["starts"] == [0, 50, 100]
    assert [item["key"] for part in _parts(found) for item in part] == keys
    monkeypatch.setattr(blocks, "MOST_CHARACTERS", 5_000)
    found = build_blocks([run], FACETS)
    index = unpack(found[0])
    assert len(index["starts"]) > 10
    assert [part[0]["key"] for part in _parts(found)] == [keys[start] for start in index["starts"]]


def test_runs_that_asked_different_questions_share_a_list(sample_asked) -> None:
    keys = list(sample_asked)
    first = Answers("first", {key: sample_asked[key] for key in keys[:3]}, {}, None)
    second = Answers("second", {key: sample_asked[key] for key in keys[2:5]}, {}, None)
    found = build_blocks([first, second], FACETS)
    index = unpack(found[0])
    assert index["keys"] == keys[:5]
    assert index["outcomes"] == ["mmm--", "--mmm"]
    (part,) = _parts(found)
    assert part[0]["answers"] == [{"wording": 0}, None]


def _answer(**fields):
    (part,) = _parts(build_blocks([Answers("run", {"k": _asked()}, {"k": _prediction(**fields)}, None)], FACETS))
    return part[0]["answers"][0]


def test_a_rationale_that_the_reply_holds_stands_once() -> None:
    assert "rationale" not in _answer(reply="It is so. {Answer: 2}", rationale="It is so.")
    assert _answer(reply="{Answer: 2}", rationale="Hidden.")["rationale"] == "Hidden."
    assert _answer(rationale="Alone.")["rationale"] == "Alone."


def test_a_long_reply_loses_its_middle() -> None:
    reply = _answer(reply="a" * LONGEST_TEXT + "b" * LONGEST_TEXT)["reply"]
    assert reply.startswith("a" * 100)
    assert reply.endswith("b" * 100)
    assert f"{LONGEST_TEXT} characters are left out" in reply
    assert _answer(reply="a" * LONGEST_TEXT)["reply"] == "a" * LONGEST_TEXT


@pytest.mark.parametrize(
    ("lengths", "characters", "limit"),
    [
        ([10, 20, 30], 60, LONGEST_TEXT),
        ([500, 1000, 3000], 3000, 1500),
        ([900, 900, 900], 2400, 800),
        ([900, 900, 900], 3, SHORTEST_LIMIT),
        ([3 * LONGEST_TEXT], 2 * LONGEST_TEXT, LONGEST_TEXT),
        ([], 0, LONGEST_TEXT),
    ],
)
def test_short_replies_leave_their_share_to_longer_ones(lengths, characters, limit) -> None:
    asked = {str(at): _asked(str(at)) for at in range(len(lengths))}
    replies = {str(at): _prediction(str(at), reply="a" * length) for at, length in enumerate(lengths)}
    assert text_limit([Answers("run", asked, replies, None)], characters) == limit
    kept = sum(min(length, limit) for length in lengths)
    assert kept <= max(characters, SHORTEST_LIMIT * len(lengths))


def test_the_index_says_how_long_replies_may_be(monkeypatch) -> None:
    runs = [Answers("run", {"k": _asked()}, {"k": _prediction(reply="a" * 3000)}, None)]
    assert unpack(build_blocks(runs, FACETS)[0])["longest_text"] is None
    monkeypatch.setattr(blocks, "ALL_TEXTS", 1000)
    found = build_blocks(runs, FACETS)
    assert unpack(found[0])["longest_text"] == 1000
    assert "2000 characters are left out" in _parts(found)[0][0]["answers"][0]["reply"]


def test_scores_and_passages_are_kept_to_six_digits() -> None:
    found = _answer(
        option_scores={1: -1.23456789, 2: -98.7654321},
        score_unit="nats per token",
        score_norm="token_mean",
        passages=(RetrievedPassage(id="p1", source="Book", score=12.3456789),),
        passages_cut=0,
    )
    assert found["scores"] == [[1, -1.23457], [2, -98.7654]]
    assert (found["score_unit"], found["score_norm"]) == ("nats per token", "token_mean")
    assert found["passages"] == [["p1", "Book", 12.3457]]
    assert "passages_cut" not in found
