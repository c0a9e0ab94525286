"""Looking up passages: once for all questions of a run, and never again for another model, language or prompt.

What a query found is kept on disk under the retriever's digest, so a second run opens no index and loads no encoder.
Texts that only come up while questions are asked, which a model or a module writes, are looked up many at once, and
texts that a local model reads are read in blocks.
"""

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from filelock import FileLock

from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.store.logs import cut_torn_line, parse_lines
from medexam.plugins import load_object
from medexam.programs import list_hypotheses
from medexam.programs.retrieving import Pair, Supports
from medexam.questions import Question, Task
from medexam.retrievers.base import Hit, LocalReader, Passage, Retriever
from medexam.retrievers.encoders import Progress
from medexam.specs.programs.needs import ReaderSettings, RetrievalSettings
from medexam.text import composed

Query = str
Asked = TypeVar("Asked", bound=Question | Task)
LOCAL_READERS = "medexam.local_readers"
"""The group in which packages register what reads texts."""
AHEAD = 4
"""Batches that are read at once: enough to sort texts by length, few enough to stop soon."""


class HitCache:
    """What queries found, one line each, in a file of their retriever's own.

    A line is a seal, a tab and JSON. The seal is a hash of the retriever's digest and the JSON, so that a line that was
    changed, or that another retriever found, is known; such a file is never believed and made anew.
    """

    def __init__(self, folder: Path, digest: str) -> None:
        self._path, self._digest, self._broken = folder / f"{digest}.jsonl", digest, False

    def read(self, queries: Iterable[Query], k: int) -> dict[Query, list[Hit]]:
        """Read the hits of queries that were looked up at this depth or deeper; of a file that is broken, none."""
        query_set = set(queries)
        hits_by_query: dict[Query, list[Hit]] = {}
        for _, _, line in parse_lines(self._path, bytes):
            seal, _, payload = line[:-1].partition(b"\t")
            if seal != self._seal(payload):
                self._broken = True
                return {}
            entry = json.loads(payload)
            if entry["query"] in query_set and entry["k"] >= k:
                hits_by_query[entry["query"]] = [
                    Hit(Passage(**hit["passage"]), hit["score"], rank)
                    for rank, hit in enumerate(entry["hits"][:k], start=1)
                ]
        return hits_by_query

    def write(self, hits_by_query: Mapping[Query, Sequence[Hit]], k: int) -> None:
        """Keep what queries found at depth `k`; raises `RunFolderError` where that is not possible."""
        lines = []
        for query, hits in hits_by_query.items():
            records = [{"score": hit.score, "passage": asdict(hit.passage)} for hit in hits]
            payload = json.dumps({"query": query, "k": k, "hits": records}, ensure_ascii=False).encode()
            lines.append(b"%b\t%b\n" % (self._seal(payload), payload))
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self._path}.lock"):
                if self._broken:
                    self._path.unlink()
                    self._broken = False
                cut_torn_line(self._path)
                with self._path.open("ab") as stream:
                    stream.write(b"".join(lines))
        except OSError as error:
            raise RunFolderError(
                f"{self._path}: the passages cannot be written: {error.strerror}; name another folder with "
                "MEDEXAM_CACHE"
            ) from None

    def _seal(self, payload: bytes) -> bytes:
        return hashlib.sha256(self._digest.encode() + payload).hexdigest()[:16].encode()


@dataclass
class Retrieval:
    """The passages of a run's questions; empty until `fill`."""

    settings: RetrievalSettings
    build: Callable[[Progress | None], Retriever]
    """Opens the retriever, telling how many passages are encoded where it must make an index; called only when
    something must be looked up."""
    cache: HitCache
    size: int | None
    """Passages of the corpus; None where it is not here, so that nothing can be looked up."""
    warnings: tuple[str, ...] = ()
    """What a reader of the results should know of how passages were found."""
    translations: Mapping[str, Any] | None = None
    """Key -> the same question in the language that queries are written in; None: those that are asked."""
    _hits: dict[tuple[Query, int], list[Hit]] = field(default_factory=dict)
    _retriever: Retriever | None = None

    def look_up(self, queries: Sequence[Query], k: int, progress: Progress | None = None) -> dict[Query, list[Hit]]:
        """Look up passages for any texts, most relevant first; not for several threads at once.

        The retriever is opened at the first call, and what it finds is kept on disk.
        """
        missing = [query for query in dict.fromkeys(queries) if (query, k) not in self._hits]
        if missing:
            hits = self._open(progress).search([composed(query) for query in missing], k)
            hits_by_query = dict(zip(missing, map(list, hits), strict=True))
            self.cache.write(hits_by_query, k)
            self._hits |= {(query, k): query_hits for query, query_hits in hits_by_query.items()}
        return {query: self._hits[query, k] for query in queries}

    def _open(self, progress: Progress | None) -> Retriever:
        if self._retriever is None:
            self._retriever = self.build(progress)
        return self._retriever

    def recall(self, questions: Sequence[Question | Task]) -> list[Query]:
        """Take what is known from before, and return the queries of which nothing is, each once."""
        k = self.settings.k
        queries = dict.fromkeys(query for question in questions for query in self.queries(question).values())
        if missing := [query for query in queries if (query, k) not in self._hits]:
            self._hits |= {(query, k): hits for query, hits in self.cache.read(missing, k).items()}
        return [query for query in missing if (query, k) not in self._hits]

    def fill(self, questions: Sequence[Question | Task], progress: Progress | None = None) -> None:
        """Look up every query of the questions in one pass.

        `progress` is called with the number of encoded passages while an index is made; an exception that it raises
        stops that, and what is encoded is kept. Raises `DatasetError` where a question has no translation in the
        language of the queries.
        """
        missing = self.recall(questions)
        if questions and self.settings.query == "written":
            self._open(progress)
        self.look_up(missing, self.settings.k, progress)

    def find(self, question: Question | Task) -> list[Hit]:
        """Return the passages to show, most relevant first, each once by its best score."""
        best: dict[str, Hit] = {}
        for hit in (hit for query in self.queries(question).values() for hit in self._hits[query, self.settings.k]):
            if hit.passage.id not in best or hit.score > best[hit.passage.id].score:
                best[hit.passage.id] = hit
        ordered = sorted(best.values(), key=lambda hit: -hit.score)[: self.settings.k]
        return [Hit(hit.passage, hit.score, rank) for rank, hit in enumerate(ordered, start=1)]

    def find_per_option(self, question: Question) -> dict[int, list[Hit]]:
        """Map the printed number of each option to its passages: those found for the stem with it, or those of all."""
        if self.settings.query == "per_option":
            return {number: self._hits[query, self.settings.k] for number, query in self.queries(question).items()}
        return dict.fromkeys(question.option_numbers, self.find(question))

    def queries(self, question: Question | Task) -> dict[int, Query]:
        """Return what is looked up for a question, in NFC, by the option that it is for; 0 stands for the whole
        question.
        """
        if self.settings.query == "written":
            return {}
        question = self.asked(question)
        if isinstance(question, Question):
            stem, options = question.stem, {option.number: composed(option.text) for option in question.options}
        else:
            stem, options = question.question, dict(enumerate(map(composed, question.options), start=1))
        stem = composed(stem)
        if self.settings.query == "per_option" and options:
            return {number: f"{stem} {text}" for number, text in options.items()}
        return {0: "\n".join([stem, *options.values()]) if self.settings.query == "stem_and_options" else stem}

    def asked(self, question: Asked) -> Asked:
        """Return the question in the language of the queries; raises `DatasetError` where it is not translated."""
        if self.translations is None:
            return question
        if question.key not in self.translations:
            raise DatasetError(
                f"{question.key} has no translation in {self.settings.query_language!r} to look up; "
                "leave program.query_language out, or take a data set that has it in both languages"
            )
        translation: Asked = self.translations[question.key]
        return translation

    def preview(self, query: Question | Task | Query, k: int) -> list[Hit]:
        """Return the passages that are known from before, for a look at a prompt; else a mark for each."""
        hits: list[Hit] | None = None
        if self.size is not None:
            if isinstance(query, str):
                hits = self.cache.read([query], k).get(query)
            elif not self.recall([query]):
                hits = self.find(query)
        marks = [Hit(Passage(f"passage {rank}", "", f"[passage {rank}]", ""), 0.0, rank) for rank in range(1, k + 1)]
        return marks if hits is None else hits


class GivenPassages:
    """Passages without a look-up: `give` returns at most `k` for a question or for any text."""

    def __init__(self, give: Callable[[Question | Task | Query, int], list[Hit]], k: int) -> None:
        self._give, self._k = give, k

    def find(self, question: Question | Task) -> list[Hit]:
        """Return the passages to show."""
        return self._give(question, self._k)

    def find_per_option(self, question: Question) -> dict[int, list[Hit]]:
        """Map the printed number of each option to its passages."""
        return {number: self.find(question) for number in question.option_numbers}

    def asked(self, question: Question) -> Question:
        """Return the question as it is."""
        return question

    def read_supports(self, question: Question) -> Supports:
        """Map each passage to 0 nats for every option: all are kept."""
        return {hit.passage.id: dict.fromkeys(question.option_numbers, 0.0) for hit in self.find(question)}

    def search(self, queries: Sequence[Query], k: int) -> list[list[Hit]]:
        """Return the passages of any texts."""
        return [self._give(query, k) for query in queries]

    async def asearch(self, queries: Sequence[Query], k: int) -> list[list[Hit]]:
        """Return the same; nothing here waits."""
        return self.search(queries, k)


class TextSearch:
    """Looks up any text in the corpus of a run, from any thread; a `PassageSearch`.

    Texts that come while others are looked up wait and share the next pass, so that an encoder has full batches and a
    lexical index is entered once for many questions.
    """

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval
        self._queue: list[tuple[Sequence[Query], int, Future[list[list[Hit]]]]] = []
        self._lock = Lock()

    def search(self, queries: Sequence[Query], k: int) -> list[list[Hit]]:
        """Find at most `k` passages of each query, most relevant first."""
        return self._ask(queries, k).result()

    async def asearch(self, queries: Sequence[Query], k: int) -> list[list[Hit]]:
        """Find the same without blocking."""
        return await asyncio.wrap_future(self._ask(queries, k))

    def _ask(self, queries: Sequence[Query], k: int) -> "Future[list[list[Hit]]]":
        future: Future[list[list[Hit]]] = Future()
        with self._lock:
            self._queue.append((queries, k, future))
        _search_thread().submit(self._search_waiting)
        return future

    def _search_waiting(self) -> None:
        """Search in one pass for all that waits at a depth; those who gave up meanwhile are left out."""
        with self._lock:
            requests, self._queue = self._queue, []
        requests = [request for request in requests if request[2].set_running_or_notify_cancel()]
        for depth in {k for _, k, _ in requests}:
            group = [(queries, future) for queries, k, future in requests if k == depth]
            try:
                hits = self._retrieval.look_up([query for queries, _ in group for query in queries], depth)
            except Exception as error:
                for _, future in group:
                    future.set_exception(error)
            else:
                for queries, future in group:
                    future.set_result([hits[query] for query in queries])


@cache
def _search_thread() -> ThreadPoolExecutor:
    """Start one thread for all: retrievers promise nothing of several."""
    return ThreadPoolExecutor(1, thread_name_prefix="medexam-search")


def local_reader(settings: ReaderSettings) -> LocalReader:
    """Find what reads texts by the settings' name."""
    reader: LocalReader = load_object(settings.finds, LOCAL_READERS)
    return reader


@dataclass
class ReadAhead:
    """What a local model finds in pairs of texts, in blocks and each item once; a `TextReader` and a `SupportReader`.

    It reads ahead in the order in which questions are asked, and keeps nothing on disk: an answer that was given is
    not asked for again.
    """

    settings: ReaderSettings
    coming: Sequence[Question | Task]
    """What is going to be asked."""
    retrieval: Retrieval | None
    _model: Any = None
    _findings: dict[str, list[Any]] = field(default_factory=dict)
    """Key of an item -> what was found in each of its pairs."""
    _lock: Lock = field(default_factory=Lock)

    @property
    def label(self) -> str:
        """The model as people read it. Raises `EngineError` where it cannot be loaded or has no such head."""
        if self._model is None:
            self._model = local_reader(self.settings).load(self.settings)
        return str(self._model.label)

    def read(self, item: Any, pairs: Callable[[Any], list[Pair]]) -> list[Any]:
        """Return what was found in each pair of an item; those of items that come after it may be read with them."""
        # One thread reads a block and the others wait: their items most likely are in it.
        with self._lock:
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

    def read_supports(self, question: Question) -> Supports:
        """Score how far each passage of a question entails each of its options."""
        finder: Any = self.retrieval
        supports: defaultdict[str, dict[int, float]] = defaultdict(dict)
        scores = self.read(question, lambda item: [each.pair for each in list_hypotheses(item, finder)])
        for each, score in zip(list_hypotheses(question, finder), scores, strict=True):
            by_option = supports[each.passage.id]
            by_option[each.option] = max(float(score), by_option.get(each.option, float(score)))
        return supports
