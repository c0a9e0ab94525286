"""Turns that many calls share, such as the system's and demonstrations: each lies once beside a log, by its hash.

A turn stands whole in the first line that has it. From the second line on it is `{"role": ..., "same": HASH}`, and a
file beside the log holds its words. Within a line, a turn is whole once.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from medexam.errors import RunFolderError
from medexam.experiments.store.log_lines import cut_torn_line, parse_lines
from medexam.predictions import Prediction

PROMPTS = "prompts.jsonl"
SAME = "same"
_WAYS_OUT = "restore the file, or start another run with --fresh"
_REMEMBERED = 10_000
"""Turns that are known for having been written once; what many calls share comes again sooner."""
_SHORTEST = 40
"""Characters of a turn that is worth a reference."""


def prompts_beside(log: Path) -> Path:
    """Return the file of the shared turns of a log: `prompts.jsonl` of a run, `WORKER.prompts` of a shard."""
    return log.with_name(PROMPTS) if log.stem == "predictions" else log.with_suffix(".prompts")


class Turns(dict[str, str]):
    """The words of each turn that a file holds, by its hash; empty without a file.

    A turn that is not there is looked for once more: the file grows while its run continues. Raises `RunFolderError`
    where the file is damaged, and where it does not hold the turn.
    """

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self._path = path
        self._read()

    def __missing__(self, key: str) -> str:
        self._read()
        if key not in self:
            raise RunFolderError(f"{self._path} lacks turn {key}, which stored calls were sent: {_WAYS_OUT}")
        return self[key]

    def _read(self) -> None:
        self.update(turn for _, _, turn in parse_lines(self._path, _parse_turn, _WAYS_OUT))


def _parse_turn(line: bytes) -> tuple[str, str]:
    turn = json.loads(line)
    if hash_turn(turn["words"]) != turn["hash"]:
        raise ValueError("its words are not those of its hash")
    return turn["hash"], turn["words"]


class SharedTurns:
    """What one writer of a log knows of its turns."""

    def __init__(self, path: Path) -> None:
        """Take the turns that the file at `path` holds; what a dead process left torn there is cut off."""
        cut_torn_line(path)
        self.path = path
        self.waiting: list[bytes] = []
        """Lines that are to be on the disk before the next line of the log."""
        self._known = set(Turns(path))
        self._seen: set[str] = set()

    def write(self, prediction: Prediction) -> bytes:
        """Write a prediction as a line of the log, with references in place of turns that were there before."""
        if not any(call.messages for call in prediction.calls):
            return prediction.to_line()
        document = prediction.to_json()
        in_line: set[str] = set()
        for call in document["calls"]:
            for turn in call.get("messages", ()):
                self._shorten(turn, in_line)
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        self._seen |= in_line
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _shorten(self, turn: dict[str, Any], in_line: set[str]) -> None:
        words = turn["content"]
        if len(words) < _SHORTEST:
            return
        key = hash_turn(words)
        if key in self._seen and key not in self._known:
            self._known.add(key)
            self.waiting.append(json.dumps({"hash": key, "words": words}, ensure_ascii=False).encode() + b"\n")
        if key in self._known or key in in_line:
            del turn["content"]
            turn[SAME] = key
        in_line.add(key)


def hash_turn(words: str) -> str:
    """Return what a reference calls a turn's words."""
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def complete(prediction: Prediction, turns: Turns) -> Prediction:
    """Put the words of shared turns into a prediction as it was read, in place; return it.

    Raises `RunFolderError` for a turn that nothing holds.
    """
    in_line: dict[str, str] = {}
    for call in prediction.calls:
        for turn in call.messages:
            if (key := turn.pop(SAME, None)) is None:
                continue
            if key not in turns and not in_line:
                words = (one["content"] for call in prediction.calls for one in call.messages if "content" in one)
                in_line = {hash_turn(one): one for one in words}
            turn["content"] = turns.get(key) or in_line.get(key) or turns[key]
    return prediction
