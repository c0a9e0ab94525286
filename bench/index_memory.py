"""The memory that building an index takes, by the number of passages.

    python bench/index_memory.py --rows 1000000 --dimension 64

Passages are drawn words, and the encoder is a stand-in: its vectors are drawn from the row's number, so that the
memory is that of everything but an encoder. It prints the peak of the process' resident memory as Linux counts it
(`VmHWM`, which includes pages of mapped files), and what of it was there before anything was read.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medexam.retrievers import EncoderRecord, Passage, build_index, load_corpus, open_index

_WORDS = [f"{stem}{ending}" for stem in ("cardi", "neph", "derm", "neur") for ending in ("itis", "oma", "osis", "al")]
_PART = 10_000


class DrawnVectors:
    """An `Encoder` whose vectors depend on the passage's number alone, and cost next to nothing."""

    def __init__(self, dimension: int) -> None:
        self.record = EncoderRecord(
            label="drawn",
            revision="1",
            precision="float32",
            dimension=dimension,
            query_tokens=512,
            passage_tokens=512,
            source="drawn",
        )
        self._waves = np.random.default_rng(0).uniform(0.1, 3, dimension).astype(np.float32)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of titles, which are numbers."""
        return self._draw([int(text) for text in texts])

    def encode_passages(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Vectors of passages, whose ids are numbers."""
        return self._draw([int(passage.id) for passage in passages])

    def _draw(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        spread = np.array([number * 2_654_435_761 % 1_000_003 for number in numbers], dtype=np.float32)
        return np.cos(spread[:, None] * self._waves)


def main() -> None:
    """Draw a corpus, build its index and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=64)
    parser.add_argument("--factory", help="FAISS's string of an approximate index; exact search by default")
    parser.add_argument("--parameters", default="", help="its parameters, such as nprobe=64")
    parser.add_argument("--folder", type=Path, help="where the files lie meanwhile; a temporary folder by default")
    settings = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="index_memory", dir=settings.folder))
    try:
        print(
            json.dumps(measure(settings.rows, settings.dimension, settings.factory, settings.parameters, folder)),
            flush=True,
        )
    finally:
        shutil.rmtree(folder)


def measure(rows: int, dimension: int, factory: str | None, parameters: str, folder: Path) -> dict[str, object]:
    """The figures of one build."""
    source = folder / "drawn.jsonl"
    _write_corpus(rows, source)
    before, started = _peak_mb(), time.monotonic()
    corpus = load_corpus(source)
    read, read_s = _peak_mb(), time.monotonic() - started
    encoder = DrawnVectors(dimension)
    manifest = build_index(corpus, encoder, folder / "index", factory, parameters)
    built, built_s = _peak_mb(), time.monotonic() - started
    (hits,) = open_index(folder / "index", corpus.fingerprint, encoder).search([str(rows // 2)], 1)
    if factory is None and int(hits[0].passage.id) % 1_000_003 != rows // 2 % 1_000_003:
        raise SystemExit(f"the nearest passage of {rows // 2} is {hits[0].passage.id}")
    return {
        "rows": rows,
        "dimension": dimension,
        "factory": factory,
        "parameters": parameters,
        "before_mb": before,
        "corpus_read_mb": read,
        "peak_mb": built,
        "corpus_read_s": round(read_s),
        "all_s": round(built_s),
        "disk_gb": round(sum((folder / "index" / name).stat().st_size for name in manifest.sha256) / 1e9, 2),
    }


def _write_corpus(rows: int, path: Path) -> None:
    random = np.random.default_rng(1)
    with path.open("w") as stream:
        for start in range(0, rows, _PART):
            drawn = random.integers(len(_WORDS), size=(min(_PART, rows - start), 8))
            for number, words in enumerate(drawn, start=start):
                text = " ".join(_WORDS[word] for word in words)
                stream.write(f'{{"id": "{number}", "title": "{number}", "content": "{text}"}}\n')


def _peak_mb() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) // 1024


if __name__ == "__main__":
    main()
