"""Experiments that look up passages: by a retriever of one's own that keeps what it is asked, and by BM25."""

import json
from pathlib import Path

import pytest

import medexam
from medexam.predictions import Status
from stored_runs import without_times

CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"
FINDER = """
import json
from medexam.retrievers import Hit, Passage


class Finder:
    digest = "finder"

    def __init__(self, log):
        self.log = log

    def search(self, queries, k):
        with open(self.log, "a") as log:
            log.write(json.dumps(list(queries)) + "\\n")
        return [self.find(query, k) for query in queries]

    def find(self, query, k):
        # One passage is found by every query, better by a longer one; the others by this query alone.
        own = [Passage(f"{query[-30:]} {n}", "", f"On {query}. Number {n}.", "test") for n in range(1, k)]
        shared = Passage("shared", "", "Shared words. More of them.", "test")
        return [Hit(shared, float(len(query)), 1), *(Hit(one, 1 / n, n + 1) for n, one in enumerate(own, 1))]
"""


@pytest.fixture
def document(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "finder.py").write_text(FINDER)
    retriever = {"kind": f"{tmp_path}/finder.py:Finder", "args": {"log": str(tmp_path / "log")}}
    return spec | {"program": {"kind": "retrieve_then_answer", "retriever": retriever, "k": 2}}


@pytest.fixture
def lexical(document):
    return document | {"program": {**document["program"], "retriever": {"kind": "bm25", "corpus": str(CORPUS)}}}


@pytest.fixture
def searches(tmp_path):
    """The queries of each search since the last call."""

    def take():
        log = tmp_path / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    return take


def passages(run):
    return {key: one.passages for key, one in run.predictions.items()}


def test_questions_are_looked_up_once_and_together_and_predictions_name_what_was_shown(
    ask, document, searches, asked
) -> None:
    (run,) = ask(document)
    ((queries),) = searches()
    questions = medexam.load_questions("headqa_sample", limit=12)
    assert sorted(queries) == sorted(question.stem for question in questions)
    for question in questions:
        shared, own = run.predictions[question.key].passages
        assert (shared.id, shared.score) == ("shared", float(len(question.stem)))
        assert (own.id, own.score) == (f"{question.stem[-30:]} 1", 1.0)
        (prompt,) = [prompt for prompt in asked.prompts if f"On {question.stem}." in prompt]
        assert question.options[0].text in prompt
    (other,) = ask(document, program__answer_format="guided")
    assert (passages(other), searches()) == (passages(run), [])
    ask(document, program__k=3)
    assert len(searches()[0]) == 12, "at another depth more is found"


def test_each_passage_of_several_queries_stands_once_by_its_best_score(ask, document, searches) -> None:
    (run,) = ask(document, program__query="per_option", dataset__limit=3)
    questions = medexam.load_questions("headqa_sample", limit=3)
    ((queries),) = searches()
    assert sorted(queries) == sorted(f"{one.stem} {option.text}" for one in questions for option in one.options)
    for question in questions:
        best, second = run.predictions[question.key].passages
        longest = max(len(option.text) for option in question.options)
        assert (best.id, best.score) == ("shared", len(question.stem) + 1 + longest)
        assert second.score == 1.0


@pytest.mark.parametrize("damage", ["a torn line", "a line that is no JSON"])
def test_a_cache_that_is_damaged_is_made_anew(ask, document, searches, tmp_path, damage) -> None:
    (first,) = ask(document)
    (file,) = (tmp_path / "cache" / "retrieval").glob("*.jsonl")
    written = file.read_bytes()
    changes = {
        "a torn line": written[:-5],
        "a line that is no JSON": b"\xff\n" + written,
    }
    file.write_bytes(changes[damage])
    searches()
    (second,) = ask(document, fresh=True)
    assert len(searches()[0]) == (1 if damage == "a torn line" else 12)
    assert passages(second) == passages(first)
    ask(document, fresh=True)
    assert searches() == []


def test_queries_that_come_up_while_questions_are_asked_are_searched_once(ask, document, searches, replies) -> None:
    document["program"] |= {"kind": "iterative_retrieval", "answer_format": "guided", "rounds": 2}
    document["model"] = replies("1. blood pressure\n2. vitamin deficiency")
    assert [cell["calls"] for cell in medexam.plan(document).cells] == [12 * (2 * (1 + 2) + 1)]
    (whole,) = ask(document)
    queries = [query for search in searches() for query in search]
    assert len(set(queries)) == len(queries)
    assert all(len(one.calls) == 1 + 2 + 1 + 1 for one in whole.predictions.values())
    before, log = dict(whole.predictions), whole.folder / "predictions.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:5]))
    (resumed,) = ask(document)
    assert {key: without_times(one.model_dump()) for key, one in resumed.predictions.items()} == {
        key: without_times(one.model_dump()) for key, one in before.items()
    }


@pytest.mark.nightly
def test_workers_find_what_one_process_finds(ask, lexical, tmp_path, replies) -> None:
    lexical["program"] |= {"kind": "iterative_retrieval", "answer_format": "guided"}
    lexical["model"] = replies("1. blood pressure\n2. vitamin deficiency")
    (alone,), (spread,) = ask(lexical), ask(lexical, workers=2, runs_dir=tmp_path / "spread")
    assert passages(alone) == passages(spread)


def test_queries_in_another_language_find_the_translations_passages(ask, lexical) -> None:
    (english,) = ask(lexical)
    (spanish,) = ask(lexical, dataset__language="es", program__query_language="en")
    assert passages(english) == passages(spanish)
    assert sum(bool(found) for found in passages(english).values()) >= 10
    assert all(one.score >= two.score for one, two in filter(None, passages(english).values()))


def test_translations_lie_beside_the_questions_in_the_users_own_folder(ask, lexical, tmp_path) -> None:
    exam = {"year": 2020, "category": "medicine", "name": "Cuaderno_2020_0_M", "image": None, "ra": 1}
    for language, stem in (("en", "vitamin deficiency in children"), ("es", "carencia de vitaminas en la infancia")):
        (tmp_path / "exams" / language).mkdir(parents=True)
        answers = [{"aid": number, "atext": f"{stem} {number}"} for number in range(1, 5)]
        row = {**exam, "qid": 1, "qtext": stem, "answers": answers}
        (tmp_path / "exams" / language / "rows.jsonl").write_text(json.dumps(row))
    folder, lexical["dataset"] = tmp_path / "exams", {"name": "headqa_v2"}
    (english,) = ask(lexical, dataset__path=folder, runs_dir=tmp_path / "en")
    spanish = {"dataset__language": "es", "program__query_language": "en"}
    for number, path in enumerate((folder, folder / "es" / "rows.jsonl")):
        (run,) = ask(lexical, dataset__path=path, runs_dir=tmp_path / f"es{number}", **spanish)
        assert passages(run) == passages(english)
    assert all(passages(english).values())


def test_relevance_needs_no_model_and_takes_the_option_with_the_best_passage(ask, document) -> None:
    (run,) = ask(document, program={"kind": "relevance", "retriever": document["program"]["retriever"]})
    assert (run.model, run.complete) == (None, True)
    for question in medexam.load_questions("headqa_sample", limit=12):
        sizes = [len(option.text) for option in question.options]
        prediction = run.predictions[question.key]
        assert prediction.status is Status.ANSWERED
        assert prediction.answer == question.options[sizes.index(max(sizes))].number


def test_the_retriever_is_part_of_a_runs_identity_and_its_path_is_not(lexical, tmp_path) -> None:
    def digest(**settings):
        return medexam.plan(lexical, runs_dir=tmp_path, **settings).cells[0]["spec_digest"]

    copy = tmp_path / "elsewhere.jsonl.gz"
    copy.write_bytes(CORPUS.read_bytes())
    assert digest() == digest(program__retriever__corpus=str(copy))
    assert len({digest(), digest(program__retriever__language="es"), digest(program__k=3)}) == 3
    likelihood = {"kind": "likelihood", "retriever": lexical["program"]["retriever"]}
    contexts = [{**likelihood, "context": "retrieved"}, {"kind": "likelihood", "context": "stem"}]
    assert len({digest(program=program) for program in contexts}) == 2


def test_a_look_at_a_prompt_searches_nothing(ask, document, searches) -> None:
    def shown():
        return medexam.plan(document).cells[0]["prompt"][-1]["content"]

    assert "[passage 1]" in shown()
    assert searches() == []
    ask(document)
    assert "Shared words." in shown()
