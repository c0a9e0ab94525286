"""`medexam data quality`: BLEU and BERTScore, the round trip, lost terms, and sheets for reviewers."""

import csv
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
    """`quality(folder, "--reference")`: what the command says of a folder or of sheets, and its warnings."""

    def call(*words, code=0):
        tracking = untracked if "--reviews" not in words and "--sheet" not in words else ()
        ended, out, err = medexam("data", "quality", *words, *tracking, "--json")
        assert ended == code, err
        told = json.loads(out) if out else None
        return (told[0] if isinstance(told, list) else told), err

    return call


def test_bleu_is_sacrebleus_and_says_so() -> None:
    texts = ["the drug is given twice a day", "another sentence that is here"]
    same = score_bleu(texts, texts)
    assert same.score == pytest.approx(100)
    assert same.signature.startswith("BLEU nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2")
    assert score_bleu(["nothing alike here at all"], [texts[0]]).score < 10


def test_bertscore_loads_a_folder_and_a_layer(bert_folder, tmp_path) -> None:
    scorer = BertScore(str(bert_folder), 2)
    assert scorer.signature.startswith("BERTScore bert sha256:")
    assert " layer 2, no idf, not rescaled (bert-score " in scorer.signature
    same, other, empty = scorer.score(["a drug", "a drug", " "], ["a drug", "zzz", "a drug"])
    assert same == pytest.approx(1, abs=1e-5)
    assert other < same
    assert empty == 0
    assert scorer.score(["long " * 200], ["long " * 200])[0] == pytest.approx(1, abs=1e-5)
    (tmp_path / "t5").symlink_to(bert_folder)
    for model, layer, said in (
        (bert_folder, 3, "has layers 1 to 2"),
        (bert_folder, None, "knows no layer for"),
        (tmp_path / "nothing", 1, "--bert-model, or leave BERTScore out"),
        (tmp_path / "t5", 2, "contains 't5': rename the folder"),
    ):
        with pytest.raises(EngineError, match=said):
            BertScore(str(model), layer)


def test_the_round_trip_scores_every_setup_and_the_chosen_ones(translate, script, quality, bert_folder) -> None:
    found = translate(*script({"*": GOOD}), limit=2)
    told, _ = quality(found.folder, "--bert-model", bert_folder, "--bert-layer", 1)
    rows = told["measured"]
    assert [(row["what"], row["setup"], row["questions"], row["invalid"]) for row in rows] == [
        ("round trip", setup, 2, 0) for setup in ("zero_shot", "one_shot", "expert", "selected")
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


def test_lost_terms_are_counted_by_setup(translate, script, quality) -> None:
    found = translate(*script({"*": GOOD}), "--setups", "expert", limit=20)
    expert, selected = quality(found.folder, "--no-back", "--no-bert")[0]["terms"]
    assert (expert["setup"], selected["setup"]) == ("expert", "selected")
    assert expert["terms"]["number"] >= expert["lost"]["number"] > 0
    assert 0 < expert["questions"] <= 20


@pytest.mark.usefixtures("runs_dir")
def test_a_translation_and_its_quality_are_one_run_of_mlflow(medexam, script, client, uri, tmp_path) -> None:
    words = ("--limit", 2, "--set", "dataset.option_counts=[4]", "--runs-dir", tmp_path, "--tracking-uri", uri)
    replies = (*script({"*": GOOD}), "--setups", "expert")
    code, out, err = medexam("data", "translate", "headqa_sample", *words, *replies)
    assert (code, "es to en · scripted" in out) == (0, True), err
    (folder,) = tmp_path.glob("translate-*")
    code, out, err = medexam("data", "quality", folder, "--no-back", "--no-bert", "--reference", "--tracking-uri", uri)
    assert (code, "Terms that must survive" in out) == (0, True), err
    experiment = client.get_experiment_by_name("translations")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.data.metrics["valid.expert"], run.data.metrics["rule.only_valid"]) == (2, 2)
    assert "reference.bleu.selected" in run.data.metrics


def _fill(path: Path, marks, *, name: str, delimiter: str = ",") -> Path:
    rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    for row, (adequacy, fluency) in zip(rows, marks, strict=True):
        row |= {"adequacy": adequacy, "fluency": fluency}
    filled = path.with_name(f"{name}.csv")
    with filled.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys(), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return filled


def test_a_sheet_goes_out_and_comes_back(translate, script, medexam, quality, tmp_path) -> None:
    found = translate(*script({"*": GOOD}), "--setups", "expert")
    sheet = tmp_path / "sheet.csv"
    code, _, err = medexam("data", "quality", found.folder, "--sheet", sheet)
    assert code == 0, err
    rows = list(csv.DictReader(sheet.read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    assert [row["translation"] for row in rows] == [GOOD] * 4
    ana = _fill(sheet, [("5", "4"), (" 4 ", ""), ("3", "2"), ("", "")], name="ana", delimiter=";")
    luis = _fill(sheet, [("4", "4"), ("4", "4"), ("3", "2"), ("2", "2")], name="luis")
    told, _ = quality("--reviews", ana, "--reviews", luis)
    assert [review["means"]["adequacy"] for review in told["reviews"]] == [4.0, 3.25]
    assert [(one["aspect"], one["n"], one["same"]) for one in told["agreement"]] == [
        ("adequacy", 3, pytest.approx(2 / 3)),
        ("fluency", 2, 1.0),
    ]
    for mark in ("6", "0", "4.5", "good"):
        wrong = _fill(sheet, [("5", "4"), (mark, "1"), ("", ""), ("", "")], name="eva")
        _, err = quality("--reviews", wrong, code=2)
        assert f"({rows[1]['question']}): adequacy is " in err
        assert "give a whole number from 1 to 5" in err
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert "lacks the columns question, adequacy, fluency" in quality("--reviews", tmp_path / "other.csv", code=2)[1]
