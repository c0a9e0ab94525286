"""Reading ahead: many questions a batch, each read once, as translated where queries are in another language."""

import numpy as np
import pytest

from medexam.companions.readers.entailment import load_entailment_reader
from medexam.experiments import Retrieval
from medexam.experiments.plan.context_lookup import pin_reader, reader_identity, with_reader
from medexam.experiments.plan.passage_lookup import HitCache
from medexam.retrievers import Hit, Passage, Span
from medexam.specs.programs.behind_passages import RetrieveVerifySpec
from medexam.specs.programs.readers import EntailmentSpec, SpanReaderSpec
from retrievers.tiny_models import save_reader

LABELS = ("contradiction", "entailment", "neutral")


class Finder:
    digest = "d"

    def search(self, queries, k):
        return [
            [
                Hit(Passage(f"{query[:9]} {rank}", "T", f"About {query}. More {rank}.", "s"), 9.0 - rank, rank)
                for rank in range(k)
            ]
            for query in queries
        ]


class Spans:
    label, batch = "tiny", 2

    def __init__(self) -> None:
        self.calls: list[int] = []

    def read(self, pairs):
        self.calls.append(len(pairs))
        assert all(context.startswith(f"T\nAbout {question}.") for question, context in pairs)
        return [Span(context[-3:], 0, 3, float(len(context))) for _, context in pairs]


class Entailed(Spans):
    def score(self, pairs):
        self.calls.append(len(pairs))
        return np.array([-1.0 / len(premise) for premise, _ in pairs])


def make(spec, tmp_path, translations=None):
    cache = HitCache(tmp_path, "d")
    plain = Retrieval(spec.retrieval, lambda _: Finder(), cache, size=99, translations=translations)
    return with_reader(plain, spec.local_reader)


@pytest.fixture
def questions(question):
    return [question.model_copy(update={"key": f"q{n}", "stem": f"stem {n}"}) for n in range(12)]


def test_questions_are_read_ahead_in_the_order_of_asking_and_once(questions, tmp_path) -> None:
    spec, reader = SpanReaderSpec(kind="span_reader", reader="m", k=3), Spans()
    reading = make(spec, tmp_path)
    reading.load = lambda _: reader
    assert reading.fill(questions) == 12
    ordered = reading.in_prefix_order(questions)
    for question in ordered:
        read = reading.read_span(question)
        assert (read.span.text, read.reader, len(read.hits)) == ("2.", "tiny", 3) or read.span.text.endswith(".")
        assert read.question is question
    # Three pairs a question, blocks of at least 4 batches of 2.
    assert reader.calls == [9, 9, 9, 9]
    assert reading.read_span(ordered[0]).span is not None
    assert len(reader.calls) == 4


def test_each_option_is_judged_by_sentences_of_its_own_passages(questions, tmp_path) -> None:
    reader = Entailed()
    reading = make(EntailmentSpec(kind="entailment", reader="m", k=2), tmp_path)
    reading.load = lambda _: reader
    reading.fill(questions[:1])
    read = reading.read_entailments(questions[0])
    assert reader.calls[-1] >= 5 * 2 * 2
    assert list(read.best) == [1, 2, 3, 4, 5]
    assert all(f"stem 0 {option.text}"[:-1] in read.best[option.number][1] for option in questions[0].options)
    assert len(read.hits) == 2 * 5 or len({hit.passage.id for hit in read.hits}) == len(read.hits)


def test_supports_are_the_best_sentence_of_each_passage_for_each_option(questions, tmp_path) -> None:
    spec = RetrieveVerifySpec(kind="retrieve_verify", reader=str(save_reader(tmp_path / "nli", 3, labels=LABELS)), k=2)
    reading = make(spec, tmp_path)
    reading.fill(questions[:3])
    model = load_entailment_reader(spec.reader)
    for question in questions[:3]:
        supports = reading.read_supports(question)
        hits = reading.find(question)
        assert list(supports) == [hit.passage.id for hit in hits]
        for hit in hits:
            first, second = hit.passage.content.split(". ")
            for option in question.options:
                hypothesis = f"{question.stem} {option.text}"
                alone = [float(model.score([(part, hypothesis)])[0]) for part in (f"{first}.", second)]
                assert supports[hit.passage.id][option.number] == pytest.approx(max(alone), abs=1e-5)


def test_translations_are_read_in_their_language(questions, tmp_path) -> None:
    spanish = {one.key: one.model_copy(update={"language": "es", "stem": f"raíz {one.key}"}) for one in questions}
    spec = SpanReaderSpec(kind="span_reader", reader="m", query_language="es")
    reading = make(spec, tmp_path, translations=lambda: spanish)
    reading.load = lambda _: Spans()
    reading.fill(questions)
    assert reading.read_span(questions[3]).question.stem == "raíz q3"


def _identity(**settings):
    return reader_identity(pin_reader(SpanReaderSpec(kind="span_reader", **settings).local_reader))


def test_identity_follows_the_weights_and_not_the_place(tmp_path) -> None:
    one = save_reader(tmp_path / "a" / "qa", 1)
    same = save_reader(tmp_path / "b" / "qa", 1)
    other = save_reader(tmp_path / "c" / "qa", 2)
    first, second, third = (_identity(reader=folder) for folder in (one, same, other))
    assert first == second != third
    hub = _identity(reader="who/what", revision="a" * 40)
    assert hub == {"revision": "a" * 40, "tokens": [384, 128]}
