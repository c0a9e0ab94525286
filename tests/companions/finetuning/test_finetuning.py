"""A real model, small and random, learns real explanations by heart; and what it cannot learn from is named.

The spans are argument components of CasiMedicos-Arg. They are an exercise in learning: the data do not say which part
of an explanation argues for the right option.
"""

import dataclasses
import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from medexam.companions.casimedicos.documents import read_casimedicos
from medexam.companions.finetuning.encoder import finetune
from medexam.companions.finetuning.settings import FinetuningSettings
from medexam.companions.finetuning.windows import SpanFile, make_lessons, read_span_file, seen_before
from medexam.companions.readers.spans import load_span_reader
from medexam.datasets import SpanAnswer, SpanItem
from medexam.errors import DatasetError, EngineError, SpecError
from retrievers.tiny_models import save_bert, save_reader

pytestmark = pytest.mark.usefixtures("no_collection")


class Watcher:
    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.stages: list[tuple[str, int]] = []
        self.steps: list[int] = []

    def warns(self, line: str) -> None:
        self.warnings.append(line)

    def stage_starts(self, name, lessons, steps) -> None:
        self.stages.append((name, steps))

    def step_ends(self, step, epoch, loss) -> None:
        self.steps.append(step)


@pytest.fixture(scope="module")
def exercise(tmp_path_factory) -> Path:
    """Twenty claims of physicians in their explanations, in SQuAD's form."""
    root = os.environ.get("MEDEXAM_DATA")
    if not root:
        pytest.skip("MEDEXAM_DATA is not set: it names the folder that holds casimedicos/casimedicos-arg.tar.gz")
    rows = []
    for document in read_casimedicos(Path(root) / "casimedicos", "en", ["train"]):
        claims = [each for each in document.components if each.part == "explanation" and each.kind == "claim"]
        if claims and len(document.explanation) < 500:
            answers = {"text": [claims[0].text], "answer_start": [claims[0].start]}
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


def test_a_random_encoder_learns_real_explanations_by_heart(exercise, tmp_path) -> None:
    base = save_encoder(tmp_path / "base", exercise)
    settings = FinetuningSettings(
        model=base,
        train=exercise,
        intermediate=exercise,
        validation=exercise,
        out=tmp_path / "reader",
        epochs=30,
        intermediate_epochs=1,
        learning_rate=2e-3,
        device="cpu",
    )
    watcher = Watcher()
    done = finetune(settings, watcher)
    assert [name for name, _ in watcher.stages] == ["intermediate", "train"]
    assert watcher.steps[-1] == watcher.stages[1][1]
    assert done.validated["squad"].f1 > 95
    assert done.validated["squad"].n == 20
    assert done.losses["train"][-1][1] < done.losses["train"][0][1] / 5
    assert any("20 of 20 questions are in the training data too" in line for line in watcher.warnings)
    record = json.loads((settings.out / "finetuning.json").read_text())
    assert record["data"]["train"]["sha256"] == hashlib.sha256(exercise.read_bytes()).hexdigest()
    assert record["base"]["revision"].startswith("sha256:")
    assert record["settings"]["seed"] == 42
    assert record["environment"]["packages"]["transformers"]
    reader = load_span_reader(settings.out, answer_tokens=512, device="cpu")
    items = read_span_file(exercise).items
    said = {
        row["id"]: row["prediction"]
        for row in map(json.loads, (settings.out / "validation_predictions.jsonl").read_text().splitlines())
    }
    spans = reader.read([(item.question, item.context) for item in items])
    assert [span.text for span in spans] == [said[item.key] for item in items]
    assert not list(settings.out.parent.glob(f".{settings.out.name}-*"))


def test_a_reader_that_learnt_from_unanswerable_questions_predicts_nothing(exercise, tmp_path) -> None:
    rows = json.loads(exercise.read_text())[:6]
    no_answer = {"text": [], "answer_start": []}
    train = tmp_path / "train.json"
    train.write_text(json.dumps([row | {"answers": no_answer} for row in rows]))
    validation = tmp_path / "validation.json"
    validation.write_text(json.dumps(rows))
    settings = FinetuningSettings(
        model=save_encoder(tmp_path / "base", train),
        train=train,
        validation=validation,
        out=tmp_path / "reader",
        epochs=10,
        learning_rate=2e-3,
        device="cpu",
    )
    done = finetune(settings, Watcher())
    assert done.record["data"]["train"]["used"] == done.record["data"]["train"]["unanswerable"] == 6
    predictions = map(json.loads, (settings.out / "validation_predictions.jsonl").read_text().splitlines())
    assert [row["prediction"] for row in predictions] == [""] * 6
    # The same model, asked for its best span all the same.
    reader = load_span_reader(settings.out, device="cpu")
    assert all(span.text for span in reader.read([(row["question"], row["context"]) for row in rows]))


def test_the_same_settings_give_the_same_weights(exercise, tmp_path) -> None:
    base = save_encoder(tmp_path / "base", exercise)
    settings = {"model": base, "train": exercise, "epochs": 1, "device": "cpu"}
    hashes = set()
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        finetune(FinetuningSettings(**settings, out=tmp_path / name, seed=seed), Watcher())
        hashes.add(hashlib.sha256((tmp_path / name / "model.safetensors").read_bytes()).hexdigest())
    assert len(hashes) == 2


def item(key: str, context: str, answer: str | None, start: int = 0) -> SpanItem:
    answers = () if answer is None else (SpanAnswer(answer, start),)
    return SpanItem(key, context, "what is the heart", answers)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(save_reader(tmp_path_factory.mktemp("models") / "qa", 1))


def test_answers_are_labelled_in_every_window_that_holds_them_whole(tokenizer) -> None:
    words = ["heart", "blood", "kidney", "fever", "nerve", "bone", "lung", "dose", "drug", "cell"] * 4
    context = " ".join(words)
    answer = "fever nerve bone"
    lessons = make_lessons(
        SpanFile(Path("f"), "", (item("a", context, answer, context.index(answer)),)), tokenizer, 24, 6
    )
    assert lessons.used == 1
    labelled = [one for one in lessons.windows if one["start_positions"]]
    assert len(lessons.windows) > len(labelled) >= 1
    for one in labelled:
        ids = one["input_ids"][one["start_positions"] : one["end_positions"] + 1]
        assert tokenizer.decode(ids) == answer
    assert all(one["end_positions"] == 0 for one in lessons.windows if not one["start_positions"])


def test_what_nothing_is_learnt_from_is_counted_and_named(tokenizer) -> None:
    long = " ".join(["heart blood kidney"] * 20)
    items = (
        item("long", long, long),
        item("off", "the heart", "heart", 1),
        item("none", "the heart", None),
        item("good", " the heart is", " heart ", 4),
    )
    lessons = make_lessons(SpanFile(Path("f.json"), "", items), tokenizer, 24, 6)
    assert lessons.omissions == {"long": "too_long", "off": "misplaced"}
    # That a question has no answer is learnt too.
    places = [(one["start_positions"], one["end_positions"]) for one in lessons.windows]
    assert (len(places), places[0]) == (2, (0, 0))
    assert lessons.document()["unanswerable"] == 1
    told = lessons.warnings()
    assert told[0].startswith("f.json: 1 of 4 questions are left out (answers that fit into no window): long; raise")
    assert len(told) == 2
    assert dataclasses.replace(lessons, omissions=dict.fromkeys("abcdefg", "misplaced")).warnings() == [
        "f.json: 7 of 4 questions are left out (answers that are not at their offset): a, b, c, d, e and 2 more"
    ]
    with pytest.raises(DatasetError, match=r"f\.json: no question is left to learn from \(answers that fit"):
        make_lessons(SpanFile(Path("f.json"), "", items[:1]), tokenizer, 24, 6)
    assert seen_before(lessons.file, [lessons.file]) == ["long", "off", "none", "good"]


def test_what_cannot_be_done_is_said_before_it_is_begun(tmp_path) -> None:
    with pytest.raises(SpecError, match="exists already"):
        finetune(FinetuningSettings(model="m", train=tmp_path / "t.json", out=tmp_path), Watcher())
    with pytest.raises(DatasetError, match="cannot be read"):
        finetune(FinetuningSettings(model="m", train=tmp_path / "t.json", out=tmp_path / "o"), Watcher())
    rows = [{"id": 1, "question": "q", "context": "the heart", "answers": {"text": ["heart"], "answer_start": [4]}}]
    train = tmp_path / "t.json"
    train.write_text(json.dumps(rows))
    base = save_bert(tmp_path / "base", 1)
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(EngineError, match="its weights lack bert"):
        finetune(FinetuningSettings(model=base, train=train, out=tmp_path / "o"), Watcher())
    assert not list(tmp_path.glob(".*"))
    assert not (tmp_path / "o").exists()
    with pytest.raises(SpecError, match="cannot be written"):
        finetune(FinetuningSettings(model=base, train=train, out=train / "o"), Watcher())
