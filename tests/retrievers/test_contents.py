"""Models and indexes that change in their place, or stay the same and are moved."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from medexam.companions.readers.entailment import load_entailment_reader
from medexam.encoder_weights import minilm_folder
from medexam.errors import CommitUnknownError, EngineError, IndexStaleError
from medexam.experiments import plan_retrieval
from medexam.experiments.plan.context_lookup import pin_reader
from medexam.questions import Question
from medexam.retrievers import RerankingRetriever, build_encoder, build_index, open_index, plan_retriever
from medexam.retrievers.building import PlannedRetriever
from medexam.retrievers.encoders import MEDCPT_ARTICLE, MEDCPT_QUERY
from medexam.retrievers.reranking import MEDCPT_CROSS
from medexam.specs import RetrieverSpec, RetrieveThenAnswerSpec
from medexam.specs.programs.readers import EntailmentSpec
from retrievers.random_vectors import corpus_of
from retrievers.tiny_models import save_bert, save_reader

CORPUS = corpus_of(12)
OLD, NEW = "a" * 40, "b" * 40
HUB_ID = "an-org/an-encoder"


@pytest.fixture
def passages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The corpus as a file, with an empty cache."""
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    rows = [{"id": one.id, "title": one.title, "content": one.content} for one in CORPUS.passages]
    (tmp_path / "passages.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "passages.jsonl"


@pytest.fixture
def plan(passages: Path) -> Callable[..., PlannedRetriever]:
    def call(**settings: object) -> PlannedRetriever:
        return plan_retriever(RetrieverSpec.model_validate({"kind": "dense", "corpus": passages, **settings}))

    return call


def _change_a_byte(file: Path, place: float) -> None:
    """Change the byte at this share of a file, as long as it was."""
    data = bytearray(file.read_bytes())
    data[int(place * (len(data) - 1))] ^= 1
    file.write_bytes(data)


@pytest.fixture
def minilm(tmp_path: Path) -> Path:
    return Path(shutil.copytree(minilm_folder(), tmp_path / "encoder"))


CHANGES = [("model.safetensors", 0.999), ("tokenizer.json", 0.5), ("config.json", 0.5), ("1_Pooling/config.json", 0.5)]


@pytest.mark.parametrize(("name", "place"), CHANGES)
def test_an_encoder_folder_changed_under_an_index(minilm: Path, plan, tmp_path: Path, name: str, place: float) -> None:
    index = tmp_path / "index"
    build_index(CORPUS, build_encoder(minilm), index)
    unnamed, named = plan(encoder=minilm).identity, plan(encoder=minilm, index=index)
    assert named.open(tmp_path).search(["content 3"], 1)
    _change_a_byte(minilm / name, place)
    assert plan(encoder=minilm).identity != unnamed
    with pytest.raises(IndexStaleError, match=r"vectors come from encoder sha256:.* not .* correct retriever"):
        plan(encoder=minilm, index=index)
    with pytest.raises(EngineError, match=r"encoder: it holds revision sha256:.*restore that revision"):
        named.open(tmp_path)


def test_an_index_loads_no_encoder_that_was_changed(minilm: Path, plan, tmp_path: Path) -> None:
    index = tmp_path / "index"
    build_index(CORPUS, build_encoder(minilm), index)
    _change_a_byte(minilm / "model.safetensors", 0.999)
    with pytest.raises(IndexStaleError, match=r"come from another encoder: revision sha256:"):
        plan(index=index).open(tmp_path).search(["content 3"], 1)
    shutil.rmtree(minilm)
    with pytest.raises(EngineError, match=r"no such model folder; or name the encoder of .* with retriever\.encoder"):
        plan(index=index).open(tmp_path).search(["content 3"], 1)


def test_an_encoder_that_is_moved_or_renamed_is_the_same(minilm: Path, plan, tmp_path: Path) -> None:
    index = tmp_path / "index"
    build_index(CORPUS, build_encoder(minilm), index)
    settings = {"encoder": minilm}, {"encoder": minilm, "index": index}, {"index": index}
    before = [plan(**each).identity for each in settings]
    plan(encoder=minilm).open(tmp_path)
    (tmp_path / "other").mkdir()
    moved = minilm.rename(tmp_path / "other" / "another name")
    settings = {"encoder": moved}, {"encoder": moved, "index": index.rename(tmp_path / "moved")}, {}
    assert [plan(**each).identity for each in settings[:2]] == before[:2]
    assert plan(index=tmp_path / "moved").identity == before[2] == before[1]
    assert plan(encoder="minilm").identity == before[0]  # the wheel's folder, of which it is a copy
    assert plan(encoder=moved, index=tmp_path / "moved").open(tmp_path).search(["content 3"], 1)
    plan(encoder=moved).open(tmp_path)
    assert len(list((tmp_path / "indexes").iterdir())) == 1


def test_the_cache_follows_the_encoder(minilm: Path, plan, question: Question, tmp_path: Path) -> None:
    spec = RetrieveThenAnswerSpec(kind="retrieve_then_answer", k=2)

    def look_up(folder: Path) -> int:
        return plan_retrieval(spec, plan(encoder=folder), tmp_path / "cache", "en", None).fill([question])

    assert look_up(minilm) == 1
    assert look_up(minilm.rename(tmp_path / "renamed")) == 0
    _change_a_byte(tmp_path / "renamed" / "model.safetensors", 0.999)
    assert look_up(tmp_path / "renamed") == 1


def test_a_cross_encoder_is_its_content(plan, tmp_path: Path) -> None:
    one, same, other = (save_bert(tmp_path / name, seed, labels=1) for name, seed in [("a", 1), ("b", 1), ("c", 2)])
    identities = [plan(kind="bm25", rerank=folder).identity for folder in (one, same, other)]
    assert identities[0] == identities[1] != identities[2]
    planned = plan(kind="bm25", rerank=one)
    _change_a_byte(one / "model.safetensors", 0.999)
    with pytest.raises(EngineError, match="a: it holds revision sha256:"):
        planned.open(tmp_path)


class Hub:
    """The hub's cache of a machine that is offline."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def put(self, hub_id: str, commit: str, save: Callable[[Path], Path], revision: str = "main") -> None:
        """Have a model at a commit, which `revision` is from now on."""
        own = self._cache / f"models--{hub_id.replace('/', '--')}"
        save(own / "snapshots" / commit)
        (own / "refs" / revision).parent.mkdir(parents=True, exist_ok=True)
        (own / "refs" / revision).write_text(commit)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return Hub(tmp_path / "hub")


def test_a_hub_encoder_is_its_commit(hub: Hub, plan, tmp_path: Path) -> None:
    hub.put(HUB_ID, OLD, lambda folder: save_bert(folder, 1))
    before = plan(encoder=HUB_ID)
    encoder = build_encoder(HUB_ID)
    old = encoder.encode_queries(["heart"])
    index = tmp_path / "index"
    assert build_index(CORPUS, encoder, index).encoder.revision == before.revision == OLD
    expected = plan(index=index).open(tmp_path).search(["heart"], 2)
    hub.put(HUB_ID, NEW, lambda folder: save_bert(folder, 2))
    assert plan(encoder=HUB_ID).identity != before.identity == plan(encoder=HUB_ID, revision=OLD).identity
    new = build_encoder(HUB_ID)
    assert new.revision == NEW
    assert not np.allclose(new.encode_queries(["heart"]), old)
    np.testing.assert_array_equal(build_encoder(HUB_ID, OLD).encode_queries(["heart"]), old)
    with pytest.raises(IndexStaleError, match=rf"come from {HUB_ID} {OLD}, not {HUB_ID} {NEW}; correct retriever"):
        plan(encoder=HUB_ID, index=index)
    for settings in ({}, {"encoder": HUB_ID, "revision": OLD}):
        assert plan(index=index, **settings).open(tmp_path).search(["heart"], 2) == expected
    before.open(tmp_path / "cache")
    (made,) = (tmp_path / "cache" / "indexes").iterdir()
    assert open_index(made).manifest.encoder.revision == OLD  # as planned, though `main` moved since


def test_medcpt_is_the_commits_of_its_models(hub: Hub, plan, tmp_path: Path) -> None:
    hub.put(MEDCPT_QUERY, OLD, lambda folder: save_bert(folder, 1))
    hub.put(MEDCPT_ARTICLE, OLD, lambda folder: save_bert(folder, 2))
    hub.put(MEDCPT_CROSS, OLD, lambda folder: save_bert(folder, 3, labels=1), "refs/pr/3")
    before = plan(kind="medcpt", rerank="medcpt")
    assert (before.revision, before.rerank_revision) == (f"{OLD}+{OLD}", OLD)
    before.open(tmp_path)
    old = build_encoder("medcpt")
    hub.put(MEDCPT_ARTICLE, NEW, lambda folder: save_bert(folder, 4))
    assert plan(kind="medcpt", rerank="medcpt").revision == f"{OLD}+{NEW}"
    new, again = build_encoder("medcpt"), build_encoder("medcpt", f"{OLD}+{OLD}")
    vectors = [each.encode_passages(CORPUS.passages[:2]) for each in (old, new, again)]
    assert not np.allclose(vectors[0], vectors[1])
    np.testing.assert_array_equal(vectors[0], vectors[2])
    hub.put(MEDCPT_CROSS, NEW, lambda folder: save_bert(folder, 5, labels=1), "refs/pr/3")
    assert plan(kind="medcpt", rerank="medcpt").identity["rerank"] == [NEW, 512]
    base = plan(kind="bm25").open(tmp_path)
    assert RerankingRetriever(base, "medcpt", 3).digest != RerankingRetriever(base, "medcpt", 3, revision=OLD).digest


def test_a_hub_reader_is_its_commit(hub: Hub) -> None:
    labels = ("entailment", "neutral")
    hub.put(HUB_ID, OLD, lambda folder: save_reader(folder, 1, labels=labels))
    settings = EntailmentSpec(kind="entailment", reader=HUB_ID).local_reader
    pinned = pin_reader(settings)
    pairs = [("the heart is a drug", "blood")]
    old = load_entailment_reader(HUB_ID).score(pairs)
    hub.put(HUB_ID, NEW, lambda folder: save_reader(folder, 2, labels=labels))
    assert (pinned.revision, pin_reader(settings).revision) == (OLD, NEW)
    assert load_entailment_reader(pinned.model, pinned.revision).score(pairs) == old
    assert load_entailment_reader(HUB_ID).score(pairs) != old
    with pytest.raises(CommitUnknownError, match="nobody/nothing: the commit of"):
        pin_reader(EntailmentSpec(kind="entailment", reader="nobody/nothing").local_reader)
