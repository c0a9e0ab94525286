"""`medexam data quality`: BLEU and BERTScore, the round trip, and the published translation as reference."""

import json
from pathlib import Path

import pytest

from medexam.datasets import load_exam_set
from medexam.errors import EngineError
from medexam.specs import DatasetSpec
from medexam_companions.translation import BertScore, score_bleu

GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."


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


@pytest.fixture
def quality(medexam, untracked):
    """`quality(folder, "--reference")`: what the command says of a folder, and its warnings."""

    def call(*words, code=0):
        ended, out, err = medexam("data", "quality", *words, *untracked, "--json")
        assert ended == code, err
        return (json.loads(out)[0] if out else None), err

    return call


def test_bleu_is_sacrebleus_and_says_so() -> None:
    texts = ["the drug is given twice a day", "another sentence that is here"]
    same, signature = score_bleu(texts, texts)
    assert same == pytest.approx(100)
    assert signature.startswith("BLEU nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2")
    assert score_bleu(["nothing alike here at all"], [texts[0]])[0] < 10


def test_bertscore_loads_a_folder_and_a_layer(bert_folder, tmp_path) -> None:
    scorer = BertScore(str(bert_folder), 2)
    assert scorer.signature.startswith("BERTScore bert sha256:")
    assert " layer 2, no idf, not rescaled (bert-score " in scorer.signature
    same, other, empty = scorer.score(["a drug", "a drug", " "], ["a drug", "zzz", "a drug"])
    assert same == pytest.approx(1, abs=1e-5)
    assert other < same
    assert empty == 0
    assert scorer.score(["long " * 200], ["long " * 200])[0] == pytest.approx(1, abs=1e-5)
    for model, layer, said in (
        (bert_folder, 3, "cannot load layer 3 of "),
        (bert_folder, None, "knows no layer for"),
        (tmp_path / "nothing", 1, "leave BERTScore out with --no-bert"),
    ):
        with pytest.raises(EngineError, match=said):
            BertScore(str(model), layer)


def test_the_round_trip_scores_the_chosen_ones(translate, script, quality, bert_folder) -> None:
    found = translate(*script({"*": GOOD}), limit=2)
    told, _ = quality(found.folder, "--bert-model", bert_folder, "--bert-layer", 1)
    rows = told["measured"]
    assert [(row["what"], row["setup"], row["questions"], row["invalid"]) for row in rows] == [
        ("round trip", "selected", 2, 0)
    ]
    assert all(0 <= row["bleu"] < 20 and 0 < row["bert_f1"] < 1 for row in rows)
    assert json.loads((found.folder / "quality.json").read_text())["measured"] == rows


def test_a_perfect_translation_has_the_published_one_as_its_reference(translate, script, quality) -> None:
    spec = DatasetSpec(name="headqa_sample", language="en", option_counts=(4,))
    published = {question.key: question for question in load_exam_set(spec).questions}
    replies = {}
    for one in load_exam_set(spec.model_copy(update={"language": "es"})).questions:
        english = published[one.key]
        options = (f"{option.number}. {option.text}" for option in english.options)
        replies[one.stem] = "\n".join([english.stem, *options])
    found = translate(*script(replies), "--setups", "expert", limit=6)
    told, _ = quality(found.folder, "--no-back", "--no-bert", "--reference")
    rows = told["measured"]
    assert [(row["what"], row["setup"], row["questions"]) for row in rows] == [
        ("reference", "expert", 6),
        ("reference", "selected", 6),
    ]
    assert all(row["bleu"] == pytest.approx(100) and row["bert_f1"] is None for row in rows)
    galician = translate(*script({"*": GOOD}), "--setups", "expert", "--to", "gl", limit=1)
    _, err = quality(galician.folder, "--no-back", "--no-bert", "--reference", code=2)
    assert "headqa_sample is not published in gl" in err


@pytest.mark.usefixtures("runs_dir")
def test_a_translation_and_its_quality_are_one_run_of_mlflow(medexam, script, client, uri, tmp_path) -> None:
    words = ("--limit", 2, "--set", "dataset.option_counts=[4]", "--runs-dir", tmp_path, "--tracking-uri", uri)
    replies = (*script({"*": GOOD}), "--setups", "expert")
    code, out, err = medexam("data", "translate", "headqa_sample", *words, *replies)
    assert (code, "es to en · scripted" in out) == (0, True), err
    (folder,) = tmp_path.glob("translate-*")
    code, out, err = medexam("data", "quality", folder, "--no-back", "--no-bert", "--reference", "--tracking-uri", uri)
    assert (code, "Reference: the translation" in out) == (0, True), err
    experiment = client.get_experiment_by_name("translations")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.data.metrics["valid.expert"], run.data.metrics["rule.only_valid"]) == (2, 2)
    assert "reference.bleu.selected" in run.data.metrics
