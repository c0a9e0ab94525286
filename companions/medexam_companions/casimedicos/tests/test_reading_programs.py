"""The options that follow from what a local model read: a span by its overlap, entailment by its probability."""

import math

import pytest

from medexam.predictions import Reason, Status
from medexam.programs import ProgramContext, build_prediction, build_program
from medexam.questions import Option
from medexam.retrievers import Hit, Passage
from medexam.specs import build_cells, build_identity
from medexam_companions.casimedicos import Span

HITS = (Hit(Passage("a", "Potentials", "They can be added.", "test"), 5.0, 1),)


class Finder:
    """One passage for every question; `options` have passages of their own."""

    def __init__(self, hits, options) -> None:
        self.hits = hits
        self.options = options

    def find(self, _):
        return self.hits

    def find_per_option(self, question):
        own = {number: [Hit(Passage(f"{number}", "", text, "test"), 1.0, 1)] for number, text in self.options.items()}
        return {number: own.get(number, []) for number in question.option_numbers}

    def asked(self, question):
        return question


class Reader:
    """A local model that finds what it is told to."""

    label = "tiny"

    def __init__(self, said) -> None:
        self.said = said

    def read(self, pairs):
        found = self.said if isinstance(self.said, list) else [Span(self.said, 0, len(self.said or ""), 1.0)]
        assert len(pairs) == len(found)
        return found


def answer(program, question, said, hits=HITS, options=None):
    _, (cell,) = build_cells({"name": "x", "program": {"reader": "models/one", **program}}, {})
    context = ProgramContext(reader=Reader(said), finder=Finder(hits, options or {}))
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
    none = answer({"kind": "span_reader"}, question, [], hits=())
    assert (none.status, none.reason) == (Status.UNANSWERED, Reason.ABSTAINED)


def test_the_option_that_is_entailed_most_wins_and_scores_are_kept(question) -> None:
    passages = {1: "no", 2: "So it is. At last.", 4: "so too"}
    said = answer({"kind": "entailment"}, question, [-3.0, -0.5, -0.7, -0.5], options=passages)
    assert (said.answer, said.reply, said.tied) == (2, "So it is.", 2)
    assert [passage.id for passage in said.passages] == ["1", "2", "4"]
    assert said.score_unit == "nats (log-probability of entailment)"
    chances = said.option_probabilities
    assert chances[2] == pytest.approx(math.exp(-0.5) / (2 * math.exp(-0.5) + math.exp(-3)))
    assert (chances[3] < 1e-299, list(said.option_scores)) == (True, [1, 2, 3, 4, 5])
    none = answer({"kind": "entailment"}, question, [])
    assert (none.status, none.option_scores) == (Status.UNANSWERED, None)


def test_labels() -> None:
    _, (spans,) = build_cells({"name": "x", "program": {"kind": "span_reader", "reader": "a/qa"}}, {})
    assert spans.program.label == "span_reader-qa-medcpt"
    _, (entailed,) = build_cells({"name": "x", "program": {"kind": "entailment", "reader": "m"}}, {})
    assert entailed.program.label == "entailment-m-medcpt"


def test_the_content_of_a_reader_counts_and_its_place_does_not() -> None:
    def known(folder: str, **reader: str):
        _, (cell,) = build_cells({"name": "x", "program": {"kind": "span_reader", "reader": folder}}, {})
        return build_identity(cell, fingerprint="f", words={}, retriever={"kind": "bm25"}, reader=reader)

    assert known("a/qa", revision="1") == known("b/qa", revision="1") != known("a/qa", revision="2")
    assert "model" not in known("a/qa", revision="1")
