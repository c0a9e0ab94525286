"""A real model, small and random, learns real explanations by heart; and what it cannot learn from is named.

The spans are argument components of CasiMedicos-Arg. They are an exercise in learning: the data do not say which part
of an explanation argues for the right option.
"""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from medexam.errors import DatasetError
from medexam_companions.casimedicos import (
    SpanReader,
    load_reader,
    make_lessons,
    read_casimedicos,
    read_span_file,
)
from retrievers.tiny_models import save_bert, save_reader

pytestmark = pytest.mark.usefixtures("no_collection")


@pytest.fixture(scope="module")
def exercise(tmp_path_factory) -> Path:
    """Twenty claims of physicians in their explanations, in SQuAD's form."""
    root = os.environ.get("MEDEXAM_DATA")
    if not root:
        pytest.skip("MEDEXAM_DATA is not set: it names the folder that holds casimedicos/casimedicos-arg.tar.gz")
    rows = []
    for document in read_casimedicos(Path(root) / "casimedicos" / "casimedicos-arg.tar.gz", "en", ["train"]):
        claims = [each for each in document.components if each.label == "claim"]
        if claims and len(document.explanation) < 500:
            text = document.explanation[claims[0].start : claims[0].end]
            answers = {"text": [text], "answer_start": [claims[0].start]}
            row = {"id": document.key, "question": document.question, "context": document.explanation}
            rows.append(row | {"answers": answers})
    path = tmp_path_factory.mktemp("data") / "claims.json"
    path.write_text(json.dumps(rows[:20]), encoding="utf-8")
    return path


def save_encoder(folder: Path, *files: Path) -> Path:
    """A BERT of two layers without dropout whose vocabulary is the words of the files."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    text = " ".join(f"{row['question']} {row['context']}" for file in files for row in json.loads(file.read_text()))
    words = sorted(set(re.findall(r"\w+|[^\w\s]", text.lower())))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    folder.mkdir()
    BertTokenizerFast(vocab={word: number for number, word in enumerate(vocabulary)}).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=96,
        max_position_embeddings=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def finetune(medexam):
    """`finetune(out, model=..., train=..., epochs=2)`: the record of the cell, and what stands on standard error."""

    def call(out, code=0, **options):
        words = ["--out", out, "--json", "--set", "device=cpu"]
        for name, value in options.items():
            words += [f"--{name}", value] if name in ("model", "train", "validation") else ["--set", f"{name}={value}"]
        ended, said, err = medexam("finetune", *words)
        assert ended == code, err
        return (json.loads(said)[0]["record"] if said else None), err

    return call


def _predictions(folder: Path) -> dict[str, str]:
    lines = (folder / "validation_predictions.jsonl").read_text().splitlines()
    return {row["id"]: row["prediction"] for row in map(json.loads, lines)}


@pytest.mark.nightly
def test_a_random_encoder_learns_real_explanations_by_heart(finetune, exercise, tmp_path) -> None:
    base, out = save_encoder(tmp_path / "base", exercise), tmp_path / "reader"
    done, err = finetune(out, model=base, train=exercise, validation=exercise, epochs=30, learning_rate=2e-3)
    assert done["validation"]["squad"]["f1"] > 95
    assert "20 of 20 questions are in the training data too" in err
    record = json.loads((out / "finetuning.json").read_text())
    assert record["data"][str(exercise)]["questions"] == 20
    assert record["base"]["revision"].startswith("sha256:")
    assert record["settings"]["seed"] == 42
    assert record["environment"]["packages"]["transformers"]
    # What the written model says is what was scored.
    reader = SpanReader(load_reader(out, "span", device="cpu"), 512)
    items = read_span_file(exercise)
    spans = reader.read([(item.question, item.context) for item in items])
    said = _predictions(out)
    assert [span.text for span in spans] == [said[item.key] for item in items]
    right = sum(said[item.key] == item.answers[0].text for item in items)
    assert done["validation"]["squad"]["exact_match"] == pytest.approx(100 * right / 20, abs=10)
    assert not list(tmp_path.glob(".reader-*"))


def test_a_reader_that_learnt_from_unanswerable_questions_predicts_nothing(finetune, exercise, tmp_path) -> None:
    rows = json.loads(exercise.read_text())[:6]
    train, validation = tmp_path / "train.json", tmp_path / "validation.json"
    train.write_text(json.dumps([row | {"answers": {"text": [], "answer_start": []}} for row in rows]))
    validation.write_text(json.dumps(rows))
    files = {"model": save_encoder(tmp_path / "base", train), "train": train, "validation": validation}
    done, _ = finetune(tmp_path / "reader", **files, epochs=10, learning_rate=2e-3)
    assert done["data"][str(train)]["unanswerable"] == 6
    assert set(_predictions(tmp_path / "reader").values()) == {""}
    # The same model, asked for its best span all the same.
    reader = SpanReader(load_reader(tmp_path / "reader", "span", device="cpu"))
    assert all(span.text for span in reader.read([(row["question"], row["context"]) for row in rows]))


def test_the_same_settings_give_the_same_weights(finetune, exercise, tmp_path) -> None:
    settings = {"model": save_encoder(tmp_path / "base", exercise), "train": exercise, "epochs": 1}
    hashes = set()
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        finetune(tmp_path / name, **settings, seed=seed)
        hashes.add(hashlib.sha256((tmp_path / name / "model.safetensors").read_bytes()).hexdigest())
    assert len(hashes) == 2


def span_file(folder: Path, *items: tuple[str, str, str | None, int]):
    """A file of questions: id, context, answer and where it begins."""
    rows = [
        {
            "id": key,
            "question": "what is the heart",
            "context": context,
            "answers": {"text": [] if answer is None else [answer], "answer_start": [] if answer is None else [start]},
        }
        for key, context, answer, start in items
    ]
    path = folder / "spans.json"
    path.write_text(json.dumps(rows))
    return path


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(save_reader(tmp_path_factory.mktemp("models") / "qa", 1))


def test_answers_are_labelled_in_every_window_that_holds_them_whole(tokenizer, tmp_path) -> None:
    words = ["heart", "blood", "kidney", "fever", "nerve", "bone", "lung", "dose", "drug", "cell"] * 4
    context, answer = " ".join(words), "fever nerve bone"
    lessons, omissions = make_lessons(
        read_span_file(span_file(tmp_path, ("a", context, answer, context.index(answer)))), tokenizer, 24, 6
    )
    assert omissions == {}
    labelled = [one for one in lessons if one["start_positions"]]
    assert len(lessons) > len(labelled) >= 1
    for one in labelled:
        ids = one["input_ids"][one["start_positions"] : one["end_positions"] + 1]
        assert tokenizer.decode(ids) == answer
    assert all(one["end_positions"] == 0 for one in lessons if not one["start_positions"])


def test_what_nothing_is_learnt_from_is_counted_and_named(tokenizer, tmp_path) -> None:
    long = " ".join(["heart blood kidney"] * 20)
    items = (("long", long, long, 0), ("off", "the heart", "heart", 1), ("none", "the heart", None, 0))
    good = ("good", " the heart is", " heart ", 4)
    lessons, omissions = make_lessons(read_span_file(span_file(tmp_path, *items, good)), tokenizer, 24, 6)
    assert set(omissions) == {"long", "off"}
    # That a question has no answer is learnt too.
    places = [(one["start_positions"], one["end_positions"]) for one in lessons]
    assert (len(places), places[0]) == (2, (0, 0))
    with pytest.raises(DatasetError, match="no question is left to learn from: answers that fit"):
        make_lessons(read_span_file(span_file(tmp_path, items[0])), tokenizer, 24, 6)


def test_what_cannot_be_done_is_said_before_it_is_begun(finetune, tmp_path) -> None:
    train, out = tmp_path / "t.json", tmp_path / "o"
    base = save_bert(tmp_path / "base", 1)
    assert "--model MODEL --train FILE" in finetune(out, model=base, code=2)[1]
    assert "did you mean 'epochs'" in finetune(out, model=base, train=train, epoch=3, code=2)[1]
    assert "cannot be read" in finetune(out, model=base, train=train, code=2)[1]
    span_file(tmp_path, ("1", "the heart", "heart", 4)).rename(train)
    assert "exists already" in finetune(tmp_path, model=base, train=train, code=2)[1]
    assert "move it away, or name another" in finetune(train / "o", model=base, train=train, code=2)[1]
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    assert "its weights lack bert" in finetune(out, model=base, train=train, code=2)[1]
    assert not list(tmp_path.glob(".o*"))
    assert not out.exists()
