"""The options that follow from what a model read."""

import math

import pytest

from medexam.predictions import Reason, Status
from medexam.programs import Entailments, ProgramContext, ReadSpan, build_prediction, build_program
from medexam.programs.retrieval.reading import choose_by_overlap
from medexam.programs.retrieval.stems import stems
from medexam.questions import Option
from medexam.retrievers import Hit, Passage, Span
from medexam.specs.programs.readers import EntailmentSpec, SpanReaderSpec

HITS = (Hit(Passage("a", "Potentials", "They can be added.", "test"), 5.0, 1),)
SPAN = SpanReaderSpec(kind="span_reader", reader="models/qa")
ENTAILED = EntailmentSpec(kind="entailment", reader="models/nli")


class Reader:
    def __init__(self, said) -> None:
        self.said = said

    def read_span(self, question):
        span = None if self.said is None else Span(self.said, 0, len(self.said), 1.0)
        return ReadSpan(question, span, HITS if span else (), "tiny")

    def read_entailments(self, question):
        return Entailments(self.said, HITS, "tiny")


def answer(spec, question, said):
    program = build_program(spec, question.language, ProgramContext(reader=Reader(said)))
    return build_prediction(question, program(question=question), program=spec.label, spec_digest="d", latency_s=0.1)


def test_stems_agree_where_endings_differ() -> None:
    assert stems("The hyperpolarizing cells, 5", "en") == stems("cell the 5 HYPERPOLARIZED", "en")
    assert stems("las células", "es") == stems("las célula", "es")
    assert stems("As células", "gl") == {"as", "células"}


def test_stop_words_do_not_count_and_symbols_do(question) -> None:
    assert stems("A deficiency of the vitamin A", "en") == stems("vitamin A deficiencies", "en")
    assert stems("El de la hepatitis A", "es") == {"hepatitis", "a"}
    options = ("not by all of it, which they were", "heart of the matter")
    same = question.model_copy(update={"options": tuple(Option(number=n, text=t) for n, t in enumerate(options, 1))})
    assert choose_by_overlap(same, "it is not all by the heart, which they were") == 2


@pytest.mark.parametrize(
    ("span", "number"),
    [
        ("potentials that are added, which they can", 3),  # added: the only word that counts
        ("a refractory period", 5),
        ("long distance", 4),
        ("nothing of this", 5),  # no overlap: the longest
        ("present at long distances", 4),  # 2 of 3 against 1 of 3
    ],
)
def test_the_largest_share_of_an_options_stems_wins_then_the_longest(question, span, number) -> None:
    assert choose_by_overlap(question, span) == number
    assert answer(SPAN, question, span).answer == number


def test_of_equal_shares_and_lengths_the_first_wins(question) -> None:
    same = question.model_copy(update={"options": tuple(Option(number=n, text="heart") for n in (1, 2, 3))})
    assert choose_by_overlap(same, "the hearts") == 1


def test_the_span_is_the_reply_and_no_passage_is_no_answer(question) -> None:
    said = answer(SPAN, question, "They can be added.")
    assert (said.answer, said.reply, said.model, said.prompt_tokens) == (3, "They can be added.", "tiny", None)
    assert [passage.id for passage in said.passages] == ["a"]
    none = answer(SPAN, question, None)
    assert (none.status, none.reason) == (Status.UNANSWERED, Reason.ABSTAINED)


def test_the_option_that_is_entailed_most_wins_and_scores_are_kept(question) -> None:
    said = answer(ENTAILED, question, {1: (-3.0, "no"), 2: (-0.5, "so"), 4: (-0.5, "so too")})
    assert (said.answer, said.reply, said.tied, said.score_unit) == (
        2,
        "so",
        2,
        "nats (log-probability of entailment)",
    )
    chances = said.option_probabilities
    assert chances[2] == pytest.approx(math.exp(-0.5) / (2 * math.exp(-0.5) + math.exp(-3)))
    assert (chances[3] < 1e-299, list(said.option_scores)) == (True, [1, 2, 3, 4, 5])
    none = answer(ENTAILED, question, {})
    assert (none.status, none.option_scores) == (Status.UNANSWERED, None)


async def test_both_answer_beside_the_network_loop(question) -> None:
    program = build_program(SPAN, "en", ProgramContext(reader=Reader("long distances")))
    assert (await program.acall(question=question)).answer == 4
