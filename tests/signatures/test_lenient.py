"""The lenient reader against a table of shapes, and against replies that a small grammar builds from known answers."""

import random

import pytest

from medexam.benchmarks import find_benchmark
from medexam.questions import Question
from medexam.signatures import parse_answer, read_leniently
from medexam.specs import DatasetSpec
from reply_grammar import build_reply
from reply_shapes import ALSO_NOTHING, ALSO_THREE, DIRECT, OPTIONS, OTHER_OPTIONS, REASONED, Row


def read_both(row: Row, options: dict[int, str], *, reasoned: bool) -> tuple[int | None, int | None]:
    """What the strict reader gives, and what the lenient one gives where that is nothing."""
    strict = parse_answer(row[0], options, reasoned=reasoned)
    return strict, strict if strict is not None else read_leniently(row[0], options, reasoned=reasoned)


@pytest.mark.parametrize("row", DIRECT, ids=lambda row: row[0][:40])
def test_a_direct_reply_is_read_as_a_careful_marker_would(row: Row) -> None:
    assert read_both(row, OPTIONS, reasoned=False) == row[1:3], row[3]


@pytest.mark.parametrize("reply", ALSO_THREE)
def test_what_states_an_option_is_read(reply: str) -> None:
    assert read_both((reply, None, None, ""), OPTIONS, reasoned=False)[1] == 3


@pytest.mark.parametrize("reply", ALSO_NOTHING)
def test_what_states_no_option_is_not_read(reply: str) -> None:
    assert read_both((reply, None, None, ""), OPTIONS, reasoned=False) == (None, None)


@pytest.mark.parametrize("row", REASONED, ids=lambda row: row[0][:40])
def test_a_reply_that_reasons_is_read_at_its_last_statement(row: Row) -> None:
    assert read_both(row, OPTIONS, reasoned=True) == row[1:3], row[3]


@pytest.mark.parametrize(("options", "row"), OTHER_OPTIONS, ids=lambda value: str(value)[:40])
def test_the_text_of_an_option_is_told_from_its_sign(options: dict[int, str], row: Row) -> None:
    assert read_both(row, options, reasoned=False) == row[1:3], row[3]


@pytest.fixture(scope="module")
def sample_questions() -> list[Question]:
    """Those of HEAD-QA's sample, in English and Spanish."""
    specs = [DatasetSpec(name="headqa_sample", language=language) for language in ("en", "es")]
    return [one for spec in specs for one in find_benchmark(spec).load(spec).questions]


@pytest.mark.parametrize("seed", range(5))
def test_generated_replies_are_read_as_they_were_meant(seed: int, sample_questions: list[Question]) -> None:
    draw = random.Random(seed)
    strict_missed = lenient_missed = wrong = 0
    for _ in range(2000):
        options = {option.number: option.text for option in draw.choice(sample_questions).options}
        built = build_reply(draw, options)
        strict, lenient = read_both((built.reply, None, None, ""), options, reasoned=built.reasoned)
        assert strict in (built.strict, None), built
        strict_missed += strict is None and built.strict is not None
        wrong += lenient not in (built.stated, None)
        lenient_missed += lenient is None and built.stated is not None
    assert strict_missed == 0
    assert wrong <= 2
    assert lenient_missed <= 60
