"""CasiMedicos in numbers, and files of spans that carry their variant."""

import json

import pytest

from medexam.companions.casimedicos.statistics import compute_explanation_statistics
from medexam.datasets import load_task_set
from medexam.datasets.explanations import sentence_shares
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec

CONTEXT = "It is asthma. There is no fever. Nothing else fits."


def _row(key, answer="It is asthma.", **more):
    return {
        "id": key,
        "question": "Why?",
        "context": CONTEXT,
        "answers": {"text": [answer], "answer_start": [CONTEXT.index(answer)]},
        **more,
    }


@pytest.fixture
def spans(tmp_path):
    def write(*rows):
        path = tmp_path / "spans.json"
        path.write_text(json.dumps(rows))
        return DatasetSpec(name="casimedicos_spans", language="en", path=path)

    return write


def test_sentences_are_counted_in_percent() -> None:
    texts = ["One.", "One. Two.", "One. Two! Three?", "One. Two. Three. Four. Five."]
    assert sentence_shares(texts) == {"1": 25.0, "2": 25.0, "3": 25.0, "more than 3": 25.0}
    assert sum(sentence_shares([]).values()) == 0


def test_answers_of_a_file_are_counted(spans) -> None:
    found = compute_explanation_statistics(spans(_row("a"), _row("b", "It is asthma. There is no fever.")))
    assert found.answers
    assert found.sentences == {"1": 50.0, "2": 50.0, "3": 0.0, "more than 3": 0.0}
    assert (found.documents, found.words) == (1, 11)


def test_the_archive_has_the_published_size(full_data) -> None:
    found = compute_explanation_statistics(DatasetSpec(name="casimedicos_spans", language="es"))
    assert (found.documents, found.words, found.answers) == (553, 106_340, False)
    # The paper's 575 documents of clinical cases have 185 words each.
    assert found.words_per_document == pytest.approx(185, rel=0.05)
    assert sum(found.sentences.values()) == pytest.approx(100)


def test_a_file_carries_its_variants(spans) -> None:
    spec = spans(_row("1", variant="CQ#E"), _row("1", variant="Q#CE"), _row("2/CQ#E"), _row("3"))
    tasks = load_task_set(spec)
    assert {task.key: task.group for task in tasks.questions} == {
        "1/CQ#E": "CQ#E",
        "1/Q#CE": "Q#CE",
        "2/CQ#E": "CQ#E",
        "3": "given",
    }
    chosen = load_task_set(spec.model_copy(update={"variants": ("CQ#E",)}))
    assert [task.key for task in chosen.questions] == ["1/CQ#E", "2/CQ#E"]


def test_an_id_stands_once_in_a_variant(spans) -> None:
    with pytest.raises(DatasetError, match="id '1/CQ#E' occurs twice"):
        load_task_set(spans(_row("1", variant="CQ#E"), _row("1/CQ#E")))
    with pytest.raises(DatasetError, match="variant of '1' is 7, not a text"):
        load_task_set(spans(_row("1", variant=7)))
