"""Encoders against plain transformers and against numpy, on folders of the real layouts and on the real MiniLM."""

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
from numpy.typing import NDArray

from medexam.encoder_weights import find_encoder_weights, minilm_folder
from medexam.errors import EngineError
from medexam.fingerprints import fingerprint_folder
from medexam.retrievers import Passage, build_encoder
from medexam.retrievers.encoders import BATCH, Encoder, SentenceEncoder
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
def medcpt(medcpt_folder: Path) -> Encoder:
    return build_encoder(medcpt_folder)


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return build_encoder("minilm")


@pytest.fixture
def offline() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        yield


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


def test_medcpt_is_cls_of_two_encoders(medcpt_folder: Path, medcpt: Encoder) -> None:
    queries = medcpt.encode_queries(QUERIES)
    articles = medcpt.encode_passages(PASSAGES)
    assert queries.shape == (3, 32)
    assert articles.dtype == np.float32
    pairs = [[passage.title, passage.content] for passage in PASSAGES]
    np.testing.assert_allclose(queries, _plain(medcpt_folder / "query-encoder", QUERIES, 64), atol=1e-5)
    np.testing.assert_allclose(articles, _plain(medcpt_folder / "article-encoder", pairs, 512), atol=1e-5)
    assert np.abs(np.linalg.norm(articles, axis=1) - 1).min() > 0.5, "MedCPT's vectors keep their lengths"


def test_medcpt_names_both_encoders(medcpt_folder: Path, medcpt: Encoder) -> None:
    hashes = [fingerprint_folder(medcpt_folder / name) for name in ("query-encoder", "article-encoder")]
    assert (medcpt.label, medcpt.revision) == ("medcpt-copy", "+".join(hashes))
    assert (medcpt.dimension, medcpt.query_tokens, medcpt.passage_tokens) == (32, 64, 512)
    assert medcpt.source == str(medcpt_folder)


def test_order_and_progress_survive_sorting_by_length(medcpt: Encoder) -> None:
    passages = [Passage(str(n), "", "heart " * (1 + n * 7 % 50), "t") for n in range(150)]
    done: list[int] = []
    together = medcpt.encode_passages(passages, done.append)
    assert done == sorted(done)
    assert done[-1] == 150
    assert len(done) > 1
    alone = np.concatenate([medcpt.encode_passages([passages[n]]) for n in (0, 77, 149)])
    np.testing.assert_allclose(together[[0, 77, 149]], alone, atol=1e-5)


def test_batches_hold_texts_of_as_many_tokens(minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that the tokenizer knows come to few tokens, however many letters they have."""
    texts = ["cardiovascular"] * BATCH["cpu"] + ["x9 q7 z3"] * BATCH["cpu"]
    mixed = [text for pair in zip(texts, reversed(texts), strict=True) for text in pair]
    seen: list[set[str]] = []
    assert isinstance(minilm, SentenceEncoder)
    encode = minilm._model.encode_query

    def watch(batch: list[str], **options: object) -> object:
        seen.append(set(batch))
        return encode(batch, **options)

    monkeypatch.setattr(minilm._model, "encode_query", watch)
    vectors = minilm.encode_queries(mixed)
    assert seen == [{"x9 q7 z3"}] * 2 + [{"cardiovascular"}] * 2
    monkeypatch.undo()
    np.testing.assert_allclose(vectors[:2], minilm.encode_queries(mixed[:2]), atol=1e-6)


def test_nothing_to_encode(medcpt: Encoder) -> None:
    assert medcpt.encode_queries([]).shape == (0, 32)


def test_minilm_is_normalised_and_reads_meaning(minilm: Encoder) -> None:
    assert (minilm.label, minilm.dimension, minilm.passage_tokens) == ("all-MiniLM-L6-v2", 384, 256)
    assert minilm.revision == fingerprint_folder(minilm_folder())
    texts = ["Insulin lowers blood glucose.", "The femur is the longest bone.", "Paris is the capital of France."]
    passages = minilm.encode_passages([Passage(str(n), "", text, "t") for n, text in enumerate(texts)])
    queries = minilm.encode_queries(["Which hormone treats diabetes?", "thigh bone", "French city"])
    np.testing.assert_allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-6)
    assert (queries @ passages.T).argmax(axis=1).tolist() == [0, 1, 2]


def test_half_precision_is_close_and_of_length_one(minilm: Encoder) -> None:
    half = build_encoder("minilm", dtype="bfloat16")
    assert half.precision == "bfloat16"
    vectors = half.encode_queries(["heart"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (vectors @ minilm.encode_queries(["heart"]).T).item() > 0.99


def test_a_folder_keeps_its_own_pooling_and_similarity(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    body = Transformer(str(save_bert(tmp_path / "bert", 3)), max_seq_length=40)
    model = SentenceTransformer(modules=[body, Pooling(32, "max")], similarity_fn_name="dot", device="cpu")
    model.save(str(tmp_path / "max-pooled"))
    encoder = build_encoder(tmp_path / "max-pooled")
    assert (encoder.label, encoder.passage_tokens) == ("max-pooled", 40)
    expected = model.encode(["heart", "blood cell"], show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode_queries(["heart", "blood cell"]), expected, atol=1e-5)


def test_a_distance_is_refused(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    body = Transformer(str(save_bert(tmp_path / "bert", 3)))
    model = SentenceTransformer(modules=[body, Pooling(32, "mean")], similarity_fn_name="euclidean", device="cpu")
    model.save(str(tmp_path / "far"))
    with pytest.raises(EngineError, match="euclidean distance"):
        build_encoder(tmp_path / "far")


def test_a_folder_without_weights(tmp_path: Path, medcpt_folder: Path) -> None:
    with pytest.raises(EngineError, match="no such model folder"):
        build_encoder(tmp_path / "nowhere")
    with pytest.raises(EngineError, match="no such model folder"):
        build_encoder("./nowhere")
    with pytest.raises(EngineError, match=r"neither modules\.json nor config\.json"):
        build_encoder(tmp_path)
    folder = save_bert(tmp_path / "bert", 1)
    (folder / "model.safetensors").unlink()
    with pytest.raises(EngineError, match="it has no weights"):
        build_encoder(folder)
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(EngineError, match=r"pytorch_model\.bin is a pickle, which is not read"):
        build_encoder(folder)
    (folder / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(EngineError, match="cannot be loaded"):
        build_encoder(folder)


def test_an_unreachable_hub_is_one_line(offline: None) -> None:
    for name, model in [("medcpt", "ncbi/MedCPT-Query-Encoder"), ("nobody/no-such-model", "nobody/no-such-model")]:
        for revision, lacking in [(None, "the commit of main is unknown"), ("a" * 40, "cannot be loaded")]:
            asked = f"{revision}+{revision}" if revision and name == "medcpt" else revision
            with pytest.raises(EngineError, match=lacking) as caught:
                build_encoder(name, asked)
            assert "\n" not in str(caught.value)
            assert (model if revision is None else name) in str(caught.value)


def test_revisions_are_checked(medcpt_folder: Path) -> None:
    with pytest.raises(EngineError, match=r"QUERY\+ARTICLE"):
        build_encoder("medcpt", revision="main")
    with pytest.raises(EngineError, match="only a hub model has several"):
        build_encoder("minilm", revision="main")
    with pytest.raises(EngineError, match="only a hub model has several"):
        build_encoder(medcpt_folder, revision="main")
    assert find_encoder_weights("someone/model", "a" * 40).revision == "a" * 40


def test_a_device_that_is_not_there() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("CUDA is there")
    with pytest.raises(EngineError, match="no CUDA device"):
        build_encoder("minilm", device="cuda")


def test_broken_weights_are_named(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_medcpt(tmp_path / "broken")
    file = folder / "article-encoder" / "model.safetensors"
    weights = load_file(file)
    weights["embeddings.word_embeddings.weight"][:] = float("nan")
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(EngineError, match="not numbers"):
        build_encoder(folder).encode_passages(PASSAGES[1:2])
