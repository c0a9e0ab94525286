"""Builds an index in processes that end themselves by SIGKILL, then in one that does not, and another undisturbed.

    python killed_builds.py FOLDER MOMENT...

The moments count blocks, flushes to the disk and files that take their place. Each build is a fork of a process that
has loaded everything, so that it costs no imports.
"""

import itertools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from medexam.retrievers import Corpus, Passage, build_index, open_index

PASSAGES = 1500


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
        return self.encode_queries([passage.id for passage in passages])

    def encode_queries(self, texts: list[str], progress: Any = None) -> Any:
        """Return the vectors of titles, which are numbers."""
        vectors = np.stack([np.random.default_rng(int(text)).normal(size=self.dimension) for text in texts])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def build(corpus: Corpus, folder: Path, moment: int | None) -> None:
    """Build, and be killed at this moment; None: to the end."""
    passed = itertools.count(1)

    def pass_moment(_: object = None) -> None:
        if next(passed) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **settings: (pass_moment(), function(*arguments, **settings), pass_moment())[1]

    for name in ("fsync", "replace", "rename", "unlink"):
        setattr(os, name, around(getattr(os, name)))
    build_index(corpus, Encoder(), folder, "flat", pass_moment)


def main(folder: Path, *moments: int) -> None:
    """Build an index of which each moment ends a build, and an undisturbed one; write what is found in the first."""
    texts = map(str, range(PASSAGES))
    corpus = Corpus("drawn", tuple(Passage(text, text, f"text {text}", "drawn") for text in texts), "0" * 64, "drawn")
    builds = [*((folder / "killed", moment) for moment in (*moments, None)), (folder / "whole", None)]
    for place, moment in builds:
        if (child := os.fork()) == 0:
            build(corpus, place, moment)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) == (moment is not None), (moment, status)
    hits = open_index(folder / "killed", corpus.fingerprint, Encoder()).search([str(PASSAGES // 2)], 1)
    sys.stdout.write(hits[0][0].passage.id)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
