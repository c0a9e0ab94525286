"""Benchmarks that are answered in words: what is read, what is selected, and the one line for what is wrong."""

from collections import Counter

import pytest
from task_data import items_of, write_casimedicos, write_cliniqlink

from medexam.datasets import load_task_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec
from table_cases import write_rows, write_squad

FORMATS = ["true_false", "multiple_choice", "list", "short", "short_inverse", "multi_hop", "multi_hop_inverse"]
VARIANTS = ["CQ#E", "CQP#E", "Q#CE", "QP#CE"]


@pytest.fixture
def clin(tmp_path):
    """`clin(short=[...], limit=3)`: the task set of the folder with that file changed, under these settings."""

    def load(**changes):
        settings = {name: changes.pop(name) for name in list(changes) if name in DatasetSpec.model_fields}
        path = write_cliniqlink(tmp_path / "cliniqlink", **changes)
        return load_task_set(DatasetSpec(name="cliniqlink", path=path, **settings))

    return load


@pytest.fixture
def spans(tmp_path):
    """`spans(split="test")`: the extraction tasks of the small CasiMedicos under these settings."""
    path = write_casimedicos(tmp_path / "casimedicos", "en", "es")
    return lambda **settings: load_task_set(DatasetSpec(name="casimedicos_spans", path=path, **settings))


# ClinIQLink


def test_each_format_is_read_into_its_fields(clin) -> None:
    data = clin()
    assert [task.group for task in data.questions] == ["true_false", *FORMATS]
    tasks = {task.key: task for task in data.questions}
    assert data.golds["cliniqlink/true_false/2"].answers == ("False",)
    assert tasks["cliniqlink/multiple_choice/1"].options == ("Aspirin", "Gold", "Sugar", "Salt")
    assert data.golds["cliniqlink/multiple_choice/1"].answers == ("Aspirin",)
    assert data.golds["cliniqlink/list/1"].answers == ("Liver", "Spleen")
    assert data.golds["cliniqlink/short/1"].paragraph is None
    inverse, gold = tasks["cliniqlink/short_inverse/1"], data.golds["cliniqlink/short_inverse/1"]
    assert (inverse.given_answer, gold.incorrect_explanation) == ("0.05 units", "the dose is 0.3 units")
    wrong, gold = tasks["cliniqlink/multi_hop_inverse/1"], data.golds["cliniqlink/multi_hop_inverse/1"]
    assert (wrong.given_answer, len(wrong.given_reasoning)) == ("Cycloplegia.", 3)
    assert (len(gold.incorrect_step), gold.paragraph) == (2, "p1")
    assert len(data.references) == 7, "every right answer but that of multiple choice"
    assert "0.3 units" not in repr(inverse), "no task shows its right answer"


def test_a_wrapped_file_and_ids_are_read_too(clin) -> None:
    items = [item | {"id": f"a{place}"} for place, item in enumerate(items_of("TF"))]
    data = clin(TF={"inputs": items}, formats=["true_false"])
    assert [task.key for task in data.questions] == ["cliniqlink/true_false/a0", "cliniqlink/true_false/a1"]


def test_an_absent_format_is_told(clin) -> None:
    data = clin(multi_hop=None, list=None)
    assert {task.group for task in data.questions} == set(FORMATS) - {"multi_hop", "list"}
    assert any("lacks list.json, multi_hop.json" in note for note in data.notes)
    assert any("checking formats only" in note for note in data.notes)


def _without(name: str, field: str) -> dict:
    return {name: [{key: value for key, value in item.items() if key != field} for item in items_of(name)]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"TF": items_of("short")}, "TF.json, item 1: is of type 'short_answer', not 'true_false'"),
        (_without("MC", "correct_answer"), "MC.json, item 1: correct_answer is None, not text"),
        (_without("MC", "options"), "MC.json, item 1: options is None, not a list of texts"),
        (_without("short_inverse", "incorrect_explanation"), "incorrect_explanation is None"),
        ({"TF": '[{"question": '}, "TF.json: is not JSON"),
        ({"TF": "[]"}, "TF.json: holds no row"),
        ({"TF": "[3]"}, "TF.json, item 1: is 3, not an object"),
        ({"TF": [item | {"id": 7} for item in items_of("TF")]}, "cliniqlink/true_false/7 occurs more than once"),
        ({"split": "test"}, "no question matches split=test"),
        ({"short": None, "formats": ["short"]}, "no question matches split=all, groups short"),
        ({"language": "es"}, "cliniqlink is published in en, not in es"),
    ],
)
def test_bad_input_is_named_in_one_line(clin, changes, said) -> None:
    with pytest.raises(DatasetError) as raised:
        clin(**changes)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.data
def test_the_published_sample(full_data) -> None:
    data = load_task_set(DatasetSpec(name="cliniqlink"))
    assert [task.key for task in data.questions] == [f"cliniqlink/{kind}/{n}" for kind in FORMATS for n in range(1, 6)]
    assert set(data.golds) == {task.key for task in data.questions}
    assert len(data.references) == 30
    assert (data.licence, data.version) == ("CC0-1.0", "2025")


# CasiMedicos as extraction


def test_every_question_is_posed_in_four_variants(spans) -> None:
    data = spans(language="es")
    assert [task.key for task in data.questions[:4]] == [f"casimedicos/train/0/{name}" for name in VARIANTS]
    assert Counter(task.group for task in data.questions) == dict.fromkeys(VARIANTS, 5)
    assert {task.language for task in data.questions} == {"es"}
    assert not any(gold.answers for gold in data.golds.values())
    assert any("does not mark which part" in note for note in data.notes)


def test_components_stand_in_the_context_where_they_say(spans) -> None:
    data = spans(split="test")
    for task in data.questions:
        texts = [task.context[one.start : one.end] for one in data.golds[task.key].components]
        wanted = {"0": ["He has no fever."], "1": ["It was hot.", "Heat explains it."], "2": []}
        assert texts == wanted[task.key.split("/")[2]]
    assert [one.label for one in data.golds["casimedicos/test/1/Q#CE"].components] == ["premise", "claim"]


def test_questions_that_stand_in_train_are_marked(spans) -> None:
    data = spans(split="test")
    marked = {key for key, gold in data.golds.items() if gold.repeats_training}
    assert marked == {f"casimedicos/test/0/{name}" for name in VARIANTS}


def test_a_limit_takes_the_groups_in_turn_and_a_larger_one_holds_it(spans) -> None:
    smaller: set[str] = set()
    for limit in range(1, 21):
        tasks = spans(limit=limit, seed=3).questions
        counts = Counter(task.group for task in tasks)
        assert max(counts.values()) - min(counts.get(name, 0) for name in VARIANTS) <= 1
        keys = {task.key for task in tasks}
        assert smaller < keys
        smaller = keys
    assert {task.key for task in spans(limit=4, seed=1).questions} != {task.key for task in spans(limit=4).questions}


def test_a_file_of_spans_gives_right_answers(tmp_path) -> None:
    rows = [("a", "It was hot. He ran.", "Why?", "was hot"), ("b", "He ran.", "What?", "He ran")]
    data = load_task_set(
        DatasetSpec(name="casimedicos_spans", language="es", path=write_squad(tmp_path / "es.jsonl", rows))
    )
    assert [(task.key, task.group, task.context) for task in data.questions] == [
        ("a", "given", "It was hot. He ran."),
        ("b", "given", "He ran."),
    ]
    assert [data.golds[key].answers for key in "ab"] == [("was hot",), ("He ran",)]
    assert not any("does not mark which part" in note for note in data.notes)


def _span(key, **more):
    return {
        "id": key,
        "context": "It was hot.",
        "question": "Why?",
        "answers": {"text": ["hot"], "answer_start": [7]},
        **more,
    }


@pytest.fixture
def span_file(tmp_path):
    """`span_file(rows)`: the tasks of a file of spans."""
    return lambda *rows, **settings: load_task_set(
        DatasetSpec(name="casimedicos_spans", path=write_rows(tmp_path / "en.json", rows), **settings)
    )


def test_misplaced_spans_are_told(span_file) -> None:
    data = span_file(_span("1", answers={"text": ["hot"], "answer_start": [0]}))
    assert "1 of 1 answers are not where the file says" in data.notes


def test_a_file_carries_its_variants(span_file) -> None:
    rows = [_span("1", variant="CQ#E"), _span("1", variant="Q#CE"), _span("2/CQ#E"), _span("3")]
    assert {task.key: task.group for task in span_file(*rows).questions} == {
        "1/CQ#E": "CQ#E",
        "1/Q#CE": "Q#CE",
        "2/CQ#E": "CQ#E",
        "3": "given",
    }
    assert [task.key for task in span_file(*rows, variants=("CQ#E",)).questions] == ["1/CQ#E", "2/CQ#E"]
    with pytest.raises(DatasetError, match="id '1/CQ#E' occurs twice"):
        span_file(_span("1", variant="CQ#E"), _span("1/CQ#E"))
