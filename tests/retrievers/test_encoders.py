"""Encoders against plain transformers and against numpy, on folders of the real layouts and on the real MiniLM."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from medexam.errors import EngineError
from medexam.retrievers import Passage, build_encoder
from retrievers.tiny_models import save_bert, save_medcpt

QUERIES = ["what is the drug of fever", "heart", "fever " * 100]
PASSAGES = [
    Passage("1", "the heart", "blood is a " * 400, "t"),
    Passage("2", "", "a drug of the kidney", "t"),
    Passage("3", "fever " * 300, "lung " * 300, "t"),
    Passage("4", "bone", "nerve", "t"),
]


@pytest.fixture(scope="module")
def medcpt_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_medcpt(tmp_path_factory.mktemp("models") / "medcpt-copy")


@pytest.fixture(scope="module")
def medcpt(medcpt_folder: Path):
    return build_encoder(medcpt_folder)


@pytest.fixture(scope="module")
def minilm():
    return build_encoder("minilm")


def _plain(folder: Path, texts: list[str] | list[list[str]], tokens: int) -> NDArray[np.float32]:
    """The vectors as MedCPT's authors compute them."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(folder).eval()
    encoded = AutoTokenizer.from_pretrained(folder)(
        texts, truncation=True, padding=True, return_tensors="pt", max_length=tokens
    )
    with torch.no_grad():
        vectors: NDArray[np.float32] = model(**encoded).last_hidden_state[:, 0, :].numpy()
    return vectors


def test_medcpt_is_cls_of_two_encoders(medcpt_folder: Path, medcpt) -> None:
    queries = medcpt.encode_queries(QUERIES)
    articles = medcpt.encode_passages(PASSAGES)
    assert queries.shape == (3, 32)
    assert articles.dtype == np.float32
    pairs = [[passage.title, passage.content] for passage in PASSAGES]
    np.testing.assert_allclose(queries, _plain(medcpt_folder / "query-encoder", QUERIES, 64), atol=1e-5)
    np.testing.assert_allclose(articles, _plain(medcpt_folder / "article-encoder", pairs, 512), atol=1e-5)
    assert np.abs(np.linalg.norm(articles, axis=1) - 1).min() > 0.5, "MedCPT's vectors keep their lengths"
    alone = np.concatenate([medcpt.encode_passages([passage]) for passage in PASSAGES])
    np.testing.assert_allclose(articles, alone, atol=1e-5)
    assert medcpt.encode_queries([]).shape == (0, 32)
    assert (medcpt.record.label, medcpt.record.source, medcpt.record.dimension) == (
        "medcpt-copy",
        str(medcpt_folder),
        32,
    )
    tokens = (medcpt.record.query_tokens, medcpt.record.passage_tokens)
    assert (tokens, medcpt.record.revision.count("+")) == ((64, 512), 1)


def test_minilm_is_normalised_and_reads_meaning(minilm) -> None:
    record = minilm.record
    assert (record.label, record.dimension, record.passage_tokens) == ("all-MiniLM-L6-v2", 384, 256)
    texts = ["Insulin lowers blood glucose.", "The femur is the longest bone.", "Paris is the capital of France."]
    passages = minilm.encode_passages([Passage(str(n), "", text, "t") for n, text in enumerate(texts)])
    queries = minilm.encode_queries(["Which hormone treats diabetes?", "thigh bone", "French city"])
    np.testing.assert_allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-6)
    assert (queries @ passages.T).argmax(axis=1).tolist() == [0, 1, 2]


def test_a_folder_keeps_its_own_pooling_and_similarity(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    body = Transformer(str(save_bert(tmp_path / "bert", 3)), max_seq_length=40)
    model = SentenceTransformer(modules=[body, Pooling(32, "max")], similarity_fn_name="dot", device="cpu")
    model.save(str(tmp_path / "max-pooled"))
    encoder = build_encoder(tmp_path / "max-pooled")
    assert (encoder.record.label, encoder.record.passage_tokens) == ("max-pooled", 40)
    expected = model.encode(["heart", "blood cell"], show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode_queries(["heart", "blood cell"]), expected, atol=1e-5)
    model.similarity_fn_name = "euclidean"
    model.save(str(tmp_path / "far"))
    with pytest.raises(EngineError, match="euclidean distance"):
        build_encoder(tmp_path / "far")


def test_a_model_that_is_not_there_is_refused(tmp_path: Path, medcpt_folder: Path, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    faults = {
        str(tmp_path / "nowhere"): "no such model folder",
        "./nowhere": "no such model folder",
        str(tmp_path): "it has no weights|cannot be loaded",
        "medcpt": "ncbi/MedCPT-Query-Encoder.* the commit of main is unknown",
        "nobody/no-such-model": "the commit of main is unknown",
    }
    for name, message in faults.items():
        with pytest.raises(EngineError, match=message):
            build_encoder(name)
    for name, message in {
        "medcpt": r"QUERY\+ARTICLE",
        "minilm": "only a hub",
        str(medcpt_folder): "only a hub",
    }.items():
        with pytest.raises(EngineError, match=message):
            build_encoder(name, revision="main")


def test_a_folder_without_sound_weights_is_refused(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "bert", 1)
    (folder / "model.safetensors").unlink()
    with pytest.raises(EngineError, match="it has no weights"):
        build_encoder(folder)
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(EngineError, match="it has no weights"):
        build_encoder(folder)
    (folder / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(EngineError, match="cannot be loaded"):
        build_encoder(folder)


def test_broken_weights_are_named(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_medcpt(tmp_path / "broken")
    file = folder / "article-encoder" / "model.safetensors"
    weights = load_file(file)
    weights["embeddings.word_embeddings.weight"][:] = float("nan")
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(EngineError, match="not numbers"):
        build_encoder(folder).encode_passages(PASSAGES[1:2])
