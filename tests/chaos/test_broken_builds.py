"""Builds of an index that break off at any moment: what comes out is what an undisturbed build makes."""

import hashlib
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medexam.retrievers import EncoderRecord, Passage, build_corpus, build_index, open_index

TEXTS = tuple(map(str, range(1500)))
CORPUS = build_corpus("drawn", (Passage(text, text, f"text {text}", "drawn") for text in TEXTS), source="drawn")


class Encoder:
    """An encoder whose vectors are drawn by the passage's number."""

    record = EncoderRecord(
        label="drawn",
        revision="1",
        precision="float32",
        dimension=8,
        query_tokens=64,
        passage_tokens=64,
        source="drawn",
    )

    def encode_passages(self, passages: list[Passage]) -> Any:
        return self.encode_queries([passage.id for passage in passages])

    def encode_queries(self, texts: list[str]) -> Any:
        vectors = np.stack([np.random.default_rng(int(text)).normal(size=self.record.dimension) for text in texts])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


class Broken(BaseException):
    """Ends a build where it stands."""


def build(folder: Path, moment: int | None, patch: pytest.MonkeyPatch) -> None:
    """Build until this moment: a block, or what is flushed to the disk or takes the place of another file."""
    passed = itertools.count(1)

    def pass_moment(_: object = None) -> None:
        if next(passed) == moment:
            raise Broken

    with patch.context() as context:
        for name in ("fsync", "replace", "rename"):
            real = getattr(os, name)
            context.setattr(os, name, lambda *words, real=real, **more: (pass_moment(), real(*words, **more))[1])
        build_index(CORPUS, Encoder(), folder, progress=pass_moment)


def test_a_build_that_broke_off_ends_in_the_bytes_of_an_undisturbed_one(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("faiss")
    hashes = []
    for name, moments in (("broken", (1, 2, 3, 4, 6, None)), ("whole", (None,))):
        for moment in moments:
            if moment is None:
                build(tmp_path / name, None, monkeypatch)
            else:
                with pytest.raises(Broken):
                    build(tmp_path / name, moment, monkeypatch)
        files = sorted(path for path in (tmp_path / name).iterdir() if not path.name.endswith(".lock"))
        hashes.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files})
    assert hashes[0] == hashes[1]
    hits = open_index(tmp_path / "broken", CORPUS.fingerprint, Encoder()).search(["750"], 1)
    assert hits[0][0].passage.id == "750"
