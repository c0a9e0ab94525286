"""Having passages read by a local model: many questions a batch, in the order in which they are asked.

It looks passages up as any retrieval does, reads ahead while a run asks one question after the other, and keeps nothing
on disk: an answer that was given is not asked for again.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from medexam.encoder_weights import find_encoder_weights
from medexam.experiments.plan.passage_lookup import Asked, Retrieval, merge_hits
from medexam.plugins import load_object
from medexam.programs import Entailments, ReadSpan
from medexam.programs.retrieval.reading import ReadContext, Supports
from medexam.questions import Question, Task
from medexam.retrievers.base import Hit, LocalReader
from medexam.retrievers.encoders import Progress
from medexam.specs.programs.needs import ReaderSettings
from medexam.text import split_sentences

AHEAD = 4
"""Batches that are read at once: enough to sort texts by length, few enough to stop soon."""

Pair = tuple[str, str]


LOCAL_READERS = "medexam.local_readers"
"""The group in which companions register what finds spans, or scores entailment."""


def _local_reader(settings: ReaderSettings) -> LocalReader:
    reader: LocalReader = load_object(settings.finds, LOCAL_READERS)
    return reader


def _load(settings: ReaderSettings) -> Any:
    return _local_reader(settings).load(settings)


@dataclass(kw_only=True)
class ReadAhead:
    """What a local model finds in pairs of texts: in blocks, in the order of asking, and each item once."""

    reader: ReaderSettings
    load: Callable[[ReaderSettings], Any] = _load
    """Loads the local model, an object with `batch` and `label`."""
    coming: Sequence[Any] = ()
    """What is going to be asked, in this order."""
    _model: Any = None
    _findings: dict[str, list[Any]] = field(default_factory=dict)
    """Key of an item -> what was found in each of its pairs."""
    _reading: Lock = field(default_factory=Lock)

    def _pairs(self, item: Any) -> list[Pair]:
        """Return the pairs of texts that the model reads for an item."""
        raise NotImplementedError

    def _find_in(self, item: Any) -> list[Any]:
        """Return what was found in each pair of an item, reading it if it is not read yet."""
        # One thread reads a block and the others wait: their items most likely are in it.
        with self._reading:
            if item.key not in self._findings:
                self._read_block(item)
            return self._findings[item.key]

    def _loaded(self) -> Any:
        if self._model is None:
            self._model = self.load(self.reader)
        return self._model

    def _read_block(self, item: Any) -> None:
        """Read an item, and of those that come after it as many as make full batches."""
        model, block = self._loaded(), {item.key: self._pairs(item)}
        keys = [entry.key for entry in self.coming]
        for follower in self.coming[keys.index(item.key) + 1 :] if item.key in keys else ():
            if sum(map(len, block.values())) >= AHEAD * model.batch:
                break
            if follower.key not in self._findings:
                block[follower.key] = self._pairs(follower)
        pairs = [pair for item_pairs in block.values() for pair in item_pairs]
        findings = iter(model.read(pairs) if self.reader.finds == "spans" else model.score(pairs))
        self._findings |= {key: [next(findings) for _ in item_pairs] for key, item_pairs in block.items()}


@dataclass(kw_only=True)
class PassageReading(ReadAhead, Retrieval):
    """The passages of a run's questions and what a local model reads in them; a `QuestionReader`."""

    def fill(self, questions: Sequence[Question | Task], progress: Progress | None = None) -> int:
        """Look up every query, and load the model, so that what is wrong with it is said before a question is asked.

        Raises what `Retrieval.fill` raises, and `EngineError` where the model cannot be loaded or has no such head.
        """
        if questions:
            self._loaded()
        return super().fill(questions, progress)

    def in_prefix_order(self, questions: Sequence[Asked]) -> list[Asked]:
        """Return the questions in the order in which they are read ahead, and are to be asked."""
        ordered = super().in_prefix_order(questions)
        self.coming = ordered
        return ordered

    def read_span(self, question: Question) -> ReadSpan:
        """Find the best span over all passages of a question."""
        spans = [span for span in self._find_in(question) if span is not None]
        best = max(spans, key=lambda span: span.score, default=None)
        return ReadSpan(self.asked(question), best, tuple(self.find(question)), self._model.label)

    def read_entailments(self, question: Question) -> Entailments:
        """Find the best sentence for each option of a question."""
        best: dict[int, tuple[float, str]] = {}
        for (number, _, premise, _), score in zip(self._hypotheses(question), self._find_in(question), strict=True):
            if number not in best or score > best[number][0]:
                best[number] = (float(score), premise)
        hits = self._hits_by_option(question)
        return Entailments(best, tuple(merge_hits(list(hits.values()), self.settings.k * len(hits))), self._model.label)

    def read_supports(self, question: Question) -> Supports:
        """Score how far each passage of a question entails each of its options."""
        supports: defaultdict[str, dict[int, float]] = defaultdict(dict)
        for (number, passage, _, _), score in zip(self._hypotheses(question), self._find_in(question), strict=True):
            supports[passage][number] = max(float(score), supports[passage].get(number, float(score)))
        return supports

    def _pairs(self, item: Question) -> list[Pair]:
        if self.reader.finds == "spans":
            stem = self.asked(item).stem
            return [(stem, hit.passage.text) for hit in self.find(item)]
        return [(premise, hypothesis) for _, _, premise, hypothesis in self._hypotheses(item)]

    def _hypotheses(self, question: Question) -> list[tuple[int, str, str, str]]:
        """List number, passage, premise and hypothesis: each sentence of an option's passages with the stem and that
        option.
        """
        translation = self.asked(question)
        hits = self._hits_by_option(question)
        return [
            (option.number, hit.passage.id, sentence, f"{translation.stem} {option.text}")
            for option in translation.options
            for hit in hits[option.number]
            for sentence in _sentences(hit.passage.content)
        ]

    def _hits_by_option(self, question: Question) -> dict[int, list[Hit]]:
        if self.settings.query == "per_option":
            return self.find_per_option(question)
        hits = self.find(question)
        return {option.number: hits for option in question.options}


class ContextReading(ReadAhead):
    """What a local model reads in the contexts of tasks; a `ContextReader`."""

    def read_context(self, task: Task) -> ReadContext:
        """Find the best span of the task's context. Raises `EngineError` where the model cannot be loaded."""
        (span,) = self._find_in(task)
        return ReadContext(span, self._model.label)

    def _pairs(self, item: Task) -> list[Pair]:
        return [(item.question, item.context)]


def _sentences(text: str) -> list[str]:
    """Split a text into its sentences, without those that hold no word."""
    sentences = (text[start:end] for start, end in split_sentences(text))
    return [sentence for sentence in sentences if any(map(str.isalnum, sentence))]


def with_reader(retrieval: Retrieval, settings: ReaderSettings) -> PassageReading:
    """Return the retrieval of a program that has passages read, with nothing loaded yet."""
    arguments = {item.name: getattr(retrieval, item.name) for item in dataclasses.fields(retrieval) if item.init}
    return PassageReading(**arguments, reader=settings)


def pin_reader(settings: ReaderSettings) -> ReaderSettings:
    """Set the model's content as the settings' revision: its folder's fingerprint, or the commit of a hub model.

    Raises `EngineError` where its folder is missing or holds no safetensors, or nobody tells the commit.
    """
    return dataclasses.replace(settings, revision=find_encoder_weights(settings.model, settings.revision).revision)


def reader_identity(pinned: ReaderSettings) -> dict[str, Any]:
    """Return what the answers of a pinned reader depend on: its content, and how texts are cut for it."""
    return {"revision": pinned.revision, "tokens": list(_local_reader(pinned).tokens)}
