"""Indexes and runs that look up passages, from the command line: real passages, encoders of MedCPT's layout."""

import gzip
import json
import unicodedata
from pathlib import Path

import pytest

from datasets import load_from_disk
from retrievers.tiny_models import save_medcpt
from table_cases import read_table

SAMPLE = Path(__file__).parents[1] / "retrievers" / "corpus_sample"
COUNT = 30
"""Passages of the corpus that is encoded here."""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_medcpt(tmp_path_factory.mktemp("models") / "medcpt")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = gzip.decompress((SAMPLE / "passages.jsonl.gz").read_bytes()).splitlines(keepends=True)
    path = tmp_path_factory.mktemp("corpus") / "some.jsonl"
    path.write_bytes(b"".join(lines[:: len(lines) // COUNT][:COUNT]))
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MEDEXAM_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def bad_corpus(tmp_path) -> Path:
    rows = [{"id": str(n), "content": f"passage {n} of the heart and the kidney"} for n in range(9)]
    lines = [*map(json.dumps, rows), "{not json", json.dumps({"id": "empty", "content": " "})]
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def look_up(medexam, spec, corpus, encoder):
    """Run `headqa_rag` over six shipped questions with scripted replies."""

    def call(*settings: str, command: str = "run"):
        spec()
        known = [
            "dataset.name=headqa_sample",
            "model.engine=scripted",
            "model.path=replies.yaml",
            f"program.retriever.corpus={corpus}",
            f"program.retriever.encoder={encoder}",
        ]
        arguments = [word for setting in [*known, *settings] for word in ("--set", setting)]
        return medexam(command, "headqa_rag", "--limit", 6, *arguments)

    return call


def _predictions(tmp_path: Path, name: str) -> list[dict]:
    (folder,) = (tmp_path / "runs").glob(f"*{name}*")
    return [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]


def test_bad_rows_and_indexes_of_other_corpora_are_refused(
    medexam, refused, look_up, bad_corpus, encoder, tmp_path
) -> None:
    build = ["index", "build", "--corpus", bad_corpus, "--encoder", encoder, "--out", tmp_path / "index"]
    line = refused(*build)
    assert f"{bad_corpus}, line 10: is not JSON" in line
    assert "take the row out" in line
    code, _, err = look_up(f"program.retriever.corpus={bad_corpus}", "program.retriever.kind=bm25")
    assert (code, "line 10: is not JSON" in err) == (2, True)

    rows = [line for line in bad_corpus.read_text().splitlines() if line.startswith('{"id"')]
    bad_corpus.write_text("\n".join(rows[:9]))
    assert medexam(*build)[0] == 0
    code, _, err = look_up(f"program.retriever.index={tmp_path / 'index'}")
    assert (code, "it was built for corpus bad with fingerprint" in err) == (2, True)


@pytest.mark.parametrize(("of_no_use", "said"), [(0, False), (1, True)])
def test_a_run_says_that_its_queries_found_nothing(medexam, spec, tmp_path, of_no_use, said) -> None:
    words = ["riñón", "hígado", "corazón", "tórax"]
    rows = [{"stem": f"El {word}?", "options": ["uno", "dos"], "answer": "A"} for word in words]
    (tmp_path / "own.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    passages = [unicodedata.normalize("NFD", word) for word in words] + ["otra"]
    lines = [json.dumps({"id": f"{at}", "content": text}) for at, text in enumerate(passages[of_no_use:])]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    retriever = {"kind": "bm25", "language": "es", "corpus": "corpus.jsonl"}
    asked = {"kind": "retrieve_then_answer", "k": 1, "query": "stem", "retriever": retriever}
    path = spec(dataset={"kind": "choice", "path": "own.jsonl", "language": "es"}, program=asked)
    code, _, err = medexam("run", path)
    assert code == 0, err
    assert ("the search found no passage for 1 of 4 questions: check that the corpus" in err) is said


def test_a_run_finds_the_index_of_the_same_chunks(medexam, look_up, corpus, encoder, cache, tmp_path) -> None:
    chunks = ["--chunk-tokens", 60, "--chunk-overlap", 10]
    code, out, err = medexam("index", "build", "--corpus", corpus, "--encoder", encoder, *chunks, "--json")
    assert code == 0, err
    made = json.loads(out)["corpus"]
    assert (made["chunk_tokens"], made["chunk_overlap"]) == (60, 10)
    assert made["count"] > COUNT
    settings = ["program.retriever.chunk_tokens=60", "program.retriever.chunk_overlap=10"]
    code, _, err = look_up(*settings)
    assert (code, "Encoding the corpus" in err) == (0, False)
    (index,) = (cache / "indexes").iterdir()
    known = set(load_from_disk(index)["id"])
    assert len(known) == made["count"]
    found = {hit["id"] for row in _predictions(tmp_path, "guided_dense") for hit in row["passages"]}
    assert found <= known
    assert any("#" in name for name in found)


def test_one_word_swaps_the_retriever_and_the_index_is_made_once(look_up, tmp_path) -> None:
    made = {}
    for kind in ("bm25", "medcpt", "fusion", "dense"):
        code, _, err = look_up(f"program.retriever.kind={kind}")
        assert code == 0, err
        made[kind] = f"Encoding the corpus: {COUNT} passages ...\n" in err
        rows = _predictions(tmp_path, f"guided_{kind}")
        assert len(rows) == 6
        assert any(len(row["passages"]) == 2 for row in rows)
    assert made == {"bm25": False, "medcpt": True, "fusion": False, "dense": False}
    medcpt, dense = (_predictions(tmp_path, f"guided_{kind}") for kind in ("medcpt", "dense"))
    assert {row["question"]: row["passages"] for row in medcpt} == {row["question"]: row["passages"] for row in dense}


@pytest.mark.parametrize(*read_table("refused_retrievals"))
def test_what_cannot_be_looked_up_is_one_line_before_anything_is_loaded(look_up, settings, told) -> None:
    code, out, err = look_up(f"program.retriever.corpus={SAMPLE}", *settings)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
