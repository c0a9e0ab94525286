"""Models of the real layouts and no use: seeded random BERTs with a small vocabulary, made in a moment."""

from pathlib import Path
from typing import Any

_TEXT = "the heart blood is a of and cell drug dose kidney fever what treat which nerve bone lung"
WORDS = _TEXT.split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]


def save_bert(folder: Path, seed: int, *, labels: int | None = None, hidden: int = 32) -> Path:
    """A BERT with its tokenizer as transformers saves it; `labels` makes it a cross-encoder with as many outputs."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    folder.mkdir(parents=True)
    BertTokenizerFast(vocab={word: number for number, word in enumerate(VOCABULARY)}).save_pretrained(folder)
    torch.manual_seed(seed)
    settings: dict[str, Any] = {"num_labels": labels} if labels else {}
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        initializer_range=0.5,
        **settings,
    )
    model: Any = (BertForSequenceClassification if labels else BertModel)(config)
    model.save_pretrained(folder)
    return folder


def save_medcpt(folder: Path) -> Path:
    """A folder of MedCPT's layout: `query-encoder` and `article-encoder`."""
    save_bert(folder / "query-encoder", 1)
    save_bert(folder / "article-encoder", 2)
    return folder


def save_reader(folder: Path, seed: int, *, labels: tuple[str, ...] = ()) -> Path:
    """A BERT that answers questions by spans; with `labels` one that classifies pairs of texts."""
    import torch
    from transformers import BertConfig, BertForQuestionAnswering, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(parents=True)
    BertTokenizerFast(vocab={word: number for number, word in enumerate(VOCABULARY)}).save_pretrained(folder)
    torch.manual_seed(seed)
    names: dict[str, Any] = {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        initializer_range=0.5,
        **(names if labels else {}),
    )
    model: Any = (BertForSequenceClassification if labels else BertForQuestionAnswering)(config)
    model.save_pretrained(folder)
    return folder
