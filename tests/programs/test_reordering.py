"""Orders of the options: what is shown, which option a reply means, what counts, and what is kept."""

from itertools import permutations
from pathlib import Path

import dspy
import pytest

from asked import requests_of
from medexam.errors import SpecError
from medexam.experiments import plan_optimization
from medexam.predictions import Reason
from medexam.programs import ProgramContext, WithNearest, build_prediction, build_program, read_again
from medexam.programs.combining.reordering import Reordered
from medexam.programs.combining.voting import Voting
from medexam.programs.nearest import find_nearest
from medexam.programs.orders import orders_of, original, shown_in
from medexam.questions import Option
from medexam.retrievers import Hit, Passage
from medexam.serve import ScriptedEngine
from medexam.specs import ChainOfThoughtSpec, FewShotSpec, RetrieveThenAnswerSpec, ZeroShotSpec, build_cells
from medexam.specs.programs.orders import RandomOrders
from recorded import recorded

TEXTS = ("rest", "aspirin", "surgery", "nothing")


class Finder:
    """Knows the passages of a question by the texts of its options in the exam's order, as a lookup with them does."""

    def find(self, question):
        assert tuple(option.text for option in question.options) == TEXTS
        return [Hit(Passage("a", "", "Passage.", "test"), 1.0, 1)]


@pytest.fixture
def asked(question):
    return question.model_copy(update={"options": tuple(Option(n, text) for n, text in enumerate(TEXTS, start=1))})


def ask(spec, question, reply):
    """The prediction when `reply` says, of the shown texts and the number of the call from 0, what is written."""
    shown = []

    def answer(prompt):
        lines = [line.split(". ", 1) for line in prompt.splitlines() if line[:1].isdigit()]
        shown.append(tuple(text for _, text in lines[-len(question.options) :]))
        return reply(shown[-1], len(shown) - 1)

    engine = ScriptedEngine(answer)
    program = build_program(spec, "en", ProgramContext(finder=Finder()))
    settings = {"temperature": 0.7, "seed": 5, "cache": False, "num_retries": 0}
    with dspy.context(lm=dspy.LM("medexam/scripted", **recorded(engine), **settings)):
        said = program(question=question)
    prediction = build_prediction(question, said, program=spec.label, spec_digest="d", latency_s=0.1)
    return prediction, requests_of(engine), program, shown


def says(text, behind=""):
    return lambda shown, _: f"{behind}{{Answer: {shown.index(text) + 1}}}"


@pytest.mark.parametrize("answer_format", ["free", "guided"])
@pytest.mark.parametrize("kind", [ZeroShotSpec, FewShotSpec, ChainOfThoughtSpec, RetrieveThenAnswerSpec])
@pytest.mark.parametrize("orders", ["cyclic", "reversed", RandomOrders(random=5)])
def test_a_model_that_knows_the_answer_gives_it_in_every_order(asked, kind, answer_format, orders) -> None:
    spec = kind(orders=orders, answer_format=answer_format)
    prediction, requests, program, shown = ask(spec, asked, says("surgery", "Because.\n\n" if spec.reasons else ""))
    assert prediction.answer == 3
    assert set(prediction.votes) == {3}
    assert len(prediction.votes) == len(prediction.orders) == len(orders_of(asked, orders))
    assert len(requests) == len(prediction.generations) == program.calls_for(asked)
    each = len(requests) // len(prediction.orders)
    # What was shown, read off the prompt, is what is kept.
    for texts, order in zip(shown[::each], prediction.orders, strict=True):
        assert texts == tuple(TEXTS[number - 1] for number in order)
    again = read_again(program, asked, prediction)
    assert (again.answer, again.votes, again.orders) == (3, prediction.votes, prediction.orders)


def test_a_model_that_likes_the_first_place_is_seen_through(asked) -> None:
    prediction, *_ = ask(ZeroShotSpec(orders="cyclic"), asked, lambda *_: "{Answer: 1}")
    assert prediction.orders == ((1, 2, 3, 4), (2, 3, 4, 1), (3, 4, 1, 2), (4, 1, 2, 3))
    assert prediction.votes == (1, 2, 3, 4)
    # Of equals the first that was answered, as in any vote.
    assert (prediction.answer, prediction.tied) == (1, 4)
    assert prediction.option_probabilities == pytest.approx(dict.fromkeys((1, 2, 3, 4), 0.25))


def test_demonstrations_and_instructions_stay_as_they_are(asked) -> None:
    _, requests, *_ = ask(FewShotSpec(orders="reversed"), asked, says("aspirin"))
    one, other = ([message.text for message in request.messages] for request in requests)
    assert one[:-1] == other[:-1]
    assert len(one) > 2
    assert requests[0].system == requests[1].system
    assert "1. nothing\n2. surgery\n3. aspirin\n4. rest" in other[-1]


def test_demonstrations_that_are_chosen_for_a_question_are_filled_for_every_order() -> None:
    inner = build_program(FewShotSpec(), "en")
    finder = Finder()
    assert find_nearest(Reordered(Voting(WithNearest(inner, finder), 2), "cyclic")) is finder
    assert find_nearest(Reordered(inner, "cyclic")) is None


def test_every_sample_of_every_order_votes(asked) -> None:
    written = iter(["rest", "rest", None, "surgery", "surgery", "surgery", "rest", "nothing"])

    def reply(shown, _):
        text = next(written)
        return "I do not know." if text is None else f"{{Answer: {shown.index(text) + 1}}}"

    spec = ZeroShotSpec(orders="cyclic", samples=2)
    prediction, requests, program, _ = ask(spec, asked, reply)
    assert prediction.votes == (1, 1, None, 3, 3, 3, 1, 4)
    assert (prediction.answer, prediction.reply) == (1, "{Answer: 1}")
    assert [request.config.seed for request in requests] == [5, 6] * 4
    assert spec.label == "zero_shot-samples2-cyclic"
    assert read_again(program, asked, prediction) == prediction


def test_no_legal_answer_in_any_order_is_none(asked) -> None:
    prediction, *_ = ask(ZeroShotSpec(orders="reversed"), asked, lambda *_: "No idea.")
    assert (prediction.answer, prediction.reason, prediction.votes) == (None, Reason.UNPARSED, (None, None))


def test_drawn_orders_differ_stay_and_depend_on_the_question(question) -> None:
    def with_options(count, key="k"):
        return question.model_copy(
            update={"key": key, "options": tuple(Option(n, str(n)) for n in range(1, count + 1))}
        )

    four = RandomOrders(random=4)
    drawn = orders_of(with_options(5), four)
    assert len(set(drawn)) == 4
    assert drawn == orders_of(with_options(5), four)
    assert drawn != orders_of(with_options(5, "other"), four)
    assert drawn != orders_of(with_options(5), RandomOrders(random=4, seed=1))
    assert sorted(orders_of(with_options(3), RandomOrders(random=9))) == sorted(permutations((1, 2, 3)))
    ten = orders_of(with_options(10), RandomOrders(random=20))
    assert len(set(ten)) == 20
    assert all(sorted(order) == list(range(1, 11)) for order in ten)


def test_numbers_that_do_not_begin_at_one_are_mapped_by_place(question) -> None:
    odd = question.model_copy(update={"options": (Option(2, "b"), Option(5, "e"), Option(7, "g"))})
    shown = shown_in(odd, (7, 2, 5))
    assert [(option.number, option.text) for option in shown.options] == [(2, "g"), (5, "b"), (7, "e")]
    assert [original(odd, (7, 2, 5), number) for number in (2, 5, 7, None)] == [7, 2, 5, None]


def test_the_exams_order_is_the_program_as_it_was() -> None:
    assert "orders" not in ZeroShotSpec().model_dump()
    assert ZeroShotSpec(orders={"random": 3}).model_dump()["orders"] == {"random": 3, "seed": 17}
    (cell,) = build_cells({"name": "x"}, {"program.orders.random": 3})[1]
    assert cell.program.label == "zero_shot-random3"
    with pytest.raises(SpecError, match="an optimizer asks once: leave samples and orders out"):
        plan_optimization(
            {"name": "x", "program": {"kind": "zero_shot", "orders": "cyclic"}, "optimizer": {"kind": "random_search"}},
            {},
            runs_dir=Path("runs"),
        )
    for wrong in ("random", {"random": 1}):
        with pytest.raises(SpecError, match=r"orders") as refused:
            build_cells({"name": "x", "program": {"kind": "zero_shot", "orders": wrong}}, {})
        assert ";" not in str(refused.value)
