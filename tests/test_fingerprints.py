"""What a model folder is by content, and which commit a hub name is, as a plan of an encoder tells them."""

import json
import os
from pathlib import Path

import pytest

from medexam.errors import EngineError
from medexam.retrievers import plan_retriever
from medexam.specs import RetrieverSpec

OLD, NEW = "a" * 40, "b" * 40


@pytest.fixture
def revision_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What an encoder is by content; nothing of it is loaded."""
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"id": "1", "content": "heart"}))
    return lambda encoder, revision=None: (
        plan_retriever(
            RetrieverSpec(kind="dense", corpus=tmp_path / "corpus.jsonl", encoder=encoder, revision=revision)
        ).revision
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    files = ("model.safetensors", "config.json", "tokenizer.json", "vocab.txt", "chat_template.jinja", "README.md")
    for name in (*files, "LICENSE", "1_Pooling/config.json", ".gitattributes"):
        (folder / name).write_text(f"{name} of the model")
    return folder


@pytest.mark.parametrize(
    ("name", "counts"),
    {
        "model.safetensors": True,
        "tokenizer.json": True,
        "vocab.txt": True,
        "chat_template.jinja": True,
        "1_Pooling/config.json": True,
        "generation_config.json": True,
        "README.md": False,
        "LICENSE": False,
        ".gitattributes": False,
    }.items(),
)
def test_what_can_change_an_answer_counts(revision_of, model: Path, name: str, counts: bool) -> None:
    before = revision_of(model)
    (model / name).write_text("other")
    assert (revision_of(model) != before) is counts


def test_a_path_is_no_identity(revision_of, model: Path, tmp_path: Path) -> None:
    before = revision_of(model)
    moved = model.rename(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(moved)
    assert revision_of(moved) == revision_of(tmp_path / "link") == before
    (moved / "vocab.txt").rename(moved / "words.txt")
    assert revision_of(moved) != before


def test_folders_behind_links_count_and_circles_end(revision_of, model: Path, tmp_path: Path) -> None:
    (model / "1_Pooling").rename(tmp_path / "pooling")
    (model / "1_Pooling").symlink_to(tmp_path / "pooling")
    (model / "round").symlink_to(model)
    before = revision_of(model)
    (tmp_path / "pooling" / "config.json").write_text("other")
    assert revision_of(model) != before


def test_a_change_that_keeps_size_and_times_counts(revision_of, model: Path) -> None:
    before, weights = revision_of(model), model / "model.safetensors"
    times = weights.stat()
    with weights.open("r+b") as stream:
        stream.write(b"M")
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert revision_of(model) != before


def test_a_branch_is_the_commit_that_the_hub_tells_or_else_its_cache(revision_of, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    own = tmp_path / "hub" / "models--an-org--a-model"
    (own / "snapshots" / OLD).mkdir(parents=True)
    (own / "refs").mkdir()
    (own / "refs" / "v1").write_text(OLD)
    assert revision_of("an-org/a-model", "v1") == OLD
    assert revision_of("an-org/another", NEW) == NEW
    for said in ("", "main", "c" * 40):
        (own / "refs" / "main").write_text(said)
        with pytest.raises(EngineError, match=r"an-org/a-model: the commit of main is unknown"):
            revision_of("an-org/a-model")
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: type("Info", (), {"sha": NEW}))
    assert revision_of("an-org/a-model", "v1") == NEW
