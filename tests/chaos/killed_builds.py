"""Builds an index in processes that are killed at drawn moments, until one of them finishes.

    python killed_builds.py FOLDER KIND SEED KILLS

A process that has loaded everything forks each build, so that a kill costs no imports. The moments are those around
each block, each flush to the disk and each file that takes its place.
"""

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from medexam.retrievers import Corpus, Passage, build_index, open_index
from medexam.retrievers.corpora import Fingerprint

PASSAGES = 1500
MOST_MOMENTS = 12


class Encoder:
    """An encoder whose vectors are drawn by the passage's number."""

    source = label = "drawn"
    revision = "1"
    precision = "float32"
    dimension = 8
    query_tokens = passage_tokens = 64

    def encode_passages(self, passages: list[Passage], progress: Any = None) -> Any:
        """Return the vectors of passages, of length 1."""
        if progress is not None:
            progress(len(passages))
        return self._draw([int(passage.id) for passage in passages])

    def encode_queries(self, texts: list[str], progress: Any = None) -> Any:
        """Return the vectors of titles, which are numbers."""
        return self._draw([int(text) for text in texts])

    def _draw(self, numbers: list[int]) -> Any:
        vectors = np.stack([np.random.default_rng(number).normal(size=self.dimension) for number in numbers])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def make_corpus() -> Corpus:
    """Make a corpus of passages that are named by their numbers."""
    passages = tuple(Passage(str(number), str(number), f"text {number}", "drawn") for number in range(PASSAGES))
    fingerprint = Fingerprint()
    for passage in passages:
        fingerprint.add(passage)
    return Corpus("drawn", passages, fingerprint.hexdigest(), "drawn")


def _signal_around(function: Callable[..., Any], pipe: int) -> Callable[..., Any]:
    def call(*arguments: Any, **settings: Any) -> Any:
        os.write(pipe, b".")
        value = function(*arguments, **settings)
        os.write(pipe, b".")
        return value

    return call


def _build(folder: Path, kind: Any, pipe: int) -> None:
    for name in ("fsync", "replace", "rename", "unlink"):
        setattr(os, name, _signal_around(getattr(os, name), pipe))
    build_index(make_corpus(), Encoder(), folder, kind, lambda _: os.write(pipe, b".") and None)


def main(folder: Path, kind: str, seed: int, kills: int) -> None:
    """Build, kill and build again; write how many builds were killed."""
    lots = random.Random(seed)
    killed = 0
    while True:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                _build(folder, kind, writing)
            finally:
                os._exit(0)
        os.close(writing)
        moments = lots.randrange(1, MOST_MOMENTS) if killed < kills else sys.maxsize
        while moments and os.read(reading, 1):
            moments -= 1
        if not moments:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        os.close(reading)
        if not os.WIFSIGNALED(status):
            break
        killed += 1
    index = open_index(folder, make_corpus().fingerprint, Encoder())
    hits = index.search([str(PASSAGES // 2)], 1)
    sys.stdout.write(f"{killed} {hits[0][0].passage.id}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
