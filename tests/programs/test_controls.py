"""The controls answer without a model, and the same way every time."""

import random
from collections import Counter

import pytest

from medexam.programs import ProgramContext, build_program
from medexam.specs.programs.controls import BlindSpec, LongestSpec, RandomInOrderSpec, RandomSpec


def test_longest_takes_the_first_of_the_longest(question) -> None:
    assert build_program(LongestSpec(kind="longest"), "en")(question=question).answer == 5
    tied = question.model_copy(
        update={"options": tuple(o.model_copy(update={"text": "same"}) for o in question.options)}
    )
    assert build_program(LongestSpec(kind="longest"), "en")(question=tied).answer == 1


@pytest.mark.parametrize(("option", "answer"), [(1, 1), (5, 5), (6, None)])
def test_blind_takes_a_number_that_the_question_has(question, option, answer) -> None:
    assert build_program(BlindSpec(kind="blind", option=option), "en")(question=question).answer == answer


def test_random_depends_on_seed_and_key_alone(question) -> None:
    program = build_program(RandomSpec(kind="random"), "en")
    questions = [question.model_copy(update={"key": f"q/{n}"}) for n in range(2000)]
    first = {q.key: program(question=q).answer for q in questions}
    assert first == {q.key: program(question=q).answer for q in reversed(questions)}
    counts = Counter(first.values())
    assert set(counts) == {1, 2, 3, 4, 5}
    assert all(330 < count < 470 for count in counts.values())
    other = build_program(RandomSpec(kind="random", seed=18), "en")
    assert [other(question=q).answer for q in questions] != list(first.values())


async def test_controls_run_asynchronously_too(question, caplog) -> None:
    assert (await build_program(LongestSpec(kind="longest"), "en").acall(question=question)).answer == 5
    assert not caplog.records


def test_random_in_order_is_one_stream_over_a_split(question) -> None:
    questions = [question.model_copy(update={"key": f"q/{n}"}) for n in range(50)]
    asked = []
    context = ProgramContext(in_order=lambda split: asked.append(split) or questions[10:])
    program = build_program(RandomInOrderSpec(split="test"), "en", context)
    assert asked == ["test"]
    stream = random.Random(17)
    assert [program(question=one).answer for one in questions[10:]] == [stream.randint(1, 5) for _ in range(40)]
    assert program(question=questions[3]).answer is None
    assert RandomInOrderSpec(split="test").label == "random_in_order-test"
