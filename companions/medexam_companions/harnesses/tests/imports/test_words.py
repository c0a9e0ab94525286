"""Results of questions that are answered in words: submissions to ClinIQLink, and tables of answers."""

import csv
import json
from pathlib import Path

import pytest
from task_data import items_of, write_cliniqlink, write_submission

from medexam.predictions import Reason, Status
from medexam.specs import DatasetSpec
from medexam_companions.harnesses import Importer, ResultsError

pytestmark = pytest.mark.model
pytest.importorskip("sentence_transformers")
ANSWERS = {"cliniqlink/true_false/1": "True", "cliniqlink/true_false/2": "The answer is False"}


@pytest.fixture
def importer(tmp_path) -> Importer:
    data = write_cliniqlink(tmp_path / "data")
    return Importer(DatasetSpec(name="cliniqlink", path=data), tmp_path / "runs")


def test_a_submission_becomes_a_run_and_is_found_again(importer, tmp_path) -> None:
    folder = write_submission(tmp_path / "team", true_false=["<think>no</think>True", [{"generated_text": "False"}]])
    (first,), (again,) = (list(importer.take(folder, print)) for _ in range(2))
    assert first.folder == again.folder
    assert first.environment["imported"]["by"] == {"text": 8}
    assert (first.environment["imported"]["other_gold"], first.environment["imported"]["notes"]) == (0, [])
    assert first.metrics.measures["published"].value == pytest.approx(1.0)
    assert first.folder.read_predictions()["cliniqlink/true_false/2"].text == "False"


def test_rules_of_the_released_scorer_are_kept_and_said(importer, tmp_path) -> None:
    folder = write_submission(tmp_path / "team", true_false=["True"], list=None, short=[""])
    (folder / "multi_hop.json").write_text("{")
    (taken,) = importer.take(folder, print)
    predictions = taken.folder.read_predictions()
    assert {key.split("/")[1] for key, value in predictions.items() if value.status is Status.UNANSWERED} == {
        "true_false",
        "short",
    }
    assert predictions["cliniqlink/short/1"].reason is Reason.EMPTY
    words = " ".join(taken.record.warnings)
    assert all(part in words for part in ("2 inputs and 1 responses", "list.json is missing", "multi_hop.json cannot"))
    assert taken.metrics.measures["published"].value == pytest.approx(3 / 7)
    assert taken.metrics.measures["paper"].value is None


def test_other_golds_are_counted_and_never_scored_by(importer, tmp_path) -> None:
    folder = write_submission(tmp_path / "team")
    items = items_of("MC")
    items[0]["correct_answer"] = "Gold"
    (folder / "multiple_choice.json").write_text(json.dumps({"inputs": items, "responses": ["Gold"]}))
    (taken,) = importer.take(folder, print)
    assert taken.environment["imported"]["other_gold"] == 1
    assert taken.metrics.by["group"]["multiple_choice"].measures["published"].value == 0


@pytest.mark.parametrize("damage", ["unknown", "twice", "link", "no object"])
def test_a_doubtful_submission_is_refused(importer, tmp_path, damage: str) -> None:
    folder = write_submission(tmp_path / "team")
    file = folder / "true_false.json"
    words = {
        "unknown": "match no question",
        "twice": "are of one format",
        "link": "symbolic link",
        "no object": "input 1",
    }[damage]
    if damage == "unknown":
        file.write_text(json.dumps({"inputs": [{"question": "Who?"}], "responses": ["True"]}))
    elif damage == "twice":
        (folder / "TF.json").write_text("{}")
    elif damage == "link":
        file.rename(tmp_path / "elsewhere.json")
        file.symlink_to(tmp_path / "elsewhere.json")
    else:
        file.write_text(json.dumps({"inputs": ["Who?"], "responses": ["True"]}))
    with pytest.raises(ResultsError, match=words):
        list(importer.take(folder, print))


@pytest.mark.parametrize("column", ["key", "question"])
def test_a_table_of_answers_in_words_becomes_a_run(importer, tmp_path, column: str) -> None:
    texts = {task.key: task.question for task in importer.items.questions}
    with Path(tmp_path / "answers.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["question", "answer"])
        writer.writerows((key if column == "key" else texts[key], answer) for key, answer in ANSWERS.items())
    (taken,) = importer.take(tmp_path / "answers.csv", print)
    measures = taken.metrics.by["group"]["true_false"].measures
    assert (measures["published"].value, measures["published_forgiving"].value) == (0.5, 1.0)


def test_a_table_that_may_be_the_key_is_asked_for(importer, tmp_path) -> None:
    golds = {task.key: importer.items.golds[task.key].answers[0] for task in importer.items.questions}
    lines = [f"{key},{gold}" for key, gold in golds.items()]
    (tmp_path / "answers.csv").write_text("\n".join(["question,answer", *lines]))
    with pytest.raises(ResultsError, match="may be the key"):
        list(importer.take(tmp_path / "answers.csv", print))
