"""The likelihood program: contexts and texts that it asks for, norms, orders, ties and abstention."""

import math

import dspy
import pytest
from pydantic import ValidationError

from asked import requests_of
from medexam.dspy_requests import CONTINUATIONS
from medexam.errors import SpecError
from medexam.predictions import Reason, Status, normalise_scores
from medexam.programs import build_prediction, build_program
from medexam.programs.likelihood import average_orders
from medexam.programs.orders import orders_of, shown_in
from medexam.questions import Option
from medexam.serve import ScriptedEngine
from medexam.signatures import render_question
from medexam.specs import LikelihoodSpec
from recorded import recorded


def spec(**fields) -> LikelihoodSpec:
    return LikelihoodSpec(kind="likelihood", **fields)


def ask(program_spec, question, logprobs, language="en"):
    """`logprobs`: the rows of the reply, or a function from the context to them."""
    rows = logprobs if callable(logprobs) else lambda context: logprobs
    engine = ScriptedEngine(lambda context: {"logprobs": rows(context)})
    program = build_program(program_spec, language)
    lm = dspy.LM("medexam/scripted", **recorded(engine), cache=False, num_retries=0)
    with dspy.context(lm=lm):
        said = program(question=question)
    prediction = build_prediction(question, said, program=program_spec.label, spec_digest="d", latency_s=0.1)
    return prediction, [
        (request.messages[0].text, request.config.extensions[CONTINUATIONS]) for request in requests_of(engine)
    ]


def with_options(question, *texts):
    options = tuple(Option(number=number, text=text) for number, text in enumerate(texts, start=1))
    return question.model_copy(update={"options": options})


def test_the_papers_protocol_reads_each_option_behind_the_stem(question) -> None:
    asked = with_options(question, "one", "two words", "three words here")
    prediction, ((context, extension),) = ask(spec(), asked, [[-1.0], [-1.0, -0.8], [-2.0, -0.1, -0.9]])
    assert context == question.stem
    assert extension == {
        "texts": [" one", " two words", " three words here"],
        "read_by": "auto",
        "given_opening": False,
        "template": False,
    }
    assert prediction.option_scores == {1: -1.0, 2: -0.9, 3: -1.0}
    assert (prediction.score_unit, prediction.score_norm) == ("nats per token", "token_mean")
    assert (prediction.answer, prediction.tied, prediction.reply) == (2, 1, None)
    assert prediction.label_mass is None


@pytest.mark.parametrize(
    ("norm", "scores", "unit"),
    [
        ("sum", [-1.8, -1.2], "nats"),
        ("token_mean", [-0.6, -1.2], "nats per token"),
        ("character", [-1.8 / 12, -1.2 / 3], "nats per character"),
        ("byte", [-1.8 / 14, -1.2 / 3], "nats per byte"),
        ("min_k", [-0.6, -1.2], "nats per token"),
    ],
)
def test_norms(question, norm, scores, unit) -> None:
    asked = with_options(question, "él oyó el so", "sol")
    prediction, _ = ask(spec(norm=norm), asked, [[-0.5, -0.6, -0.3, -0.4], [-1.2]])
    expected = [scores[0] if norm != "token_mean" else -1.8 / 4, scores[1]]
    assert list(prediction.option_scores.values()) == pytest.approx(expected)
    assert prediction.score_unit == unit


def test_min_k_is_the_mean_of_the_least_likely_fifth_rounded_up(question) -> None:
    asked = with_options(question, "a b c d e f", "a b c d e f g h i j")
    ten = [-0.1 * number for number in range(1, 11)]
    prediction, _ = ask(spec(norm="min_k"), asked, [[-0.5, -3.0, -0.1, -2.0, -0.2, -1.0], ten])
    assert prediction.option_scores == pytest.approx({1: -2.5, 2: -0.95})


def test_pmi_is_the_gain_over_the_option_without_the_question(question) -> None:
    asked = with_options(question, "common", "rare")
    prediction, calls = ask(
        spec(norm="pmi"), asked, lambda context: [[-1.0], [-5.0]] if context == "Answer:" else [[-0.9], [-4.0]]
    )
    assert [context for context, _ in calls] == ["Answer:", question.stem]
    assert prediction.option_scores == pytest.approx({1: 0.1, 2: 1.0})
    assert prediction.answer == 2


def test_labels_are_numbers_behind_the_options(question) -> None:
    rows = [[math.log(chance)] for chance in (0.1, 0.4, 0.2)]
    asked = with_options(question, "a", "b", "c")
    prediction, ((context, extension),) = ask(spec(read="label"), asked, rows)
    assert context == f"{render_question(asked)}\nAnswer:"
    assert extension["texts"] == [" 1", " 2", " 3"]
    assert extension["given_opening"]
    assert prediction.answer == 2
    assert prediction.label_mass == pytest.approx(0.7)
    assert prediction.option_probabilities == pytest.approx({1: 1 / 7, 2: 4 / 7, 3: 2 / 7})


def test_a_dialogue_reads_at_the_beginning_of_the_assistants_turn(question) -> None:
    asked = with_options(question, "a", "b")
    _, ((_, extension),) = ask(spec(chat_template=True), asked, [[-1.0], [-2.0]])
    assert extension["template"]
    assert extension["texts"] == ["a", "b"]


def test_words_of_another_harness(question) -> None:
    asked = with_options(question, "a", "b")
    _, ((context, _),) = ask(spec(prompt="lm_eval"), asked, [[-1.0], [-2.0]], language="es")
    assert context == f"Question: {question.stem}\nAnswer:"


def test_of_equal_options_the_first_is_taken_and_the_tie_is_kept(question) -> None:
    prediction, _ = ask(spec(), with_options(question, "a", "b", "c"), [[-2.0], [-1.0], [-1.0]])
    assert (prediction.answer, prediction.tied) == (2, 2)


@pytest.mark.parametrize(("threshold", "answer"), [(0.6, 1), (0.7, None)])
def test_abstaining_below_a_probability(question, threshold, answer) -> None:
    rows = [[math.log(0.64)], [math.log(0.36)]]
    prediction, _ = ask(spec(abstain_below=threshold), with_options(question, "a", "b"), rows)
    assert prediction.answer == answer
    assert prediction.option_scores is not None
    if answer is None:
        assert (prediction.status, prediction.reason) == (Status.UNANSWERED, Reason.ABSTAINED)


def test_rotations_move_the_texts_and_keep_the_numbers(question) -> None:
    asked = with_options(question, "a", "b", "c")
    turns = [shown_in(asked, order) for order in orders_of(asked, "cyclic")]
    assert [[option.text for option in turned.options] for turned in turns] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
    ]
    assert all(turned.option_numbers == (1, 2, 3) for turned in turns)


@pytest.mark.parametrize("read", ["label", "option_text"])
def test_cyclic_orders_cancel_a_liking_for_places(question, read) -> None:
    """A model that likes the first place, and option b whatever its place: only averaging finds b."""
    asked = with_options(question, "a", "b", "c")

    def weigh(context: str) -> list[list[float]]:
        shown = [line.split(". ")[1] for line in context.splitlines() if line[:1].isdigit()]
        return [
            [math.log(weight)]
            for weight in (0.2 + 0.3 * (at == 0) + 0.2 * (text == "b") for at, text in enumerate(shown))
        ]

    given = spec(read=read, context="stem_and_options")
    assert ask(given, asked, weigh)[0].answer == 1
    prediction, calls = ask(given.model_copy(update={"orders": "cyclic"}), asked, weigh)
    assert len(calls) == 3
    assert prediction.answer == 2
    assert prediction.order_scores[1] == pytest.approx([math.log(0.7), math.log(0.2), math.log(0.2)])
    # Shares by hand: order a b c gives 5, 4, 2 of 11; b c a gives 7, 2, 2 of 11; c a b gives 5, 2, 4 of 11.
    expected = {1: (5 + 2 + 2) / 33, 2: (4 + 7 + 4) / 33, 3: (2 + 2 + 5) / 33}
    assert prediction.option_probabilities == pytest.approx(expected)


def test_averaging_orders_of_numbers_without_chance() -> None:
    averaged = average_orders([(1, 2), (2, 1)], [[-1e5, 0.0], [0.0, -1e5]])
    assert averaged[2] == pytest.approx(0.0)
    assert math.isfinite(averaged[1])


@pytest.mark.parametrize("orders", ["reversed", {"random": 4}])
@pytest.mark.parametrize("read", ["label", "option_text"])
def test_any_orders_are_averaged_by_option(question, read, orders) -> None:
    """Weights that depend on text and place, averaged by hand over the orders that the prompts show."""
    asked = with_options(question, "a", "b", "c")
    weights = {"a": 0.1, "b": 0.3, "c": 0.2}
    shown = []

    def weigh(context: str) -> list[list[float]]:
        shown.append([line.split(". ")[1] for line in context.splitlines() if line[:1].isdigit()])
        return [[math.log(weights[text] / (1 + at))] for at, text in enumerate(shown[-1])]

    prediction, calls = ask(spec(read=read, context="stem_and_options", orders=orders), asked, weigh)
    assert len(calls) == len(prediction.orders) == len(prediction.order_scores)
    assert shown == [["abc"[number - 1] for number in order] for order in prediction.orders]
    expected = dict.fromkeys("abc", 0.0)
    for texts in shown:
        odds = {text: weights[text] / (1 + at) for at, text in enumerate(texts)}
        for text, weight in odds.items():
            expected[text] += weight / sum(odds.values()) / len(shown)
    assert list(prediction.option_probabilities.values()) == pytest.approx([expected[text] for text in "abc"])


def test_shares_sum_to_one() -> None:
    assert math.fsum(normalise_scores({1: -700.0, 2: -701.0, 3: -2000.0}).values()) == pytest.approx(1.0)


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
    with pytest.raises(ValidationError, match=message):
        spec(**fields)


def test_calls_are_counted_before_they_are_made(question) -> None:
    asked = with_options(question, "a", "b", "c")
    assert build_program(spec(), "en").calls_for(asked) == 1
    assert build_program(spec(norm="pmi"), "en").calls_for(asked) == 2
    assert build_program(spec(read="label", orders="cyclic"), "en").calls_for(asked) == 3


def test_own_words_must_have_a_place_for_the_question(tmp_path) -> None:
    path = tmp_path / "words.yaml"
    path.write_text('en: {likelihood: {option_text: "Answer:", label: "$question", premise: "Answer:"}}')
    with pytest.raises(SpecError, match=r"lacks \$question"):
        build_program(spec(prompt=path), "en")
