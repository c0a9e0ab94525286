"""The strict and the lenient reader of replies: a table of shapes in ten languages, and replies built from answers.

A row of `tests/cases/replies.jsonl` is a reply with what each reader gives for it and why, as a careful marker would.
"""

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import medexam
from medexam.predictions import Reason
from medexam.signatures import parse_answer, read_leniently, split_thinking
from reply_grammar import build_reply
from table_cases import read_cases

OPTIONS = ["Are all-or-none.", "Are hyperpolarizing.", "Are graded potentials.", "Cannot be summed."]
FOUR = (1, 2, 3, 4)
HORMONES = ["Insulin", "Glucagon", "Aldosterone", "Adrenaline"]


def read_both(reply, options, *, reasoned, cut=False):
    """Return what the strict reader gives, and what the lenient one gives where that is nothing."""
    strict = parse_answer(reply, options, reasoned=reasoned, cut=cut)
    return strict, strict if strict is not None else read_leniently(reply, options, reasoned=reasoned, cut=cut)


@pytest.mark.parametrize("case", read_cases("replies"))
def test_a_reply_is_read_as_a_careful_marker_would(case) -> None:
    options = dict(enumerate(case.get("options", OPTIONS), start=1))
    read = read_both(case["reply"], options, reasoned=case.get("reasoned", False))
    assert read == (case["strict"], case["lenient"]), case["why"]


def test_replies_that_were_written_to_be_misread_are_not() -> None:
    """A row is what a marker reads; one without `reasoned` holds for both kinds of reply."""
    totals, reads, wrong = {"strict": 0, "lenient": 0}, {"strict": 0, "lenient": 0}, []
    for row in (each.values[0] for each in read_cases("marked_replies")):
        options = dict(enumerate(row.get("options", HORMONES), start=1))
        _, words = split_thinking(row["reply"])
        for reasoned in (row["reasoned"],) if "reasoned" in row else (False, True):
            both = read_both(words, options, reasoned=reasoned, cut=row["finish"] == "length")
            for reading, number in zip(("strict", "lenient"), both, strict=True):
                marked = row.get(reading)
                wrong += [(row["reply"], reading, number)] if reading in row and number not in (marked, None) else []
                totals[reading] += marked is not None
                reads[reading] += marked is not None and number == marked
    assert wrong == []
    assert reads["strict"] >= 0.9 * totals["strict"]
    assert reads["lenient"] >= 0.8 * totals["lenient"]


@pytest.mark.parametrize("reading", ["strict", "lenient"])
@pytest.mark.parametrize(
    ("reply", "strict", "lenient"), [("{Answer: 3}", 3, 3), ("The answer is 3.", None, 3), ("No idea.", None, None)]
)
def test_a_program_scores_the_reading_that_its_spec_names(ask, reading, reply, strict, lenient) -> None:
    said = ask({"kind": "zero_shot", "reading": reading}, reply).said
    assert said.answer == (strict if reading == "strict" else lenient)
    assert said.lenient == (None if strict else lenient)


@pytest.mark.parametrize(
    ("kind", "reply", "answer"),
    [
        ("chain_of_thought", "Perhaps {Answer: 1}? Let me think about", None),
        ("zero_shot", "Perhaps {Answer: 1}? Let me think about", None),
        ("chain_of_thought", "So it is {Answer: 2}.", 2),
        ("zero_shot", "{Answer: 2}\n\nExplanation: this", 2),
        ("chain_of_thought", "{Answer: 2}\n\nBut wait", None),
    ],
)
def test_of_a_reply_that_was_cut_an_answer_at_its_end_counts(ask, kind, reply, answer) -> None:
    said = ask(kind, {"*": {"text": reply, "finish_reason": "length"}}).said
    assert (said.answer, said.reason) == (answer, None if answer else Reason.TRUNCATED)


@pytest.mark.parametrize(
    "text",
    [
        "{Answer: 3}<|im_end|><|im_start|>user\nNext<|im_end|><|im_start|>assistant\n{Answer: 1}",
        "<|im_start|>assistant\n{Answer: 3}<|im_end|>",
        "{Answer: 3}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n{Answer: 1}",
        "{Answer: 3}<end_of_turn>\n<start_of_turn>user\n{Answer: 1}",
        "{Answer: 3}</s>[INST] {Answer: 1} [/INST]",
        "{Answer: 3}<\uff5cend\u2581of\u2581sentence\uff5c>{Answer: 1}",
        "{Answer: 3}\nUser: and now? {Answer: 1}",
    ],
)
def test_a_reply_ends_where_the_turn_of_the_assistant_does(ask, text: str) -> None:
    assert ask("zero_shot", text).said.answer == 3


@given(st.text(alphabet=st.sampled_from("{}<>[]Answer: 0123456789\"' \n"), max_size=60))
def test_an_answer_is_always_a_legal_option(reply: str) -> None:
    number = parse_answer(reply, FOUR)
    assert number in {None, *FOUR}
    assert number is None or "answer" in reply.lower()


@pytest.mark.parametrize("case", read_cases("repeated_units"))
def test_reading_takes_linear_time(case: dict[str, str]) -> None:
    """Small models repeat themselves up to their budget; 20,000 characters are such a reply."""
    reply = (case["unit"] * 20_000)[:20_000]
    options = dict(enumerate(OPTIONS, start=1))
    readers = [
        lambda: parse_answer(reply, options, reasoned=True),
        lambda: read_leniently(reply, options),
        lambda: read_leniently(reply, options, reasoned=True),
        lambda: split_thinking(reply),
    ]

    def measure(read: Callable[[], object]) -> float:
        start = time.process_time()
        read()
        return time.process_time() - start

    # Other processes and a collection of garbage may hold up one look of three.
    assert all(any(measure(read) < 0.1 for _ in range(3)) for read in readers)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 10))])
def test_generated_replies_are_read_as_they_were_meant(seed: int) -> None:
    questions = [one for language in ("en", "es") for one in medexam.load_questions("headqa_sample", language=language)]
    draw = random.Random(seed)
    strict_missed = lenient_missed = wrong = 0
    for _ in range(1000):
        options = {option.number: option.text for option in draw.choice(questions).options}
        built = build_reply(draw, options)
        strict, lenient = read_both(built.reply, options, reasoned=built.reasoned)
        assert strict in (built.strict, None), built
        strict_missed += strict is None and built.strict is not None
        wrong += lenient not in (built.stated, None)
        lenient_missed += lenient is None and built.stated is not None
    assert (strict_missed, wrong, lenient_missed <= 5) == (0, 0, True)
