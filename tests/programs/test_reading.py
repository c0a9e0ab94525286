"""The options that follow from what a local model read: a span by its overlap, entailment by its probability."""

import math

import pytest

from medexam.predictions import Reason, Status
from medexam.programs import Entailments, ProgramContext, ReadSpan, build_prediction, build_program
from medexam.questions import Option
from medexam.retrievers import Hit, Passage, Span
from medexam.specs import build_cells

HITS = (Hit(Passage("a", "Potentials", "They can be added.", "test"), 5.0, 1),)


class Reader:
    """A local model that says what it is told to."""

    def __init__(self, said) -> None:
        self.said = said

    def read_span(self, question):
        span = None if self.said is None else Span(self.said, 0, len(self.said), 1.0)
        return ReadSpan(question, span, HITS if span else (), "tiny")

    def read_entailments(self, question):
        return Entailments(self.said, HITS, "tiny")

    def read_supports(self, question):
        return self.said


def answer(program, question, said, hits=HITS):
    _, (cell,) = build_cells({"name": "x", "program": {"reader": "models/one", **program}}, {})
    finder = type("Finder", (), {"find": lambda self, _: hits})()
    context = ProgramContext(reader=Reader(said), supports=Reader(said), finder=finder)
    made = build_program(cell.program, question.language, context)
    return build_prediction(question, made(question=question), program="p", spec_digest="d", latency_s=0.1)


def choose(question, span, *options, language="en"):
    texts = tuple(Option(number, text) for number, text in enumerate(options, start=1)) or question.options
    asked = question.model_copy(update={"options": texts, "language": language})
    return answer({"kind": "span_reader"}, asked, span).answer


@pytest.mark.parametrize(
    ("span", "options", "language", "number"),
    [
        ("potentials that are added, which they can", (), "en", 3),  # added: the only word that counts
        ("a refractory period", (), "en", 5),
        ("long distance", (), "en", 4),
        ("nothing of this", (), "en", 5),  # no overlap: the longest
        ("present at long distances", (), "en", 4),  # 2 of 3 against 1 of 3
        ("the hearts", ("heart", "heart", "heart"), "en", 1),
        ("cell the 5 HYPERPOLARIZED", ("The depolarizing nerves, 6", "The hyperpolarizing cells, 5"), "en", 2),
        ("las célula", ("los nervios largos", "las células"), "es", 2),
        ("As células", ("células", "As nervios longos"), "gl", 1),
        ("vitamin A deficiencies", ("A deficiency of the vitamin K", "A deficiency of the vitamin A"), "en", 2),
        ("not all by the heart, which they were", ("not by all of it, which they were", "heart of it"), "en", 2),
    ],
)  # fmt: skip
def test_the_largest_share_of_an_options_stems_wins_then_the_longest(question, span, options, language, number) -> None:
    assert choose(question, span, *options, language=language) == number


def test_the_span_is_the_reply_and_no_passage_is_no_answer(question) -> None:
    said = answer({"kind": "span_reader"}, question, "They can be added.")
    assert (said.answer, said.reply, said.model, said.prompt_tokens) == (3, "They can be added.", "tiny", None)
    assert [passage.id for passage in said.passages] == ["a"]
    none = answer({"kind": "span_reader"}, question, None)
    assert (none.status, none.reason) == (Status.UNANSWERED, Reason.ABSTAINED)


def test_the_option_that_is_entailed_most_wins_and_scores_are_kept(question) -> None:
    said = answer({"kind": "entailment"}, question, {1: (-3.0, "no"), 2: (-0.5, "so"), 4: (-0.5, "so too")})
    assert (said.answer, said.reply, said.tied) == (2, "so", 2)
    assert said.score_unit == "nats (log-probability of entailment)"
    chances = said.option_probabilities
    assert chances[2] == pytest.approx(math.exp(-0.5) / (2 * math.exp(-0.5) + math.exp(-3)))
    assert (chances[3] < 1e-299, list(said.option_scores)) == (True, [1, 2, 3, 4, 5])
    none = answer({"kind": "entailment"}, question, {})
    assert (none.status, none.option_scores) == (Status.UNANSWERED, None)
