"""Readers around real models with random weights, against a reading without batches and windows by plain loops."""

import math

import numpy as np
import pytest
import torch

from medexam.errors import EngineError
from medexam_companions.casimedicos import EntailmentReader, SpanReader, load_reader
from retrievers.tiny_models import WORDS, save_bert, save_reader

LABELS = ("contradiction", "neutral", "Entailment")


@pytest.fixture(scope="module")
def qa(tmp_path_factory):
    return save_reader(tmp_path_factory.mktemp("models") / "qa", 1)


@pytest.fixture(scope="module")
def nli(tmp_path_factory):
    return save_reader(tmp_path_factory.mktemp("models") / "nli", 2, labels=LABELS)


def text(count: int, start: int = 0) -> str:
    return " ".join(WORDS[(start + 7 * place + place // 5) % len(WORDS)] for place in range(count))


def best_by_loops(folder, question: str, context: str, limit: int, window: int, shared: int):
    """Score, start and end of the best span: one window at a time, every pair of tokens looked at."""
    loaded = load_reader(folder, "span", device="cpu")
    offsets = loaded.tokenizer(context, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    ids = loaded.tokenizer(context, add_special_tokens=False)["input_ids"]
    asked = loaded.tokenizer(question, add_special_tokens=False)["input_ids"]
    room, best, at = window - len(asked) - 3, None, 0
    while True:
        part = ids[at : at + room]
        inputs = torch.tensor([[2, *asked, 3, *part, 3]])
        sides = torch.tensor([[0] * (len(asked) + 2) + [1] * (len(part) + 1)])
        with torch.inference_mode():
            said = loaded.model(input_ids=inputs, token_type_ids=sides)
        first = len(asked) + 2
        starts, ends = said.start_logits[0].tolist(), said.end_logits[0].tolist()
        for i in range(len(part)):
            for j in range(i, min(i + limit, len(part))):
                score = starts[first + i] + ends[first + j]
                if best is None or score > best[0] + 1e-4:
                    best = (score, offsets[at + i][0], offsets[at + j][1])
        if at + room >= len(ids):
            return best
        at += room - shared


def test_spans_are_the_best_over_all_windows_however_they_are_batched(qa) -> None:
    pairs = [("what is the heart", text(150)), ("which nerve", text(9, 3)), ("what dose", text(60, 5)), ("why", "")]
    reader = SpanReader(load_reader(qa, "span", device="cpu"), answer_tokens=6, window=40, shared=10)
    reader.batch = 3
    found = reader.read(pairs)
    assert found[3] is None
    for (question, context), span in zip(pairs[:3], found[:3], strict=True):
        score, start, end = best_by_loops(qa, question, context, 6, 40, 10)
        assert (span.start, span.end, span.text) == (start, end, context[start:end])
        assert span.score == pytest.approx(score, abs=1e-4)
    assert reader.read([]) == []
    again = reader.read(pairs[::-1])[::-1]
    assert [span.text for span in again[:3]] == [span.text for span in found[:3]]


def test_a_long_question_keeps_its_end_and_leaves_room(qa) -> None:
    reader = SpanReader(load_reader(qa, "span", device="cpu"), 6)
    context = text(500)
    (found,) = reader.read([(text(900), context)])
    score, start, end = best_by_loops(qa, " ".join(text(900).split()[-192:]), context, 6, 384, 128)
    assert (found.start, found.end) == (start, end)
    assert found.score == pytest.approx(score, abs=1e-4)


def test_entailment_is_the_softmax_at_its_label(nli) -> None:
    pairs = [(text(30), "the heart is blood"), (text(900), text(700)), ("fever", "cell"), (text(4), text(8))]
    reader = EntailmentReader(load_reader(nli, "entailment", device="cpu"))
    reader.batch = 3
    scores = reader.read(pairs)
    assert scores.shape == (4,)
    loaded = load_reader(nli, "entailment", device="cpu")
    for (premise, hypothesis), score in zip(pairs, scores, strict=True):
        ids = [loaded.tokenizer(one, add_special_tokens=False)["input_ids"] for one in (premise, hypothesis)]
        ids[1] = ids[1][-256:]
        ids[0] = ids[0][: 512 - 3 - len(ids[1])]
        inputs = torch.tensor([[2, *ids[0], 3, *ids[1], 3]])
        sides = torch.tensor([[0] * (len(ids[0]) + 2) + [1] * (len(ids[1]) + 1)])
        with torch.inference_mode():
            logits = loaded.model(input_ids=inputs, token_type_ids=sides).logits[0].tolist()
        whole = math.fsum(math.exp(logit) for logit in logits)
        assert score == pytest.approx(logits[2] - math.log(whole), abs=1e-4)
    assert np.array_equal(reader.read([]), np.empty(0))


@pytest.mark.parametrize("labels", [("LABEL_0", "LABEL_1"), ("not_entailment", "neutral"), ("entailment", "Entailed")])
def test_labels_without_entailment_are_refused_by_name(tmp_path, labels) -> None:
    folder = save_reader(tmp_path / "model", 2, labels=labels)
    with pytest.raises(EngineError, match=r"its labels are .*one of them must be entailment.*label2id"):
        EntailmentReader(load_reader(folder, "entailment", device="cpu"))


def test_an_encoder_without_a_head_is_refused_with_the_way_out(tmp_path, qa) -> None:
    plain = save_bert(tmp_path / "plain", 3)
    with pytest.raises(EngineError, match=r"lack qa_outputs.bias.*medexam finetune --model .*plain"):
        load_reader(plain, "span")
    with pytest.raises(EngineError, match=r"lack .*classifier.* fine-tuned for entailment"):
        load_reader(qa, "entailment")
