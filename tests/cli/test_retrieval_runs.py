"""Indexes and runs that look up passages, from the command line: real passages, encoders of MedCPT's layout."""

import asyncio
import gzip
import json
import os
import signal
import unicodedata
from pathlib import Path

import pytest
import yaml

from datasets import load_from_disk
from medexam.experiments import Runner, plan_experiment
from medexam.retrievers import read_manifest
from retrievers.tiny_models import save_medcpt
from waiting import until
from watching import Silent

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
def run(medexam, corpus, encoder, runs_dir, tmp_path):
    """Run `headqa_rag` over the shipped questions with scripted replies."""
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump({"*": "{Answer: 1}"}))

    def call(*settings: str, command: str = "run", spec: str = "headqa_rag"):
        known = [
            "dataset.name=headqa_sample",
            "model.engine=scripted",
            f"model.path={replies}",
            f"program.retriever.corpus={corpus}",
            f"program.retriever.encoder={encoder}",
        ]
        arguments = [word for setting in [*known, *settings] for word in ("--set", setting)]
        return medexam(command, spec, "--limit", 6, *arguments)

    return call


def _predictions(tmp_path: Path, name: str) -> list[dict]:
    (folder,) = (tmp_path / "runs").glob(f"*{name}*")
    return [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]


def test_bad_rows_are_named_with_the_way_out_or_counted(medexam, bad_corpus, encoder, tmp_path) -> None:
    build = ["index", "build", "--corpus", bad_corpus, "--encoder", encoder, "--out", tmp_path / "index"]
    code, out, err = medexam(*build)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{bad_corpus}, line 10: is not JSON" in err
    assert "--skip-bad" in err
    code, out, err = medexam(*build, "--skip-bad", "--json")
    assert (code, json.loads(out)["corpus"]["skipped"]) == (0, 2)
    assert f"left out of {bad_corpus}: 2 rows without a passage" in err
    assert f"9 passages from {bad_corpus}, 2 rows left out" in medexam("index", "info", tmp_path / "index")[1]


def test_a_run_over_bad_rows_names_the_way_out_or_tells_their_number(run, bad_corpus, tmp_path) -> None:
    corpus = f"program.retriever.corpus={bad_corpus}"
    code, _, err = run(corpus, "program.retriever.kind=bm25")
    assert (code, err.count("\n")) == (2, 1)
    assert "retriever.skip_bad" in err
    code, _, err = run(corpus, "program.retriever.kind=bm25", "program.retriever.skip_bad=true")
    assert code == 0
    told = f"2 rows of {bad_corpus} are not passages and were left out (retriever.skip_bad)"
    assert f"medexam: warning: {told}" in err
    (folder,) = (tmp_path / "runs").glob("*bm25*")
    assert told in (folder / "report.md").read_text()


@pytest.mark.parametrize("program", ["retrieve_then_answer", "relevance"])
@pytest.mark.parametrize(("of_no_use", "said"), [(0, False), (1, True)])
def test_a_run_says_that_its_queries_found_nothing(medexam, tmp_path, program, of_no_use, said) -> None:
    (tmp_path / "replies.yaml").write_text('"*": "{Answer: 1}"')
    words = ["riñón", "hígado", "corazón", "tórax"]
    rows = [{"stem": f"El {word}?", "options": ["uno", "dos"], "answer": "A"} for word in words]
    (tmp_path / "own.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    passages = [unicodedata.normalize("NFD", word) for word in words] + ["otra"]
    lines = [json.dumps({"id": f"{at}", "content": text}) for at, text in enumerate(passages[of_no_use:])]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    settings = [
        *("dataset.kind=choice", "dataset.path=own.jsonl", "dataset.language=es", "model.engine=scripted"),
        *("model.path=replies.yaml", f"program.kind={program}", "program.k=1", "program.retriever.kind=bm25"),
        *("program.retriever.language=es", "program.retriever.corpus=corpus.jsonl"),
        *(["program.query=stem"] if program == "retrieve_then_answer" else []),
    ]
    (tmp_path / "spec.yaml").write_text("name: own\n", encoding="utf-8")
    changes = [word for setting in settings for word in ("--set", setting)]
    for form in ([], ["--json"]):
        code, _, err = medexam("run", "spec.yaml", *form, *changes)
        assert code == 0, err
        assert ("the search found no passage for 1 of 4 questions: check that the corpus" in err) is said


def test_a_run_finds_the_index_of_the_same_chunks(medexam, run, corpus, encoder, cache, tmp_path) -> None:
    chunks = ["--chunk-tokens", 60, "--chunk-overlap", 10]
    code, out, err = medexam("index", "build", "--corpus", corpus, "--encoder", encoder, *chunks, "--json")
    assert code == 0, err
    said = json.loads(out)["corpus"]
    assert (said["chunk_tokens"], said["chunk_overlap"]) == (60, 10)
    assert said["count"] > COUNT
    settings = ["program.retriever.chunk_tokens=60", "program.retriever.chunk_overlap=10"]
    code, _, err = run(*settings)
    assert code == 0
    assert "Encoding the corpus" not in err
    (index,) = (cache / "indexes").iterdir()
    assert read_manifest(index).corpus.count == said["count"]
    assert run(*settings, "program.retriever.kind=bm25")[0] == 0
    known = set(load_from_disk(index)["id"])
    for kind in ("dense", "bm25"):
        found = {hit["id"] for row in _predictions(tmp_path, f"guided_{kind}") for hit in row["passages"]}
        assert found <= known
        assert any("#" in name for name in found)


def test_one_word_swaps_the_retriever_and_the_index_is_made_once(run, tmp_path) -> None:
    made = {}
    for kind in ("bm25", "medcpt", "fusion", "dense"):
        code, _, err = run(f"program.retriever.kind={kind}")
        assert code == 0, err
        made[kind] = f"Encoding the corpus: {COUNT} passages ...\n" in err
        rows = _predictions(tmp_path, f"guided_{kind}")
        assert len(rows) == 6
        assert any(len(row["passages"]) == 2 for row in rows)
    assert made == {"bm25": False, "medcpt": True, "fusion": False, "dense": False}
    medcpt, dense = (_predictions(tmp_path, f"guided_{kind}") for kind in ("medcpt", "dense"))
    assert {row["question"]: row["passages"] for row in medcpt} == {row["question"]: row["passages"] for row in dense}


def test_an_index_that_is_named_is_searched(medexam, run, corpus, encoder, tmp_path) -> None:
    index = tmp_path / "index"
    assert medexam("index", "build", "--corpus", corpus, "--encoder", encoder, "--out", index)[0] == 0
    code, _, err = run("program.retriever.kind=medcpt", f"program.retriever.index={index}")
    assert code == 0, err
    assert "Encoding" not in err


@pytest.mark.parametrize("language", ["en", "es"])
def test_relevance_answers_in_both_languages_without_a_model(run, tmp_path, language) -> None:
    relevance = {"kind": "relevance", "query_language": "en", "retriever": {"kind": "bm25", "corpus": "any"}}
    spec = tmp_path / "relevance.yaml"
    dataset = {"name": "headqa_sample", "language": language}
    spec.write_text(yaml.safe_dump({"name": "relevance", "dataset": dataset, "program": relevance}))
    code, _, err = run("program.retriever.kind=medcpt", spec=str(spec))
    assert code == 0, err
    assert "Preparing" not in err
    assert "WARNING" not in err
    rows = _predictions(tmp_path, f"-{language}-")
    assert {row["status"] for row in rows} == {"answered"}
    assert all(len(row["passages"]) == 1 for row in rows)


def test_spanish_questions_to_an_english_retriever_are_warned_of_everywhere(medexam, run, encoder, tmp_path) -> None:
    card = encoder / "README.md"
    card.write_text("---\nlanguage: [en]\n---\n# A copy\n")
    try:
        code, _, err = run("program.retriever.kind=medcpt", "dataset.language=es")
        assert code == 0
        told = "questions in Spanish are looked up by medcpt, which reads English only: set program.query_language: en"
        assert f"medexam: warning: {told}" in err
        (folder,) = (tmp_path / "runs").glob("*-es-*")
        assert told[1:] in (folder / "report.md").read_text()
        code, out, _ = medexam("report", folder)
        assert "Warning: " in out
        assert "reads English only" in " ".join(out.split())
        (document,) = json.loads(medexam("report", folder, "--json")[1])
        assert document["warnings"][0].startswith(told)
        for settings in (["dataset.language=es", "program.query_language=en"], ["dataset.language=en"]):
            assert "warning" not in run("program.retriever.kind=medcpt", *settings, command="plan")[2]
        err = run("program.retriever.kind=bm25", "dataset.language=es", command="plan")[2]
        assert "by their words in a corpus in English (retriever.language)" in err
        settings = ["program.retriever.kind=bm25", "program.retriever.language=es", "dataset.language=es"]
        assert "warning" not in run(*settings, command="plan")[2]
    finally:
        card.unlink()


BAD_SETTINGS = [
    (["program.k=201"], "program.k is 201, and the corpus has 200 passages: ask for at most 200"),
    (["program.k=101", "program.retriever.kind=fusion"], "fusion ranks the 100 best passages of each method"),
    (["program.retriever.kind=fusion", "program.retriever.rerank=medcpt", "program.retriever.rerank_depth=101"], "101"),
    (["program.retriever.chunk_overlap=2"], "give chunk_tokens, and a smaller overlap"),
    (["program.retriever.index=nowhere"], "medexam index build --corpus"),
    (["program.retriever.encoder=./nowhere"], "no such model folder"),
]


@pytest.mark.parametrize(("settings", "told"), BAD_SETTINGS)
def test_what_cannot_be_looked_up_is_one_line_before_anything_is_loaded(run, settings, told) -> None:
    code, out, err = run(f"program.retriever.corpus={SAMPLE}", *settings)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


def test_an_index_of_another_corpus_or_encoder_is_refused_at_once(medexam, run, encoder, bad_corpus, tmp_path) -> None:
    index = tmp_path / "index"
    built = medexam("index", "build", "--corpus", bad_corpus, "--skip-bad", "--encoder", encoder, "--out", index)
    assert built[0] == 0
    named = f"program.retriever.index={index}"
    mine = [named, f"program.retriever.corpus={bad_corpus}", "program.retriever.skip_bad=true"]
    for settings, told in (
        ([named], "it indexes corpus bad with fingerprint"),
        ([*mine, "program.retriever.encoder=minilm"], "its vectors come from medcpt sha256"),
    ):
        code, _, err = run(*settings)
        assert (code, err.count("\n")) == (2, 1)
        assert told in err


def test_the_papers_setting_is_planned_without_the_hub(medexam, monkeypatch) -> None:
    import datasets

    def unreachable(name: str, _: object) -> None:
        raise ConnectionError(f"Couldn't reach {name!r} on the Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    asked = ["headqa_v2_retrieval", "--set", "dataset.name=headqa_sample"]
    code, out, err = medexam("plan", *asked)
    assert code == 0, err
    assert "warning: corpus MedRAG/textbooks is no path here and cannot be downloaded" in err
    assert "[passage 2]" in out
    cells = json.loads(medexam("plan", *asked, "--json")[1])
    assert [cell["language"] for cell in cells] == ["en", "es"] * 4
    assert {cell["run_id"] for cell in cells} == {None}
    code, _, err = medexam("run", *asked)
    assert (code, err.count("\n")) == (2, 1)


def test_ctrl_c_while_an_index_is_made_is_heard_and_the_next_run_goes_on(encoder, tmp_path) -> None:
    class Interrupting(Silent):
        def retrieval_starts(self, planned) -> None:
            self.task = asyncio.current_task()

        def passages_encoded(self, planned, count) -> None:
            if count == 0:
                os.kill(os.getpid(), signal.SIGINT)
                # The main thread hears it when it is next scheduled, and all would be encoded by then.
                until(self.task.cancelling, "Ctrl-C")

    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    rows = [{"id": str(n), "content": f"passage {n} of the heart"} for n in range(600)]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    retriever = {"kind": "medcpt", "encoder": str(encoder), "corpus": str(tmp_path / "many.jsonl")}
    document = {
        "name": "trial",
        "dataset": {"name": "headqa_sample", "limit": 3},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "retrieve_then_answer", "retriever": retriever},
    }

    def go(observer: Silent):
        return Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), observer).run()

    (stored,), interrupted = go(Interrupting())
    assert interrupted
    assert stored.metrics.missing == 3
    (stored,), interrupted = go(Silent())
    assert not interrupted
    assert stored.complete
