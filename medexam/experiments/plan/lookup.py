"""What a question is asked with: passages, and the solved questions nearest to it.

Passages are looked up once for all questions of a run, and never again for another model, language or prompt: what a
query found is kept on disk under the retriever's digest, so a second run opens no index and loads no encoder. Texts
that only come up while questions are asked are looked up many at once.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Self
from unicodedata import normalize

import dspy
import numpy as np
from filelock import FileLock

from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.store.logs import cut_torn_line, parse_lines
from medexam.files import cache_dir
from medexam.questions import AnySet, Question, Task
from medexam.retrievers.base import Hit, Passage, Progress, Retriever
from medexam.retrievers.building import PlannedRetriever
from medexam.specs.identity import digest
from medexam.specs.programs.needs import RetrievalSettings


@dataclass
class Retrieval:
    """The passages of a run: a `PassageFinder` of its questions once `fill` was called, and what searches any text.

    Texts that are searched for while others are looked up wait and share the next pass, so that an encoder has full
    batches and a lexical index is entered once for many questions.
    """

    settings: RetrievalSettings
    planned: PlannedRetriever | None = None
    """Is opened, which may make an index, when something must be looked up. None where its corpus is not here, so that
    nothing can be."""
    warnings: tuple[str, ...] = ()
    """What a reader of the results should know of how passages were found."""
    translations: AnySet | None = None
    """The questions in the language that queries are written in; None: those that are asked."""
    hits: dict[tuple[str, int], list[Hit]] = field(default_factory=dict)
    """What queries have found at a depth."""
    _opened: Retriever | None = None
    _waiting: list[tuple[Sequence[str], int]] = field(default_factory=list)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself: copies of a program share what was looked up."""
        return self

    @property
    def identity(self) -> dict[str, Any]:
        """What rankings depend on, as far as it is known."""
        return self.settings.retriever.model_dump(mode="json") if self.planned is None else self.planned.identity

    @cached_property
    def _cache(self) -> Path:
        """A file of what queries found, a line of JSON each."""
        return cache_dir() / "retrieval" / f"{digest(self.identity)}.jsonl"

    @cached_property
    def _translated(self) -> dict[str, Any]:
        return {} if self.translations is None else {each.key: each for each in self.translations.questions}

    def recall(self, questions: Sequence[Question | Task]) -> list[str]:
        """Take what is known from before, and return the queries of which nothing is, each once."""
        k = self.settings.k
        queries = dict.fromkeys(query for question in questions for query in self.queries(question).values())
        missing = {query for query in queries if (query, k) not in self.hits}
        if missing and self.planned is not None:
            try:
                for _, _, entry in parse_lines(self._cache, json.loads):
                    if entry["query"] in missing and entry["k"] >= k:
                        records = enumerate(entry["hits"][:k], start=1)
                        hits = [Hit(Passage(**one["passage"]), one["score"], rank) for rank, one in records]
                        self.hits[entry["query"], k] = hits
            except RunFolderError:
                # A damaged file is made anew.
                self._cache.unlink()
        return [query for query in queries if (query, k) not in self.hits]

    def fill(self, questions: Sequence[Question | Task], progress: Progress | None = None) -> None:
        """Look up every query of the questions in one pass.

        `progress` is called with the number of encoded passages while an index is made; an exception that it raises
        stops that, and what is encoded is kept. Raises `DatasetError` as `asked` does.
        """
        if (missing := self.recall(questions)) or (questions and self.settings.query == "written"):
            self._look_up(missing, self.settings.k, progress)

    def _look_up(self, queries: Sequence[str], k: int, progress: Progress | None = None) -> None:
        """Look up any texts, and keep what they find on disk; not for several threads at once."""
        if self.planned is None:
            return
        if self._opened is None:
            self._opened = self.planned.open(cache_dir(), progress)
        missing = [query for query in dict.fromkeys(queries) if (query, k) not in self.hits]
        if not missing:
            return
        new = dict(zip(missing, self._opened.search([normalize("NFC", query) for query in missing], k), strict=True))
        lines = []
        for query, hits in new.items():
            records = [{"score": hit.score, "passage": asdict(hit.passage)} for hit in hits]
            lines.append(json.dumps({"query": query, "k": k, "hits": records}, ensure_ascii=False) + "\n")
        try:
            self._cache.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self._cache}.lock"):
                cut_torn_line(self._cache)
                with self._cache.open("a", encoding="utf-8") as stream:
                    stream.writelines(lines)
        except OSError as error:
            raise RunFolderError(
                f"{self._cache}: the passages cannot be written: {error.strerror}; name another folder with "
                "MEDEXAM_CACHE"
            ) from None
        self.hits |= {(query, k): list(hits) for query, hits in new.items()}

    def find(self, question: Question | Task) -> list[Hit]:
        """Return the passages to show, most relevant first, each once by its best score."""
        best: dict[str, Hit] = {}
        for hit in (hit for query in self.queries(question).values() for hit in self.hits[query, self.settings.k]):
            if hit.passage.id not in best or hit.score > best[hit.passage.id].score:
                best[hit.passage.id] = hit
        ordered = sorted(best.values(), key=lambda hit: -hit.score)[: self.settings.k]
        return [Hit(hit.passage, hit.score, rank) for rank, hit in enumerate(ordered, start=1)]

    def find_per_option(self, question: Question) -> dict[int, list[Hit]]:
        """Map the printed number of each option to its passages: those found for the stem with it, or those of all."""
        if self.settings.query == "per_option":
            return {number: self.hits[query, self.settings.k] for number, query in self.queries(question).items()}
        return dict.fromkeys(question.option_numbers, self.find(question))

    def queries(self, question: Question | Task) -> dict[int, str]:
        """Return what is looked up for a question, by the option that it is for; 0: for the whole question."""
        if self.settings.query == "written":
            return {}
        question = self.asked(question)
        if isinstance(question, Question):
            stem, options = question.stem, {option.number: option.text for option in question.options}
        else:
            stem, options = question.question, dict(enumerate(question.options, start=1))
        if self.settings.query == "per_option" and options:
            return {number: f"{stem} {text}" for number, text in options.items()}
        return {0: "\n".join([stem, *options.values()]) if self.settings.query == "stem_and_options" else stem}

    def asked(self, question: Any) -> Any:
        """Return the question in the language of the queries; raises `DatasetError` where it is not translated."""
        if self.translations is None:
            return question
        if question.key not in self._translated:
            raise DatasetError(
                f"{question.key} has no translation in {self.settings.query_language!r} to look up; "
                "leave program.query_language out, or take a data set that has it in both languages"
            )
        return self._translated[question.key]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find at most `k` passages of each of any texts, most relevant first; from any thread."""
        return self._submit(queries, k).result()

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Find the same without blocking."""
        return await asyncio.wrap_future(self._submit(queries, k))

    def _submit(self, queries: Sequence[str], k: int) -> "Future[list[list[Hit]]]":
        """Search in the one thread, where all that waits shares a pass."""

        def search() -> list[list[Hit]]:
            waiting, self._waiting = self._waiting, []
            for depth in {depth for _, depth in waiting}:
                self._look_up([query for texts, at in waiting if at == depth for query in texts], depth)
            # Where a pass failed that looked them up with others.
            self._look_up(queries, k)
            return [self.hits[query, k] for query in queries]

        self._waiting.append((queries, k))
        return _search_thread().submit(search)

    @contextmanager
    def marked(self, questions: Sequence[Question | Task]) -> Iterator[None]:
        """Have what is not known of these questions shown as a mark while the block runs; nothing is looked up."""
        self.recall(questions)
        planned, hits = self.planned, self.hits
        self.planned, self.hits = None, _Marks(hits)
        try:
            yield
        finally:
            self.planned, self.hits = planned, hits


class _Marks(dict[tuple[str, int], list[Hit]]):
    def __missing__(self, key: tuple[str, int]) -> list[Hit]:
        return [Hit(Passage(f"passage {n}", "", f"[passage {n}]", ""), 0.0, n) for n in range(1, key[1] + 1)]


@cache
def _search_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="medexam-search")


@dataclass
class NearestDemonstrations:
    """The solved questions of a pool by nearness to a question."""

    pool: Sequence[dspy.Example]
    """With `question`, and what a prompt shows of them."""
    k: int
    encoder: str
    """As `retriever.encoder`."""
    _vectors: dict[str, Any] = field(default_factory=dict)
    """Of the stems that are encoded so far."""
    _encoder: Any = None
    _lock: Lock = field(default_factory=Lock)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself: programs are copied by the hundred, and share what was encoded."""
        return self

    def find(self, question: Question) -> list[dspy.Example]:
        """Find the `k` nearest, the nearest last; a question is never its own demonstration."""
        stems = [demo.question.stem for demo in self.pool]
        with self._lock:
            if missing := [stem for stem in dict.fromkeys([*stems, question.stem]) if stem not in self._vectors]:
                from medexam.retrievers.encoders import build_encoder

                self._encoder = self._encoder or build_encoder(self.encoder)
                vectors = self._encoder.encode_queries([f"stem: {stem}" for stem in missing])
                self._vectors |= dict(zip(missing, vectors, strict=True))
        scores = np.stack([self._vectors[stem] for stem in stems]) @ self._vectors[question.stem]
        neighbours = [self.pool[place] for place in scores.argsort()[-self.k :]]
        return [demo for demo in neighbours if demo.question.key != question.key]


def nearest_identity(k: int, encoder: str) -> dict[str, Any]:
    """Return what the choice of demonstrations depends on: their number, and the encoder by content or hub revision."""
    from medexam.retrievers.encoders import find_encoder

    weights = find_encoder(encoder)
    return {"k": k, "encoder": [weights.label, weights.revision] if weights.hub else weights.revision}
