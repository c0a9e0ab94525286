"""Several replies to a question: under seeds or in orders of their own, and the commonest legal answer is taken."""

from itertools import pairwise, permutations

import pytest

import medexam
from medexam.errors import SpecError
from medexam.predictions import Reason, Status
from medexam.specs import build_cells

TEXTS = ("rest", "aspirin", "surgery", "nothing")
DRAWN = {"model": {"temperature": 0.7, "seed": 5}}


def in_turn(*answers, behind="Because.\n\n"):
    """Reply with these answers, one a call."""
    left = iter(answers)
    return lambda _: f"{behind}{{Answer: {next(left)}}}"


def shown_options(turn):
    """Read the options off a prompt, in the order in which it shows them."""
    lines = [line.split(". ", 1)[1] for line in turn.splitlines() if line[:1].isdigit()]
    return tuple(lines[-len(TEXTS) :])


def says(text):
    """Reply with the number under which an option is shown."""
    return lambda turn: f"Because.\n\n{{Answer: {shown_options(turn).index(text) + 1}}}"


def test_the_commonest_answer_is_taken_and_every_reply_kept(ask) -> None:
    asked = ask({"kind": "zero_shot", "samples": 5}, in_turn(2, 3, "x", 3, 1), **DRAWN)
    said = asked.said
    assert (said.status, said.answer, said.votes) == (Status.ANSWERED, 3, (2, 3, None, 3, 1))
    assert asked.seeds == [5, 6, 7, 8, 9]
    assert all(one.messages == other.messages for one, other in pairwise(asked.dialogues))
    assert said.calls[2].text == "Because.\n\n{Answer: x}"
    assert said.reply == "Because.\n\n{Answer: 3}"
    assert said.option_probabilities == pytest.approx({1: 0.25, 2: 0.25, 3: 0.5, 4: 0, 5: 0}, abs=1e-8)
    assert (said.score_norm, said.tied, asked.run.program) == ("votes", 1, "zero_shot-samples5")


def test_of_equals_the_first_that_was_answered(ask) -> None:
    assert ask({"kind": "zero_shot", "samples": 4}, in_turn(4, 1, 1, 4), **DRAWN).said.answer == 4
    said = ask({"kind": "zero_shot", "samples": 3}, in_turn("x", "y", "z"), **DRAWN).said
    assert (said.answer, said.reason, said.votes) == (None, Reason.UNPARSED, (None,) * 3)
    assert said.option_scores is None


@pytest.mark.parametrize(("form", "each"), [("free", 1), ("guided", 2)])
def test_reasoning_votes_too(ask, form, each) -> None:
    program = {"kind": "chain_of_thought", "samples": 3, "answer_format": form}
    answers = iter([(thought, answer) for thought, answer in enumerate((1, 2, 2)) for _ in range(each)])
    asked = ask(program, lambda _: "Because {}.\n\n{{Answer: {}}}".format(*next(answers)), **DRAWN)
    assert (asked.said.answer, asked.said.votes, asked.said.rationale) == (2, (1, 2, 2), "Because 1.")
    assert asked.seeds == [5 + n for n in range(3) for _ in range(each)]
    assert len(asked.said.calls) == 3 * each


@pytest.mark.parametrize("form", ["free", "guided"])
@pytest.mark.parametrize("kind", ["zero_shot", "few_shot", "chain_of_thought", "retrieve_then_answer"])
@pytest.mark.parametrize("orders", ["cyclic", "reversed", "random5"])
def test_a_model_that_knows_the_answer_gives_it_in_every_order(ask, finder, kind, form, orders) -> None:
    program = {"kind": kind, "orders": orders, "answer_format": form}
    if kind == "retrieve_then_answer":
        program["retriever"] = finder([("a", "", "Passage.", 1.0)])
    reply = says("surgery")
    asked = ask(program, reply if kind == "chain_of_thought" else lambda turn: reply(turn)[10:], options=TEXTS, **DRAWN)
    said = asked.said
    assert (said.answer, set(said.votes)) == (3, {3})
    assert len(said.votes) == len(said.orders) == {"cyclic": 4, "reversed": 2}.get(str(orders), 5)
    each = len(asked.turns) // len(said.orders)
    shown = [shown_options(turn) for turn in asked.turns[::each]]
    assert shown == [tuple(TEXTS[number - 1] for number in order) for order in said.orders]
    assert len(set(shown)) == len(shown)


def test_a_model_that_likes_the_first_place_is_seen_through(ask) -> None:
    said = ask({"kind": "zero_shot", "orders": "cyclic"}, "{Answer: 1}", options=TEXTS).said
    assert said.orders == ((1, 2, 3, 4), (2, 3, 4, 1), (3, 4, 1, 2), (4, 1, 2, 3))
    # Of equals the first that was answered, as in any vote.
    assert (said.votes, said.answer, said.tied) == ((1, 2, 3, 4), 1, 4)
    assert said.option_probabilities == pytest.approx(dict.fromkeys((1, 2, 3, 4), 0.25))
    none = ask({"kind": "zero_shot", "orders": "reversed"}, "No idea.", options=TEXTS).said
    assert (none.answer, none.reason, none.votes) == (None, Reason.UNPARSED, (None, None))


def test_demonstrations_stay_as_they_are(ask) -> None:
    one, other = ask({"kind": "few_shot", "orders": "reversed"}, says("aspirin"), options=TEXTS).dialogues
    assert one.messages[:-1] == other.messages[:-1]
    assert "1. nothing\n2. surgery\n3. aspirin\n4. rest" in other.messages[-1]["content"]


def test_every_sample_of_every_order_votes(ask) -> None:
    written = iter(["rest", "rest", None, "surgery", "surgery", "surgery", "rest", "nothing"])

    def reply(turn):
        text = next(written)
        return "I do not know." if text is None else says(text)(turn)

    asked = ask({"kind": "zero_shot", "orders": "cyclic", "samples": 2}, reply, options=TEXTS, **DRAWN)
    assert asked.said.votes == (1, 1, None, 3, 3, 3, 1, 4)
    assert asked.said.answer == 1
    assert asked.seeds == [5, 6] * 4


def test_drawn_orders_differ_stay_and_depend_on_the_question(ask) -> None:
    def drawn(random, count=5, **asked):
        program = {"kind": "zero_shot", "orders": f"random{random}"}
        return ask(program, "{Answer: 1}", options=[f"text {n}" for n in range(count)], **asked).said.orders

    four = drawn(4)
    assert len(set(four)) == 4
    assert drawn(4) == four
    assert drawn(4, row={"stem": "Another?"}) != four
    assert sorted(drawn(9, 3)) == sorted(permutations((1, 2, 3)))
    ten = drawn(20, 10)
    assert len(set(ten)) == 20
    assert all(sorted(order) == list(range(1, 11)) for order in ten)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ({"samples": 8}, r"at temperature 0 all replies are equal: set model\.temperature"),
        ({"orders": "random"}, "orders"),
        ({"orders": "random1"}, "orders"),
    ],
)
def test_votes_that_cannot_differ_are_refused(program, said) -> None:
    with pytest.raises(SpecError, match=said):
        build_cells({"name": "x", "program": {"kind": "zero_shot", **program}}, {})


def test_an_optimizer_takes_no_votes(tmp_path) -> None:
    spec = {"name": "x", "program": {"kind": "zero_shot", "orders": "cyclic"}, "optimizer": {"kind": "random_search"}}
    with pytest.raises(SpecError, match="an optimizer asks once: leave samples and orders out"):
        medexam.optimize(spec, runs_dir=tmp_path, progress=False, track=False)
