"""The likelihood program: contexts and texts that it asks for, norms, orders, ties and abstention."""

import math

import pytest

import medexam
from medexam.errors import SpecError
from medexam.predictions import Reason, Status
from one_question import STEM

ABC = ("a", "b", "c")


@pytest.fixture
def weigh(ask):
    """`weigh(options, rows)` -> what came of a question; `rows`: log-probabilities, or a function of the context."""

    def call(options, rows, language="en", **program):
        reply = rows if callable(rows) else lambda _: rows
        program = {"kind": "likelihood", **program}
        return ask(program, lambda context: {"logprobs": reply(context)}, options=options, language=language)

    return call


def texts(asked):
    return [one.continuations.texts for one in asked.dialogues]


def test_the_papers_protocol_reads_each_option_behind_the_stem(weigh) -> None:
    asked = weigh(("one", "two words", "three words here"), [[-1.0], [-1.0, -0.8], [-2.0, -0.1, -0.9]])
    (reading,), said = [one.continuations for one in asked.dialogues], asked.said
    assert asked.turns == [STEM]
    assert reading.texts == (" one", " two words", " three words here")
    assert (reading.read_by, reading.given_opening, reading.template) == ("auto", False, False)
    assert said.option_scores == {1: -1.0, 2: -0.9, 3: -1.0}
    assert (said.score_unit, said.score_norm) == ("nats per token", "token_mean")
    assert (said.answer, said.tied, said.reply, said.label_mass) == (2, 1, None, None)


@pytest.mark.parametrize(
    ("norm", "first", "second", "unit"),
    [
        ("sum", -1.8, -1.2, "nats"),
        ("token_mean", -1.8 / 4, -1.2, "nats per token"),
        ("character", -1.8 / 12, -1.2 / 3, "nats per character"),
        ("byte", -1.8 / 14, -1.2 / 3, "nats per byte"),
        ("min_k", -0.6, -1.2, "nats per token"),
    ],
)
def test_norms(weigh, norm, first, second, unit) -> None:
    said = weigh(("él oyó el so", "sol"), [[-0.5, -0.6, -0.3, -0.4], [-1.2]], norm=norm).said
    assert list(said.option_scores.values()) == pytest.approx([first, second])
    assert said.score_unit == unit


def test_min_k_is_the_mean_of_the_least_likely_fifth_rounded_up(weigh) -> None:
    ten = [-0.1 * number for number in range(1, 11)]
    rows = [[-0.5, -3.0, -0.1, -2.0, -0.2, -1.0], ten]
    said = weigh(("a b c d e f", "a b c d e f g h i j"), rows, norm="min_k").said
    assert said.option_scores == pytest.approx({1: -2.5, 2: -0.95})


def test_pmi_is_the_gain_over_the_option_without_the_question(weigh) -> None:
    rows = lambda context: [[-1.0], [-5.0]] if context == "Answer:" else [[-0.9], [-4.0]]  # noqa: E731
    asked = weigh(("common", "rare"), rows, norm="pmi")
    assert asked.turns == ["Answer:", STEM]
    assert asked.said.option_scores == pytest.approx({1: 0.1, 2: 1.0})
    assert asked.said.answer == 2


def test_labels_are_numbers_behind_the_options(weigh) -> None:
    asked = weigh(ABC, [[math.log(chance)] for chance in (0.1, 0.4, 0.2)], read="label")
    assert asked.turns == [f"{STEM}\n1. a\n2. b\n3. c\nAnswer:"]
    assert texts(asked) == [(" 1", " 2", " 3")]
    assert asked.dialogues[0].continuations.given_opening
    assert asked.said.answer == 2
    assert asked.said.label_mass == pytest.approx(0.7)
    assert asked.said.option_probabilities == pytest.approx({1: 1 / 7, 2: 4 / 7, 3: 2 / 7})


def test_a_dialogue_is_read_at_the_beginning_of_the_assistants_turn(weigh) -> None:
    asked = weigh(ABC[:2], [[-1.0], [-2.0]], chat_template=True)
    assert asked.dialogues[0].continuations.template
    assert texts(asked) == [("a", "b")]


def test_words_of_another_harness(weigh) -> None:
    asked = weigh(ABC[:2], [[-1.0], [-2.0]], prompt="lm_eval", language="es")
    assert asked.turns == [f"Question: {STEM}\nAnswer:"]


def test_of_equal_options_the_first_is_taken_and_the_tie_is_kept(weigh) -> None:
    said = weigh(ABC, [[-2.0], [-1.0], [-1.0]]).said
    assert (said.answer, said.tied) == (2, 2)


@pytest.mark.parametrize(("threshold", "answer"), [(0.6, 1), (0.7, None)])
def test_abstaining_below_a_probability(weigh, threshold, answer) -> None:
    said = weigh(ABC[:2], [[math.log(0.64)], [math.log(0.36)]], abstain_below=threshold).said
    assert said.answer == answer
    assert said.option_scores is not None
    if answer is None:
        assert (said.status, said.reason) == (Status.UNANSWERED, Reason.ABSTAINED)


def shown_in(context):
    return [line.split(". ")[1] for line in context.splitlines() if line[:1].isdigit()]


@pytest.mark.parametrize("read", ["label", "option_text"])
def test_cyclic_orders_cancel_a_liking_for_places(weigh, read) -> None:
    """A model that likes the first place, and option b whatever its place: only averaging finds b."""

    def rows(context):
        shown = enumerate(shown_in(context))
        return [[math.log(0.2 + 0.3 * (place == 0) + 0.2 * (text == "b"))] for place, text in shown]

    given = {"read": read, "context": "stem_and_options"}
    assert weigh(ABC, rows, **given).said.answer == 1
    asked = weigh(ABC, rows, **given, orders="cyclic")
    assert [shown_in(turn) for turn in asked.turns] == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    assert asked.said.answer == 2
    assert asked.said.order_scores[1] == pytest.approx([math.log(0.7), math.log(0.2), math.log(0.2)])
    # Shares by hand: order a b c gives 5, 4, 2 of 11; b c a gives 7, 2, 2 of 11; c a b gives 5, 2, 4 of 11.
    expected = {1: (5 + 2 + 2) / 33, 2: (4 + 7 + 4) / 33, 3: (2 + 2 + 5) / 33}
    assert asked.said.option_probabilities == pytest.approx(expected)


def test_orders_of_numbers_without_chance_are_averaged(weigh) -> None:
    rows = lambda context: [[0.0 if text == "b" else -1e5] for text in shown_in(context)]  # noqa: E731
    said = weigh(ABC[:2], rows, read="label", orders="cyclic").said
    assert said.option_probabilities[2] == pytest.approx(1.0)
    assert all(map(math.isfinite, said.option_scores.values()))


@pytest.mark.parametrize("orders", ["reversed", "random4"])
@pytest.mark.parametrize("read", ["label", "option_text"])
def test_any_orders_are_averaged_by_option(weigh, read, orders) -> None:
    """Weights that depend on text and place, averaged by hand over the orders that the prompts show."""
    weights = {"a": 0.1, "b": 0.3, "c": 0.2}

    def rows(context):
        return [[math.log(weights[text] / (1 + place))] for place, text in enumerate(shown_in(context))]

    asked = weigh(ABC, rows, read=read, context="stem_and_options", orders=orders)
    shown = [shown_in(turn) for turn in asked.turns]
    assert shown == [["abc"[number - 1] for number in order] for order in asked.said.orders]
    assert len(shown) == len(asked.said.order_scores) > 1
    expected = dict.fromkeys("abc", 0.0)
    for order in shown:
        odds = {text: weights[text] / (1 + place) for place, text in enumerate(order)}
        for text, weight in odds.items():
            expected[text] += weight / sum(odds.values()) / len(shown)
    assert list(asked.said.option_probabilities.values()) == pytest.approx([expected[text] for text in "abc"])
    masses = [sum(weights[text] / (1 + place) for place, text in enumerate(order)) for order in shown]
    mass = sum(masses) / len(masses) if read == "label" else None
    assert asked.said.label_mass == (mass and pytest.approx(mass))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"read": "label", "context": "stem"}, "needs the options shown"),
        ({"orders": "cyclic"}, "several orders need the options shown"),
        ({"abstain_below": 1.5}, "less than or equal to 1"),
        ({"norm": "geometric"}, "token_mean"),
    ],
)
def test_specs_that_cannot_be_meant(fields, message) -> None:
    with pytest.raises(SpecError, match=message):
        medexam.build_program("likelihood", **fields)


@pytest.mark.parametrize(
    ("fields", "calls"), [({}, 1), ({"norm": "pmi"}, 2), ({"read": "label", "orders": "cyclic"}, 5)]
)
def test_calls_are_counted_before_they_are_made(question, fields, calls) -> None:
    assert medexam.build_program("likelihood", **fields).calls_for(question) == calls


def test_own_words_must_have_a_place_for_the_question(tmp_path) -> None:
    path = tmp_path / "words.yaml"
    path.write_text('en: {likelihood: {option_text: "Answer:", label: "$question", premise: "Answer:"}}')
    with pytest.raises(SpecError, match=r"lacks \$question"):
        medexam.build_program("likelihood", prompt=str(path))
