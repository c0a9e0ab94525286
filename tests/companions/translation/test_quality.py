"""Scores of translations: BLEU and BERTScore on real texts and a random model, the round trip, lost terms."""

import os
from pathlib import Path

import pytest

from medexam.companions.translation.actions import ask_pending
from medexam.companions.translation.layout import render_layout, text_of
from medexam.companions.translation.outcome import find_outcome
from medexam.companions.translation.quality import count_kept, count_terms, measure_back, measure_reference, plan_back
from medexam.companions.translation.scores import BertScore, score_bleu
from medexam.datasets import load_exam_set
from medexam.errors import EngineError, SpecError
from medexam.fingerprints import fingerprint_folder
from medexam.specs import DatasetSpec

GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."
ENDINGS = {"es": "HEAD.json", "en": "HEAD_EN.json"}


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with random weights and a vocabulary of letters, as a folder."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("random") / "bert"
    folder.mkdir()
    letters = [chr(code) for code in range(33, 127)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    shape = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64}
    BertModel(BertConfig(vocab_size=len(words), num_hidden_layers=2, **shape)).save_pretrained(folder)
    return folder


def test_bleu_is_sacrebleus_and_says_so() -> None:
    texts = ["the drug is given twice a day", "another sentence that is here"]

    same = score_bleu(texts, texts)
    assert same.score == pytest.approx(100)
    assert same.signature.startswith("BLEU nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2")
    assert score_bleu(["nothing alike here at all"], [texts[0]]).score < 10


def test_bertscore_loads_a_folder_and_a_layer(bert_folder) -> None:
    scorer = BertScore(str(bert_folder), 2)

    content = fingerprint_folder(bert_folder)
    assert scorer.signature.startswith(f"BERTScore bert {content} layer 2, no idf, not rescaled (bert-score ")
    same, other, empty = scorer.score(["a drug", "a drug", " "], ["a drug", "zzz", "a drug"])
    assert same == pytest.approx(1, abs=1e-5)
    assert other < same
    assert empty == 0
    assert scorer.score(["long " * 200], ["long " * 200])[0] == pytest.approx(1, abs=1e-5)


def test_a_model_that_cannot_score_is_refused(bert_folder, tmp_path, monkeypatch) -> None:
    with pytest.raises(EngineError, match="has layers 1 to 2"):
        BertScore(str(bert_folder), 3)
    with pytest.raises(EngineError, match="knows no layer for"):
        BertScore(str(bert_folder))
    with pytest.raises(EngineError, match="--bert-model, or leave BERTScore out"):
        BertScore(str(tmp_path / "nothing"), 1)
    misleading = tmp_path / "t5"
    misleading.symlink_to(bert_folder)
    with pytest.raises(EngineError, match="contains 't5': rename the folder"):
        BertScore(str(misleading), 2)


def test_the_round_trip_scores_every_setup_and_the_chosen_ones(translate, script, bert_folder) -> None:
    plan, _, _ = translate(script({"*": GOOD}), limit=2)
    outcome = find_outcome(plan)
    runs, back = plan_back(plan, outcome, "expert")
    ask_pending(plan, runs, tuple(back.values()), None)
    _, back = plan_back(plan, outcome, "expert")

    rows, signatures = measure_back(plan, outcome, back, BertScore(str(bert_folder), 1))

    assert [(row.what, row.setup, row.questions, row.invalid) for row in rows] == [
        ("round trip", setup, 2, 0) for setup in ("zero_shot", "one_shot", "expert", "selected")
    ]
    assert all(0 <= row.bleu < 20 for row in rows)
    assert all(0 < row.bert_f1 < 1 for row in rows)
    assert [signature.split()[0] for signature in signatures] == ["BLEU", "BERTScore"]
    assert "from English to Spanish" in next(iter(back.values())).words.system
    (only,) = plan_back(plan, outcome, "expert", only_selected=True)[1].values()
    assert len(only.cell.pending) == 2


def test_a_perfect_translation_has_the_published_one_as_its_reference(translate, script) -> None:
    spec = DatasetSpec(name="headqa_sample", language="en", option_counts=(4,))
    published = {question.key: question for question in load_exam_set(spec).questions}
    spanish = load_exam_set(spec.model_copy(update={"language": "es"})).questions
    replies = {one.stem: render_layout(text_of(published[one.key])) for one in spanish}
    plan, _, _ = translate(script(replies), limit=6, setups=("expert",))
    outcome = find_outcome(plan)

    rows, _ = measure_reference(plan, outcome, None)

    assert [(row.setup, row.questions) for row in rows] == [("expert", 6), ("selected", 6)]
    assert all(row.bleu == pytest.approx(100) and row.bert_f1 is None for row in rows)


def test_a_language_without_a_published_translation_has_no_reference(translate, script) -> None:
    plan, _, _ = translate(script({"*": GOOD}), limit=1, target="gl", setups=("expert",))

    with pytest.raises(SpecError, match="headqa_sample is not published in gl"):
        measure_reference(plan, find_outcome(plan), None)


def test_lost_terms_are_counted_by_setup(translate, script) -> None:
    plan, _, _ = translate(script({"*": GOOD}), limit=20, setups=("expert",))

    expert, selected = count_terms(plan, find_outcome(plan))

    assert (expert.setup, selected.setup) == ("expert", "selected")
    assert expert.terms["number"] > 0
    assert expert.lost["number"] <= expert.terms["number"]
    assert expert.questions == len(expert.missing) > 0


@pytest.mark.data
@pytest.mark.skipif("MEDEXAM_DATA" not in os.environ, reason="set MEDEXAM_DATA")
def test_real_spanish_and_english_of_headqa_v1_score_as_different_languages() -> None:
    spec = DatasetSpec(name="headqa_v1", language="en", years=(2017,), disciplines=("medicine",))
    english = {question.key: text_of(question) for question in load_exam_set(spec).questions}
    spanish = {q.key: text_of(q) for q in load_exam_set(spec.model_copy(update={"language": "es"})).questions}

    there = [render_layout(english[key]) for key in spanish]
    here = [render_layout(text) for text in spanish.values()]
    assert score_bleu(there, there).score == pytest.approx(100)
    # Names, numbers and the layout are the same in both.
    assert 2 < score_bleu(there, here).score < 25
    count = count_kept("published", english, spanish)
    assert count.terms["dose"] > 100
    assert count.lost["dose"] / count.terms["dose"] < 0.03
