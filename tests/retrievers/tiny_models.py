"""Models of the real layouts and no use: seeded random BERTs with a small vocabulary, made in a moment."""

from pathlib import Path
from typing import Any

_TEXT = "the heart blood is a of and cell drug dose kidney fever what treat which nerve bone lung"
WORDS = _TEXT.split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]


def _save(folder: Path, seed: int, kind: str, **settings: Any) -> Path:
    import torch
    import transformers

    folder.mkdir(parents=True)
    words = {word: number for number, word in enumerate(VOCABULARY)}
    transformers.BertTokenizerFast(vocab=words).save_pretrained(folder)
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        initializer_range=0.5,
        **{"hidden_size": 32, **settings},
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    return folder


def save_bert(folder: Path, seed: int, *, labels: int | None = None, hidden: int = 32) -> Path:
    """A BERT with its tokenizer as transformers saves it; `labels` makes it a cross-encoder with as many outputs."""
    if labels:
        return _save(folder, seed, "BertForSequenceClassification", hidden_size=hidden, num_labels=labels)
    return _save(folder, seed, "BertModel", hidden_size=hidden)


def save_medcpt(folder: Path) -> Path:
    """A folder of MedCPT's layout: `query-encoder` and `article-encoder`."""
    save_bert(folder / "query-encoder", 1)
    save_bert(folder / "article-encoder", 2)
    return folder


def save_reader(folder: Path, seed: int, *, labels: tuple[str, ...] = ()) -> Path:
    """A BERT that answers questions by spans; with `labels` one that classifies pairs of texts."""
    if not labels:
        return _save(folder, seed, "BertForQuestionAnswering")
    numbers = {label: number for number, label in enumerate(labels)}
    names = dict(enumerate(labels))
    return _save(folder, seed, "BertForSequenceClassification", id2label=names, label2id=numbers)
