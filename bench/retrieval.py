"""Retrieval beside FAISS, MedRAG's loop and sentence-transformers: search, encoding, a second run, memory.

    python bench/retrieval.py search
    python bench/retrieval.py one_by_one
    python bench/retrieval.py encode --passages 600
    python bench/retrieval.py second_run --questions 60
    python bench/retrieval.py memory

`search` compares the batched search of an index folder, memory-mapped as runs open it, with one call of a FAISS
`IndexFlatIP` that holds the same vectors in memory. Texts stand for prepared vectors, so that neither side encodes;
medexam's time includes reading the passages that it found. Its seconds are those of the processor, of all threads.

`one_by_one` compares the same search, encoding included, with one encode and one search for each question, as MedRAG
asks; MedRAG's reading of the passages is left out. The queries are the stems of HEAD-QA v1, encoded by MiniLM; as its
vectors have 384 dimensions, both sides repeat them until they are as long as the vectors that are searched. The rate
of the loop comes from `--alone` of the questions, drawn over all of them.

`encode` builds an index of real passages and compares its tokens per second, writing included, with one call of
`SentenceTransformer.encode`, which sorts its texts by length itself. Weights, batch size, dtype and threads are the
same; padding is not counted as tokens.

`second_run` carries out the spec `headqa_rag` with a cache that knows no query, then again in a fresh folder. Retrieval
is everything that the run does for it: reading the corpus and its fingerprint, reading the cache or looking up, and
finding each question's passages. Indexes are taken from medexam's cache and built there when missing. The scripted
engine answers at once, and so shows the share that a run never exceeds, whatever its model.

`memory` takes each figure in a process of its own, from outside, as `/proc/PID/status` says it every few milliseconds.
`anonymous` (RssAnon) is what a process holds and the system cannot take back; pages of a memory-mapped file (RssFile)
are counted apart: the system drops them whenever it needs the room, and where it does not they come to the size of the
vectors. `beside` is the peak less what the process held when its imports and its model were loaded.

Sides take turns, and a figure is the median of its rounds. Prints one JSON document. Reads HEAD-QA v1 and the passages
from `$MEDEXAM_DATA`. Run it on an idle machine; `load_average` in the document is that of the minute before.
"""

import argparse
import importlib
import itertools
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.files import cache_dir
from medexam.retrievers import Hit, Passage, build_corpus, build_encoder, build_index, load_corpus, open_index
from medexam.retrievers.corpora import Corpus
from medexam.retrievers.encoders import BATCH, Encoder, EncoderRecord
from medexam.retrievers.vectors import VECTOR

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]
Work = Callable[..., dict[str, Any]]
"""What `memory` measures: prepares, calls its first argument when it is ready, works, and returns figures to report."""

SEED = 17
POLL_S = 0.003


def drawn_record(dimension: int) -> EncoderRecord:
    return EncoderRecord(
        label="drawn",
        revision="drawn",
        precision="float32",
        dimension=dimension,
        query_tokens=1,
        passage_tokens=1,
        source="drawn",
    )


@dataclass
class DrawnEncoder:
    """Random vectors of about length 1, always the same; query texts are numbers, counted from 0."""

    dimension: int
    _queries: Vectors | None = None

    @property
    def record(self) -> EncoderRecord:
        return drawn_record(self.dimension)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        if self._queries is None or len(self._queries) < len(texts):
            self._queries = self._draw(0, len(texts))
        return self._queries[[int(text) for text in texts]]

    def encode_passages(
        self,
        passages: Sequence[Passage],
    ) -> Vectors:
        return self._draw(1 + int(passages[0].id), len(passages))

    def _draw(self, stream: int, count: int) -> Vectors:
        drawn = np.random.default_rng((SEED, stream)).standard_normal((count, self.dimension), dtype=np.float32)
        return drawn / np.float32(self.dimension**0.5)


@dataclass
class WidenedEncoder:
    """A real encoder for queries, its vectors repeated until they have as many dimensions as the drawn ones."""

    encoder: Encoder
    dimension: int
    spent_s: float = 0.0
    """Seconds spent in the last call."""

    @property
    def record(self) -> EncoderRecord:
        return drawn_record(self.dimension)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        begun = time.perf_counter()
        vectors = widen(self.encoder.encode_queries(texts), self.dimension)
        self.spent_s = time.perf_counter() - begun
        return vectors

    def encode_passages(self, passages: Sequence[Passage]) -> Vectors:
        return widen(self.encoder.encode_passages(passages), self.dimension)


def widen(vectors: Vectors, dimension: int) -> Vectors:
    return np.tile(vectors, (1, -(-dimension // vectors.shape[1])))[:, :dimension]


def drawn_corpus(count: int) -> Corpus:
    passages = (Passage(str(row), "", f"Passage {row}.", "drawn") for row in range(count))
    return build_corpus("drawn", passages, source="drawn")


@contextmanager
def drawn_index(count: int, dimension: int) -> Iterator[Path]:
    """An index folder of random vectors, made by the product's own build."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        build_index(drawn_corpus(count), DrawnEncoder(dimension), path)
        yield path


def load_flat(folder: Path) -> Any:
    """The vectors of an index folder in a bare FAISS index."""
    import faiss

    vectors = vectors_of(folder)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    said = call()
    return time.perf_counter() - begun, said


def race(
    sides: Mapping[str, Callable[[], Any]], rounds: int, *, clock: Callable[[], float] = time.perf_counter
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Seconds of each side in each round by `clock`, and what it returned last; who begins changes every round."""
    spent: dict[str, list[float]] = {name: [] for name in sides}
    said: dict[str, Any] = {}
    names = list(sides)
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            begun = clock()
            said[name] = sides[name]()
            spent[name].append(clock() - begun)
    return spent, said


def rounded(spent: Mapping[str, Sequence[float]], digits: int = 3) -> dict[str, list[float]]:
    return {name: [round(seconds, digits) for seconds in each] for name, each in spent.items()}


def found_rows(found: Sequence[Sequence[Hit]]) -> Rows:
    """The rows of the drawn passages that a search found, `[n, k]`."""
    return np.array([[int(hit.passage.id) for hit in hits] for hits in found], dtype=np.int64)


def compare_search(arguments: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {}
    texts = [str(row) for row in range(arguments.queries)]
    with drawn_index(arguments.vectors, arguments.dimension) as folder:
        encoder = DrawnEncoder(arguments.dimension)
        retriever = open_index(folder, encoder=encoder)
        flat = load_flat(folder)
        queries = encoder.encode_queries(texts)
        retriever.search(texts[:64], 1)
        flat.search(queries[:64], 1)
        for k in arguments.k:
            sides = {"medexam": partial(retriever.search, texts, k), "faiss": partial(flat.search, queries, k)}
            spent, said = race(sides, arguments.rounds, clock=time.process_time)
            medians = {name: statistics.median(each) for name, each in spent.items()}
            ours, theirs = found_rows(said["medexam"]), said["faiss"][1]
            report[f"k_{k}"] = {
                "processor_s": {name: round(seconds, 3) for name, seconds in medians.items()},
                "ratio": round(medians["medexam"] / medians["faiss"], 3),
                "target": "at most 1.15",
                "same_rows": int((ours == theirs).sum()),
                "of": ours.size,
                "each_round_s": rounded(spent),
            }
    sizes = {"queries": arguments.queries, "vectors": arguments.vectors, "dimensions": arguments.dimension}
    return {**sizes, **report}


@dataclass
class Loop:
    """One encode and one search for each question, as MedRAG's retriever does them."""

    model: Any
    index: Any
    k: int
    encoding_s: list[float] = field(default_factory=list)
    """Of each pass."""

    def ask(self, questions: Sequence[str]) -> Rows:
        rows, encoding_s = [], 0.0
        for question in questions:
            seconds, vector = timed(partial(self.model.encode, [question], show_progress_bar=False))
            encoding_s += seconds
            rows.append(self.index.search(widen(vector, self.index.d), self.k)[1][0])
        self.encoding_s.append(encoding_s)
        return np.array(rows)


def read_stems(limit: int) -> list[str]:
    from medexam.datasets import load_exam_set
    from medexam.specs import DatasetSpec

    questions = load_exam_set(DatasetSpec(name="headqa_v1", language="en")).questions
    return list(dict.fromkeys(question.stem for question in questions))[:limit]


def compare_one_by_one(arguments: argparse.Namespace) -> dict[str, Any]:
    encoder = build_encoder("minilm")
    stems = read_stems(arguments.queries)
    few = stems[:: max(len(stems) // arguments.alone, 1)][: arguments.alone]
    with drawn_index(arguments.vectors, arguments.dimension) as folder:
        loop = Loop(bare_model(), load_flat(folder), arguments.k[0])
        wide = WidenedEncoder(encoder, arguments.dimension)
        retriever = open_index(folder, encoder=wide)
        encoding_s: list[float] = []

        def batched() -> list[list[Hit]]:
            found = retriever.search(stems, arguments.k[0])
            encoding_s.append(wide.spent_s)
            return found

        loop.ask(few[:4])
        loop.encoding_s.clear()
        spent, said = race({"medexam": batched, "one_by_one": partial(loop.ask, few)}, arguments.rounds)
    numbers = {"medexam": len(stems), "one_by_one": len(few)}
    rates = {name: numbers[name] / statistics.median(each) for name, each in spent.items()}
    encoding = {"medexam": encoding_s, "one_by_one": loop.encoding_s}
    ms = {
        name: {
            "encoding": round(1000 * statistics.median(encoding[name]) / numbers[name], 2),
            "all": round(1000 / rates[name], 2),
        }
        for name in rates
    }
    searching = {name: each["all"] - each["encoding"] for name, each in ms.items()}
    place = {stem: row for row, stem in enumerate(stems)}
    ours = found_rows([said["medexam"][place[stem]] for stem in few])
    lengths = [len(tokens) for tokens in loop.model.tokenizer(stems)["input_ids"]]
    return {
        "queries": len(stems),
        "asked_one_by_one": len(few),
        "mean_tokens": round(statistics.mean(lengths), 1),
        "vectors": arguments.vectors,
        "dimensions": arguments.dimension,
        "k": arguments.k[0],
        "queries_per_s": {name: round(rate, 2) for name, rate in rates.items()},
        "ratio": round(rates["medexam"] / rates["one_by_one"], 2),
        "target": "at least 20",
        "ms_a_query": ms,
        "ratio_of_encoding": round(ms["one_by_one"]["encoding"] / ms["medexam"]["encoding"], 2),
        "ratio_of_searching": round(searching["one_by_one"] / searching["medexam"], 2),
        "same_rows": int((ours == said["one_by_one"]).sum()),
        "of": ours.size,
        "each_round_s": rounded(spent),
    }


def bare_model() -> Any:
    """MiniLM as sentence-transformers loads it, from the same files and in float32."""
    from sentence_transformers import SentenceTransformer

    from medexam.weights import find_encoder_weights, loading_options

    weights = find_encoder_weights("minilm", None)
    return SentenceTransformer(weights.source, **loading_options(weights, "cpu", "float32"))


def spread(passages: Sequence[Passage], number: int) -> list[Passage]:
    """`number` passages, drawn evenly over the corpus."""
    return list(passages[:: max(len(passages) // number, 1)][:number])


def compare_encoding(arguments: argparse.Namespace) -> dict[str, Any]:
    corpus = build_corpus("some", spread(load_corpus(arguments.corpus).passages, arguments.passages), source="some")
    encoder, model = build_encoder("minilm"), bare_model()
    texts = [passage.text for passage in corpus.passages]
    tokens = sum(len(each) for each in model.tokenizer(texts, truncation=True, max_length=256)["input_ids"])
    model.encode(texts[: BATCH["cpu"]])
    with tempfile.TemporaryDirectory() as folder:
        names = (Path(folder) / str(turn) for turn in itertools.count())
        sides = {
            "medexam": lambda: build_index(corpus, encoder, next(names)),
            "bare": partial(model.encode, texts, batch_size=BATCH["cpu"], show_progress_bar=False),
        }
        spent, said = race(sides, arguments.rounds)
        built = vectors_of(max(Path(folder).iterdir(), key=lambda path: int(path.name)))
    rates = {name: tokens / statistics.median(each) for name, each in spent.items()}
    return {
        "passages": len(texts),
        "tokens": tokens,
        "batch_size": BATCH["cpu"],
        "tokens_per_s": {name: round(rate) for name, rate in rates.items()},
        "ratio": round(rates["medexam"] / rates["bare"], 3),
        "target": "at least 0.95",
        "largest_difference": float(np.abs(built - said["bare"]).max()),
        "each_round_s": rounded(spent),
    }


@contextmanager
def fresh_cache() -> Iterator[Path]:
    """A cache that knows no query and takes its indexes from the real one."""
    real = cache_dir()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("indexes", "lexical"):
            (real / name).mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).symlink_to(real / name)
        named = os.environ.get("MEDEXAM_CACHE")
        os.environ["MEDEXAM_CACHE"] = folder
        try:
            yield Path(folder)
        finally:
            os.environ.pop("MEDEXAM_CACHE")
            if named is not None:
                os.environ["MEDEXAM_CACHE"] = named


@contextmanager
def clocked() -> Iterator[dict[str, float]]:
    """Seconds that runs spend in each part of retrieval while the context is open."""
    from medexam.experiments.plan import planner
    from medexam.experiments.plan.lookup import Retrieval

    spent: dict[str, float] = {}

    def clock(owner: Any, name: str) -> Callable[[], None]:
        real = getattr(owner, name)
        spent[name] = 0.0

        def call(*args: Any, **options: Any) -> Any:
            begun = time.perf_counter()
            try:
                return real(*args, **options)
            finally:
                spent[name] += time.perf_counter() - begun

        setattr(owner, name, call)
        return lambda: setattr(owner, name, real)

    places = [(planner, "plan_retriever"), (Retrieval, "fill"), (Retrieval, "find")]
    undo = [clock(owner, name) for owner, name in places]
    try:
        yield spent
    finally:
        for back in undo:
            back()


def measure_second_run(arguments: argparse.Namespace) -> dict[str, Any]:
    from medexam.experiments import plan_spec
    from medexam.experiments.entry.progress import RunProgress
    from medexam.experiments.run import runner

    document = {
        "name": "headqa_rag",
        "dataset": {"name": "headqa_v1", "language": "en", "limit": arguments.questions},
        "model": {"engine": "embedded"},
        "program": {
            "kind": "retrieve_then_answer",
            "answer_format": "guided",
            "k": 2,
            "retriever": {"kind": arguments.retriever},
        },
    }
    if arguments.engine == "scripted":
        # Put in the embedded engine's place, so that the spec and the prompts are the same.
        runner.build_engine = scripted  # type: ignore[attr-defined,assignment]
    runs = []
    with fresh_cache() as folder, RunProgress() as progress:
        for _ in range(1 + arguments.rounds):
            with clocked() as parts:
                total, _ = timed(
                    lambda: runner.Runner(plan_spec(document, {}, runs_dir=folder / "runs", fresh=True), progress).run()
                )
            runs.append(
                {
                    "total_s": round(total, 2),
                    "retrieval_s": {name: round(seconds, 3) for name, seconds in parts.items()},
                    "share": round(sum(parts.values()) / total, 4),
                }
            )
    return {
        "questions": arguments.questions,
        "engine": arguments.engine,
        "retriever": arguments.retriever,
        "share": statistics.median(run["share"] for run in runs[1:]),
        "target": "below 0.02",
        "first": runs[0],
        "second": runs[1:],
    }


async def scripted(*_: object, **__: object) -> Any:
    from medexam.serve import ScriptedEngine

    return ScriptedEngine({"*": "{Answer: 1}"})


def memory_of(process: int | str) -> dict[str, float]:
    """What a process holds now, MB: `anonymous`, and the pages of files that are `mapped`."""
    names = {"RssAnon": "anonymous", "RssFile": "mapped"}
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    said = dict(line.split(":", 1) for line in lines if ":" in line)
    return {word: int(said[name].split()[0]) / 1024 for name, word in names.items()}


def measure_apart(work: Work, *arguments: Any) -> dict[str, Any]:
    """The peak memory of `work(ready, *arguments)` in a process of its own, MB."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_work_apart, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    ours.recv()
    before = memory_of(process.pid or 0)
    peak = dict(before)
    ours.send("go")
    while not ours.poll(POLL_S):
        now = memory_of(process.pid or 0)
        peak = {name: max(peak[name], now[name]) for name in peak}
    said: dict[str, Any] = ours.recv()
    process.join()
    return {
        **said,
        "anonymous_mb": {
            "before": round(before["anonymous"]),
            "peak": round(peak["anonymous"]),
            "beside": round(peak["anonymous"] - before["anonymous"]),
        },
        "mapped_mb": {"before": round(before["mapped"]), "peak": round(peak["mapped"])},
    }


def _work_apart(connection: Connection, work: Work, arguments: Sequence[Any]) -> None:
    def ready() -> None:
        connection.send("ready")
        connection.recv()

    connection.send(work(ready, *arguments))


def search_mapped(ready: Callable[[], None], folder: Path, queries: int, k: int, dimension: int) -> dict[str, Any]:
    for name in ("faiss", "torch"):
        importlib.import_module(name)
    texts = [str(row) for row in range(queries)]
    ready()
    found = open_index(folder, encoder=DrawnEncoder(dimension)).search(texts, k)
    return {"found": sum(map(len, found))}


def build_drawn(ready: Callable[[], None], corpus: Path, folder: Path, count: int, dimension: int) -> dict[str, Any]:
    """Real texts under new ids, as many as asked, with vectors that cost nothing."""
    ready()
    texts = itertools.islice(itertools.cycle(load_corpus(corpus).passages), count)
    passages = (replace(text, id=str(row), content=f"{row}. {text.content}") for row, text in enumerate(texts))
    build_index(build_corpus("many", passages, source="many"), DrawnEncoder(dimension), folder)
    return {"passages": count}


def build_real(ready: Callable[[], None], corpus: Path, folder: Path, count: int) -> dict[str, Any]:
    """A build by MiniLM of the first `count` passages; the whole corpus is read."""
    encoder = build_encoder("minilm")
    ready()
    build_index(build_corpus("some", spread(load_corpus(corpus).passages, count), source="some"), encoder, folder)
    return {"encoder": encoder.record.label}


def measure_memory(arguments: argparse.Namespace) -> dict[str, Any]:
    report: dict[str, Any] = {"search": {"target": "at most 500 MB", "queries": arguments.queries}}
    for count in (arguments.fewer_vectors, arguments.vectors):
        with drawn_index(count, arguments.dimension) as folder:
            figures = measure_apart(search_mapped, folder, arguments.queries, arguments.k[0], arguments.dimension)
        report["search"][f"vectors_{count}"] = {"vectors_mb": megabytes(count, arguments.dimension), **figures}
    report["build"] = {"target": "at most the vectors + 1024 MB beside imports and model"}
    with tempfile.TemporaryDirectory() as folder:
        drawn = measure_apart(
            build_drawn, arguments.corpus, Path(folder) / "drawn", arguments.vectors, arguments.dimension
        )
        real = measure_apart(build_real, arguments.corpus, Path(folder) / "real", arguments.passages)
    report["build"][f"drawn_{arguments.vectors}"] = {
        "vectors_mb": megabytes(arguments.vectors, arguments.dimension),
        **drawn,
    }
    report["build"][f"minilm_{arguments.passages}"] = {"vectors_mb": megabytes(arguments.passages, 384), **real}
    return report


def vectors_of(folder: Path) -> Vectors:
    """The vectors of an index folder, `[count, dimension]`."""
    import datasets

    vectors: Vectors = datasets.load_from_disk(folder).with_format("numpy")[:][VECTOR]
    return vectors


def megabytes(count: int, dimension: int) -> int:
    return round(count * dimension * 4 / 2**20)


def describe_machine(threads: int) -> dict[str, Any]:
    processor = next(
        (line.split(":", 1)[1].strip() for line in read_lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    packages = ("faiss-cpu", "sentence-transformers", "torch", "numpy")
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": threads,
        "versions": {name: version(name) for name in packages},
    }


def read_lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def set_threads(threads: int) -> None:
    import faiss
    import torch

    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)


PARTS = {
    "search": compare_search,
    "one_by_one": compare_one_by_one,
    "encode": compare_encoding,
    "second_run": measure_second_run,
    "memory": measure_memory,
}


def read_arguments() -> argparse.Namespace:
    data = Path(os.environ.get("MEDEXAM_DATA", "."))
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--threads", type=int, default=os.cpu_count())
    racing = argparse.ArgumentParser(add_help=False)
    racing.add_argument("--rounds", type=int, default=3)
    vectors = argparse.ArgumentParser(add_help=False)
    vectors.add_argument("--queries", type=int, default=6765)
    vectors.add_argument("--vectors", type=int, default=126_000)
    vectors.add_argument("--dimension", type=int, default=768)
    texts = argparse.ArgumentParser(add_help=False)
    texts.add_argument("--corpus", type=Path, default=data / "corpus" / "passages.jsonl.gz")
    texts.add_argument("--passages", type=int, default=600, help="of the corpus, evenly over it")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    search = parts.add_parser("search", parents=[shared, racing, vectors])
    search.add_argument("--k", type=int, nargs="+", default=[2, 10])
    one_by_one = parts.add_parser("one_by_one", parents=[shared, racing, vectors])
    one_by_one.add_argument("--k", type=int, nargs=1, default=[2])
    one_by_one.add_argument("--alone", type=int, default=300, help="questions of the loop")
    parts.add_parser("encode", parents=[shared, racing, texts])
    second_run = parts.add_parser("second_run", parents=[shared, racing])
    second_run.add_argument("--questions", type=int, default=60)
    second_run.add_argument("--engine", choices=["embedded", "scripted"], default="embedded")
    second_run.add_argument("--retriever", choices=["dense", "bm25", "fusion"], default="dense")
    memory = parts.add_parser("memory", parents=[shared, vectors, texts])
    memory.add_argument("--k", type=int, nargs=1, default=[2])
    memory.add_argument("--fewer-vectors", type=int, default=60_000)
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    load_average = round(os.getloadavg()[0], 2)
    set_threads(arguments.threads)
    report = PARTS[arguments.part](arguments)
    machine = describe_machine(arguments.threads)
    print(json.dumps({"part": arguments.part, "load_average": load_average, **machine, **report}, indent=1))


if __name__ == "__main__":
    main()
