"""Chooses the passages that the retrievers' tests read, from the full English corpus.

    python bench/make_corpus_sample.py passages.jsonl.gz [TARGET]

Twenty passages of each of the ten collections (nine of MedQuAD's, and PubMedQA), those whose ids have the lowest
SHA-256, in the order of the corpus; each line stands as it is there. The same corpus makes the same sample.
"""

import gzip
import hashlib
import json
import sys
from collections import defaultdict
from pathlib import Path

EACH = 20
TARGET = Path(__file__).parent.parent / "tests/retrievers/corpus_sample/passages.jsonl.gz"


def _collection(key: str) -> str:
    first, second, *_ = key.split("_")
    return f"{first}_{second}" if first == "MedQuAD" else first


def main(corpus: Path, target: Path = TARGET) -> None:
    """Write the chosen lines of `corpus` to `target`."""
    lines = gzip.decompress(corpus.read_bytes()).splitlines(keepends=True)
    collections: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for number, line in enumerate(lines):
        key = json.loads(line)["id"]
        collections[_collection(key)].append((hashlib.sha256(key.encode()).hexdigest(), number))
    chosen = sorted(number for members in collections.values() for _, number in sorted(members)[:EACH])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(b"".join(lines[number] for number in chosen), mtime=0))


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
