"""CasiMedicos as an exam: questions with numbered options that have no year."""

import json
import re
from pathlib import Path

import pytest
from task_data import write_casimedicos

import data_folders
import medexam as package
from medexam.datasets import load_exam_set
from medexam.specs import DatasetSpec

CORPUS = Path(data_folders.__file__).parent / "retrievers" / "corpus_sample" / "passages.jsonl.gz"


@pytest.fixture
def folder(tmp_path):
    return write_casimedicos(tmp_path / "files", "en", "es")


@pytest.fixture
def load(folder):
    return lambda **settings: load_exam_set(DatasetSpec(name="casimedicos", path=folder, **settings))


@pytest.fixture
def data(medexam, folder):
    """`data("check", "casimedicos")`: what `medexam data` prints of the folder."""

    def call(*words):
        code, out, err = medexam("data", *words, "--path", folder)
        assert code == 0, err
        return out

    return call


def test_a_document_is_a_question(load) -> None:
    exams = load(split="test", language="es")
    question = exams.questions[0]
    assert (question.key, question.number, question.language) == ("casimedicos/test/0", 1, "es")
    assert (question.exam.name, question.exam.year, question.exam.split) == ("casimedicos-test", None, "test")
    assert question.stem == "A man of 74 coughs. What is it?"
    assert [(option.number, option.text) for option in question.options] == [
        (1, "Asthma."),
        (2, "Flu."),
        (3, "A cold."),
        (4, "Croup."),
    ]
    assert [exams.golds[one.key].number for one in exams.questions] == [3, 1, 2]


def test_the_explanation_stands_first_and_changes_nothing_else(load) -> None:
    plain, explained = load(), load(explained=True)
    for one, other in zip(plain.questions, explained.questions, strict=True):
        assert other.stem.endswith(f"\n\n{one.stem}")
        assert other.model_copy(update={"stem": one.stem}) == one
        assert explained.golds[one.key] == plain.golds[one.key]
    assert explained.questions[2].stem.startswith(
        "Asthma wheezes. He has no fever. So a cold is likely.\n\nA man of 74"
    )
    assert explained.golds_fingerprint == plain.golds_fingerprint


def test_the_commands_know_no_year(data) -> None:
    checked = data("check", "casimedicos")
    assert checked.splitlines()[-1] == "sound"
    assert "languages compared: en, es" in checked
    counted = data("stats", "casimedicos", "--language", "es")
    assert re.search(r"medicine +5 +0 *\n", counted), "questions without a year are counted too"
    assert "by year ·" not in counted
    shown = data("show", "casimedicos", "--key", "casimedicos/test/1")
    assert "casimedicos/test/1  casimedicos-test, medicine, en" in shown
    assert "* 1. Heat." in shown
    assert all(entry["key"].startswith("casimedicos/") for entry in json.loads(data("show", "casimedicos", "--json")))
    assert "None" not in f"{checked}{counted}{shown}"


def test_the_file_of_the_questions_that_are_looked_up_counts(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path))
    folder = write_casimedicos(tmp_path / "casimedicos", "en", "es")
    retriever = {"kind": "bm25", "corpus": str(CORPUS)}

    def digest(**program):
        program = {"kind": "relevance", "retriever": retriever, **program}
        return package.plan({"name": "x", "dataset": "casimedicos", "program": program}).cells[0]["spec_digest"]

    plain, crossed = digest(), digest(query_language="es")
    assert digest(query_language="en") == plain != crossed
    translated = folder / "ES" / "test.tsv"
    translated.write_text(translated.read_text().replace("coughs", "sneezes"))
    assert digest() == plain
    assert digest(query_language="es") != crossed
