"""Experiments that look up passages: real passages, lexical retrieval, the scripted engine in the model's place."""

import json
import resource
from pathlib import Path

import pytest
import yaml

from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.experiments import Retrieval, Runner, plan_experiment
from medexam.experiments.plan.passage_lookup import HitCache, Preview, merge_hits
from medexam.predictions import Status
from medexam.retrievers import Hit, Passage
from medexam.specs import RetrieveThenAnswerSpec
from stored_runs import without_times
from watching import Silent

CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"


def passage(name: str) -> Passage:
    return Passage(id=name, title="", content=f"about {name}", source="test")


class Counting:
    """A retriever that finds the same passages for every query, and counts what it is asked."""

    digest = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def search(self, queries, k):
        self.asked += queries
        return [[Hit(passage(f"p{rank}"), 1.0 / rank, rank) for rank in range(1, k + 1)] for _ in queries]


def _retrieval(spec, cache, build, **more) -> Retrieval:
    return Retrieval(spec.retrieval, build, cache, size=100, **more)


@pytest.fixture
def document(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    return {
        "name": "rag",
        "dataset": {"name": "headqa_sample", "limit": 12, "language": "en"},
        "model": {"engine": "scripted", "path": str(replies)},
        "program": {"kind": "retrieve_then_answer", "retriever": {"kind": "bm25", "corpus": str(CORPUS)}},
    }


def run(document, tmp_path, overrides=None):
    plan = plan_experiment(document, overrides or {}, runs_dir=tmp_path / "runs")
    (stored, *_), interrupted = Runner(plan, Silent()).run()
    assert not interrupted
    return stored, stored.folder.read_predictions()


def test_every_prediction_names_its_passages(document, tmp_path) -> None:
    stored, predictions = run(document, tmp_path)
    assert stored.complete
    assert all(prediction.passages_cut == 0 for prediction in predictions.values())
    # A question that shares no word with the sample finds nothing.
    found = [prediction.passages for prediction in predictions.values() if prediction.passages]
    assert len(found) >= 10
    assert all(best.score >= second.score for best, second in found)


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
def test_one_word_swaps_the_retriever(document, tmp_path, kind) -> None:
    stored, predictions = run(document, tmp_path, {"program.retriever.kind": kind})
    assert kind in stored.program
    assert any(prediction.passages for prediction in predictions.values())


def test_another_program_finds_the_same_passages_without_looking(document, tmp_path, monkeypatch) -> None:
    _, first = run(document, tmp_path)
    monkeypatch.setattr("medexam.retrievers.building.PlannedRetriever.open", lambda *_: pytest.fail("opened"))
    _, second = run(document, tmp_path, {"program.answer_format": "guided"})
    assert {key: p.passages for key, p in first.items()} == {key: p.passages for key, p in second.items()}


def test_queries_in_another_language_find_the_translations_passages(document, tmp_path) -> None:
    _, english = run(document, tmp_path)
    overrides = {"dataset.language": "es", "program.query_language": "en"}
    _, spanish = run(document, tmp_path, overrides)
    assert {key: p.passages for key, p in english.items()} == {key: p.passages for key, p in spanish.items()}


def test_relevance_needs_no_model_and_takes_the_option_with_the_best_passage(document, tmp_path) -> None:
    retriever = document["program"]["retriever"]
    document["program"] = {"kind": "relevance", "retriever": retriever}
    stored, predictions = run(document, tmp_path)
    assert stored.model is None
    assert stored.complete
    assert {prediction.status for prediction in predictions.values()} <= {Status.ANSWERED, Status.UNANSWERED}
    assert stored.metrics.unanswered < 6


def test_the_retriever_is_part_of_a_runs_identity_and_its_path_is_not(document, tmp_path) -> None:
    def digest(overrides):
        return plan_experiment(document, overrides, runs_dir=tmp_path / "runs").cells[0].spec_digest

    copy = tmp_path / "elsewhere.jsonl.gz"
    copy.write_bytes(CORPUS.read_bytes())
    assert digest({}) == digest({"program.retriever.corpus": str(copy)})
    assert len({digest({}), digest({"program.retriever.kind": "tfidf"}), digest({"program.k": 3})}) == 3


def test_a_likelihood_program_sees_passages_too(document, tmp_path) -> None:
    retriever = document["program"]["retriever"]
    document["program"] = {"kind": "likelihood", "context": "retrieved", "retriever": retriever}
    Path(document["model"]["path"]).write_text(json.dumps({"*": "no scores"}))
    plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
    (planned,) = plan.cells
    planned.retrieval.fill(planned.pending[:1])
    question = planned.pending[0]
    assert len(planned.retrieval.find(question)) == 2
    plain = plan_experiment(document, {"program.context": "stem"}, runs_dir=tmp_path / "runs").cells[0]
    assert plain.retrieval is None
    assert plain.spec_digest != planned.spec_digest


def test_more_passages_than_the_corpus_has(document, tmp_path) -> None:
    with pytest.raises(SpecError, match="the corpus has"):
        plan_experiment(document, {"program.k": 10_000}, runs_dir=tmp_path / "runs")


def test_queries_are_looked_up_once_and_together(question, tmp_path) -> None:
    spec = RetrieveThenAnswerSpec(kind="retrieve_then_answer", query="per_option", k=2)
    retriever = Counting()
    cache = HitCache(tmp_path, "digest")
    assert _retrieval(spec, cache, lambda progress: retriever).fill([question, question]) == 5
    assert retriever.asked[0] == f"{question.stem} {question.options[0].text}"
    again = _retrieval(spec, cache, lambda progress: pytest.fail("opened"))
    assert again.fill([question]) == 0
    assert [hit.passage.id for hit in again.find(question)] == ["p1", "p2"]
    deeper = spec.model_copy(update={"k": 3})
    assert _retrieval(deeper, cache, lambda progress: retriever).fill([question]) == 5


def test_a_torn_line_of_the_cache_is_looked_up_again(question, tmp_path) -> None:
    spec = RetrieveThenAnswerSpec(kind="retrieve_then_answer")
    cache = HitCache(tmp_path, "digest")
    _retrieval(spec, cache, lambda progress: Counting()).fill([question])
    (file,) = tmp_path.glob("*.jsonl")
    file.write_text(file.read_text()[:-5])
    assert _retrieval(spec, cache, lambda progress: Counting()).fill([question]) == 1
    assert _retrieval(spec, cache, lambda progress: pytest.fail("opened")).fill([question]) == 0


@pytest.mark.parametrize("damage", ["a changed passage", "another retriever's", "no seal", "bytes"])
def test_a_cache_that_is_not_what_was_written_is_made_anew(question, tmp_path, damage) -> None:
    spec = RetrieveThenAnswerSpec(kind="retrieve_then_answer")
    cache = HitCache(tmp_path, "other" if damage == "another retriever's" else "digest")
    _retrieval(spec, cache, lambda progress: Counting()).fill([question])
    (file,) = tmp_path.glob("*.jsonl")
    file = file.rename(tmp_path / "digest.jsonl")
    said = file.read_bytes()
    changes = {
        "a changed passage": said.replace(b"about p1", b"about p9"),
        "no seal": said.partition(b"\t")[2],
        "bytes": b"\xff\n" + said,
    }
    file.write_bytes(changes.get(damage, said))
    again = _retrieval(spec, HitCache(tmp_path, "digest"), lambda progress: Counting())
    assert again.fill([question]) == 1
    assert again.find(question)[0].passage.content == "about p1"
    assert len(file.read_bytes().splitlines()) == 1
    assert _retrieval(spec, HitCache(tmp_path, "digest"), lambda progress: pytest.fail("opened")).fill([question]) == 0


def test_a_full_disk_keeps_what_was_found_before(question, tmp_path) -> None:
    spec = RetrieveThenAnswerSpec(kind="retrieve_then_answer")
    cache = HitCache(tmp_path, "digest")
    _retrieval(spec, cache, lambda progress: Counting()).fill([question])
    (file,) = tmp_path.glob("*.jsonl")
    other = question.model_copy(update={"stem": "another " * 100})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 50, hard))
    try:
        with pytest.raises(RunFolderError, match=r"cannot be written: .*MEDEXAM_CACHE"):
            _retrieval(spec, cache, lambda progress: Counting()).fill([other])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert _retrieval(spec, cache, lambda progress: Counting()).fill([question, other]) == 1
    assert _retrieval(spec, cache, lambda progress: pytest.fail("opened")).fill([question, other]) == 0


def test_a_look_at_a_prompt_opens_nothing(question, tmp_path) -> None:
    spec = RetrieveThenAnswerSpec(kind="retrieve_then_answer", k=3)
    cache = HitCache(tmp_path, "digest")
    retrieval = _retrieval(spec, cache, lambda progress: Counting())
    assert [hit.passage.text for hit in Preview(retrieval).find(question)] == [f"[passage {n}]" for n in (1, 2, 3)]
    assert retrieval.fill([question]) == 1
    assert Preview(retrieval).find(question) == retrieval.find(question)


def test_a_run_whose_model_writes_its_queries_resumes_and_counts_its_calls(document, tmp_path) -> None:
    document["program"] |= {"kind": "iterative_retrieval", "answer_format": "guided", "rounds": 2}
    Path(document["model"]["path"]).write_text(yaml.safe_dump({"*": "1. blood pressure\n2. vitamin deficiency"}))
    plan = plan_experiment(document, {}, runs_dir=tmp_path / "runs")
    assert [cell.calls for cell in plan.cells] == [12 * (2 * (1 + 2) + 1)]
    stored, whole = run(document, tmp_path)
    assert all(len(prediction.generations) == 1 + 2 + 1 + 1 for prediction in whole.values())
    log = stored.folder.path / "predictions.jsonl"
    kept = log.read_text().splitlines(keepends=True)[:5]
    log.write_text("".join(kept))
    again, predictions = run(document, tmp_path)
    assert again.folder.path == stored.folder.path
    assert log.read_text().splitlines(keepends=True)[:5] == kept
    assert {key: without_times(one.model_dump()) for key, one in predictions.items()} == {
        key: without_times(one.model_dump()) for key, one in whole.items()
    }


def test_a_question_without_a_translation_is_named(question, tmp_path) -> None:
    spec = RetrieveThenAnswerSpec(kind="retrieve_then_answer", query_language="es")
    retrieval = _retrieval(spec, HitCache(tmp_path, "digest"), lambda progress: Counting(), translations=dict)
    with pytest.raises(DatasetError, match="no translation in 'es'"):
        retrieval.fill([question])


def test_merging_keeps_each_passage_once_by_its_best_score() -> None:
    lists = [
        [Hit(passage("a"), 3.0, 1), Hit(passage("b"), 2.0, 2)],
        [Hit(passage("b"), 2.5, 1), Hit(passage("c"), 1.0, 2)],
    ]
    assert [(hit.passage.id, hit.score, hit.rank) for hit in merge_hits(lists, 2)] == [("a", 3.0, 1), ("b", 2.5, 2)]


def test_questions_that_show_the_same_first_passages_are_asked_one_after_the_other(document, tmp_path) -> None:
    document["dataset"]["limit"] = 60
    document["program"]["k"] = 2
    stored, predictions = run(document, tmp_path)
    shown = [[passage.id for passage in prediction.passages] for prediction in predictions.values()]
    # The scripted engine answers in the order of asking, and the log keeps it.
    assert shown == sorted(shown)
    assert len({tuple(ids[:1]) for ids in shown}) < len(shown)
    assert stored.metrics.n == 60
