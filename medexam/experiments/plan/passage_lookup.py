"""Looking up passages: once for all questions of a run, and never again for another model, language or prompt.

What a query found is kept on disk under the retriever's digest, so a second run opens no index and loads no encoder.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from medexam.errors import DatasetError, MedExamError, RunFolderError
from medexam.experiments.store.logs import cut_torn_line, parse_lines
from medexam.programs.retrieval.reading import Supports
from medexam.questions import Language, Question, Task
from medexam.retrievers.base import Hit, Passage, Retriever
from medexam.retrievers.building import PlannedRetriever
from medexam.retrievers.encoders import Progress
from medexam.specs.identity import digest
from medexam.specs.programs.needs import RetrievalSettings
from medexam.text import composed

Query = str
Asked = TypeVar("Asked", bound=Question | Task)
Translations = Callable[[], Mapping[str, Any]]
"""Of nothing, key -> the same question in another language; read only where something is looked up."""


class HitCache:
    """What queries found, one line each, in a file of their retriever's own.

    A line is a seal, a tab and JSON. The seal is a hash of the retriever's digest and the JSON, so that a line that was
    changed, or that another retriever found, is known; such a file is never believed and made anew.
    """

    def __init__(self, folder: Path, digest: str) -> None:
        self._path = folder / f"{digest}.jsonl"
        self._digest = digest
        self._broken = False

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
    translations: Translations | None = None
    """The questions in the language that queries are written in; None: those that are asked."""
    _findings: dict[Query, list[Hit]] = field(default_factory=dict)
    _translation_by_key: Mapping[str, Any] = field(default_factory=dict)
    _retriever: Retriever | None = None
    _texts: dict[tuple[Query, int], list[Hit]] = field(default_factory=dict)

    def look_up(self, queries: Sequence[Query], k: int) -> dict[Query, list[Hit]]:
        """Look up passages for any texts, most relevant first; not for several threads at once.

        The retriever is opened at the first call, and what it finds is kept on disk beside what questions find.
        """
        missing = [query for query in dict.fromkeys(queries) if (query, k) not in self._texts]
        if missing:
            hits = self._open(None).search([composed(query) for query in missing], k)
            hits_by_query = dict(zip(missing, map(list, hits), strict=True))
            self.cache.write(hits_by_query, k)
            self._texts |= {(query, k): query_hits for query, query_hits in hits_by_query.items()}
        return {query: self._texts[query, k] for query in queries}

    def _open(self, progress: Progress | None) -> Retriever:
        if self._retriever is None:
            self._retriever = self.build(progress)
        return self._retriever

    def recall(self, questions: Sequence[Question | Task]) -> list[Query]:
        """Take what is known from before, and return the queries of which nothing is, each once."""
        if self.translations is not None and not self._translation_by_key:
            self._translation_by_key = self.translations()
        queries = dict.fromkeys(query for question in questions for query in self.queries(question).values())
        missing = [query for query in queries if query not in self._findings]
        if missing:
            self._findings |= self.cache.read(missing, self.settings.k)
        return [query for query in missing if query not in self._findings]

    def fill(self, questions: Sequence[Question | Task], progress: Progress | None = None) -> int:
        """Look up every query of the questions in one pass, and return how many were not known from before.

        `progress` is called with the number of encoded passages while an index is made; an exception that it raises
        stops that, and what is encoded is kept. Raises `DatasetError` where a question has no translation in the
        language of the queries.
        """
        missing = self.recall(questions)
        if questions and self.settings.query == "written":
            self._open(progress)
        if missing:
            hits = self._open(progress).search(missing, self.settings.k)
            hits_by_query = dict(zip(missing, hits, strict=True))
            self.cache.write(hits_by_query, self.settings.k)
            self._findings |= hits_by_query
        return len(missing)

    def find(self, question: Question | Task) -> list[Hit]:
        """Return the passages to show, most relevant first, each once."""
        return merge_hits([self._findings[query] for query in self.queries(question).values()], self.settings.k)

    def in_prefix_order(self, questions: Sequence[Asked]) -> list[Asked]:
        """Sort the questions so that those that show the same first passages stand next to each other.

        Their prompts open alike, and a server that remembers prompts reads what they share once.
        """
        return sorted(questions, key=lambda question: [hit.passage.id for hit in self.find(question)])

    def find_per_option(self, question: Question) -> dict[int, list[Hit]]:
        """Map the printed number of each option to its passages: those found for the stem with it, or those of all."""
        if self.settings.query == "per_option":
            return {number: self._findings[query] for number, query in self.queries(question).items()}
        return dict.fromkeys(question.option_numbers, self.find(question))

    def queries(self, question: Question | Task) -> dict[int, Query]:
        """Return what is looked up for a question, in NFC, by the option that it is for; 0 stands for the whole
        question.
        """
        if self.settings.query == "written":
            return {}
        stem, options = _stem_and_options(self.asked(question))
        if self.settings.query == "per_option" and options:
            return {number: f"{stem} {text}" for number, text in options.items()}
        if self.settings.query == "stem_and_options":
            return {0: "\n".join([stem, *options.values()])}
        return {0: stem}

    def asked(self, question: Asked) -> Asked:
        """Return the question in the language of the queries; raises `DatasetError` where it is not translated."""
        if self.translations is None:
            return question
        if question.key not in self._translation_by_key:
            raise DatasetError(
                f"{question.key} has no translation in {self.settings.query_language!r} to look up; "
                "leave program.query_language out, or take a data set that has it in both languages"
            )
        translation: Asked = self._translation_by_key[question.key]
        return translation


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


def known_passages(retrieval: Retrieval, query: Question | Task | Query, k: int) -> list[Hit]:
    """Return the passages that are known from before, for a look at a prompt; else a mark for each."""
    hits: list[Hit] | None = None
    if retrieval.size is not None:
        if isinstance(query, str):
            hits = retrieval.cache.read([query], k).get(query)
        elif not retrieval.recall([query]):
            hits = retrieval.find(query)
    marks = [Hit(Passage(f"passage {rank}", "", f"[passage {rank}]", ""), 0.0, rank) for rank in range(1, k + 1)]
    return marks if hits is None else hits


def _stem_and_options(question: Question | Task) -> tuple[str, dict[int, str]]:
    """Return what is asked, and the options by their printed numbers, or by their places where they have none."""
    if isinstance(question, Question):
        return composed(question.stem), {option.number: composed(option.text) for option in question.options}
    return composed(question.question), dict(enumerate(map(composed, question.options), start=1))


def merge_hits(hit_lists: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """Merge several lists of one retriever into the `k` best hits, each passage once, by its best score."""
    best: dict[str, Hit] = {}
    for hits in hit_lists:
        for hit in hits:
            best_hit = best.get(hit.passage.id)
            if best_hit is None or hit.score > best_hit.score:
                best[hit.passage.id] = hit
    ordered = sorted(best.values(), key=lambda hit: -hit.score)[:k]
    return [Hit(hit.passage, hit.score, rank) for rank, hit in enumerate(ordered, start=1)]


def plan_retrieval(
    settings: RetrievalSettings,
    planned: PlannedRetriever,
    cache: Path,
    language: Language,
    translations: Translations | None = None,
) -> Retrieval:
    """Plan the retrieval of a cell whose questions are in `language`, with nothing looked up yet.

    Raises `SpecError` where `k` exceeds the corpus, or what the method can rank.
    """
    planned.check_depth(settings.k)
    return Retrieval(
        settings,
        build=partial(planned.open, cache),
        cache=HitCache(cache / "retrieval", digest(planned.identity)),
        size=planned.size,
        warnings=planned.warnings(settings.query_language or language),
        translations=translations,
    )


def plan_without_corpus(
    settings: RetrievalSettings, reason: MedExamError, translations: Translations | None
) -> Retrieval:
    """Plan a cell's retrieval for a look at its plan, where what it would search is not known here for `reason`."""

    def build(_: Progress | None) -> Retriever:
        raise reason

    return Retrieval(
        settings, build, HitCache(Path(), ""), size=None, warnings=(str(reason),), translations=translations
    )
