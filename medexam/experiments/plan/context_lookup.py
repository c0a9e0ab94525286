"""Having texts read by a local model: many questions a batch, in the order in which they are asked.

It reads ahead while a run asks one question after the other, and keeps nothing on disk: an answer that was given is not
asked for again.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from medexam.encoder_weights import find_encoder_weights
from medexam.experiments.plan.passage_lookup import Retrieval
from medexam.plugins import load_object
from medexam.programs import list_hypotheses
from medexam.programs.retrieval.reading import Pair, Supports
from medexam.questions import Question, Task
from medexam.retrievers.base import LocalReader
from medexam.specs.programs.needs import ReaderSettings

AHEAD = 4
"""Batches that are read at once: enough to sort texts by length, few enough to stop soon."""
LOCAL_READERS = "medexam.local_readers"
"""The group in which packages register what reads texts."""


def _local_reader(settings: ReaderSettings) -> LocalReader:
    reader: LocalReader = load_object(settings.finds, LOCAL_READERS)
    return reader


@dataclass
class ReadAhead:
    """What a local model finds in pairs of texts, in blocks and each item once; a `TextReader`."""

    settings: ReaderSettings
    coming: Sequence[Question | Task]
    """What is going to be asked."""
    _model: Any = None
    _findings: dict[str, list[Any]] = field(default_factory=dict)
    """Key of an item -> what was found in each of its pairs."""
    _reading: Lock = field(default_factory=Lock)

    @property
    def label(self) -> str:
        """The model as people read it. Raises `EngineError` where it cannot be loaded or has no such head."""
        if self._model is None:
            self._model = _local_reader(self.settings).load(self.settings)
        return str(self._model.label)

    def read(self, item: Any, pairs: Callable[[Any], list[Pair]]) -> list[Any]:
        """Return what was found in each pair of an item; those of items that come after it may be read with them."""
        # One thread reads a block and the others wait: their items most likely are in it.
        with self._reading:
            if self.label and item.key not in self._findings:
                self._read_block(item, pairs)
            return self._findings[item.key]

    def _read_block(self, item: Any, pairs: Callable[[Any], list[Pair]]) -> None:
        """Read an item, and of those that come after it as many as make full batches."""
        block = {item.key: pairs(item)}
        keys = [entry.key for entry in self.coming]
        for follower in self.coming[keys.index(item.key) + 1 :] if item.key in keys else ():
            if sum(map(len, block.values())) >= AHEAD * self._model.batch:
                break
            if follower.key not in self._findings:
                block[follower.key] = pairs(follower)
        findings = iter(self._model.read([pair for item_pairs in block.values() for pair in item_pairs]))
        self._findings |= {key: [next(findings) for _ in item_pairs] for key, item_pairs in block.items()}


@dataclass
class PassageSupports:
    """How far the passages of a question entail its options; a `SupportReader`."""

    reader: ReadAhead
    retrieval: Retrieval

    def read_supports(self, question: Question) -> Supports:
        """Score how far each passage of a question entails each of its options."""
        supports: defaultdict[str, dict[int, float]] = defaultdict(dict)
        scores = self.reader.read(question, lambda item: [each.pair for each in list_hypotheses(item, self.retrieval)])
        for each, score in zip(list_hypotheses(question, self.retrieval), scores, strict=True):
            by_option = supports[each.passage.id]
            by_option[each.option] = max(float(score), by_option.get(each.option, float(score)))
        return supports


def pin_reader(settings: ReaderSettings) -> ReaderSettings:
    """Set the model's content as the settings' revision: its folder's fingerprint, or the commit of a hub model.

    Raises `EngineError` where its folder is missing or holds no safetensors, or nobody tells the commit.
    """
    return dataclasses.replace(settings, revision=find_encoder_weights(settings.model, settings.revision).revision)


def reader_identity(pinned: ReaderSettings) -> dict[str, Any]:
    """Return what the answers of a pinned reader depend on: its content, and how texts are cut for it."""
    return {"revision": pinned.revision, "tokens": list(_local_reader(pinned).tokens)}
