"""Logs of further harnesses in the shapes that they write: known answers to four known questions.

A line of `logs/further.jsonl` is a shape: its files (a list of rows is a Parquet file), and what should be told of it.
"""

import json
from copy import deepcopy
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam_companions.harnesses import ResultsError

QUESTIONS = [
    ("Which vitamin prevents scurvy?", ("Vitamin A", "Vitamin B", "Vitamin C", "Vitamin D"), 2),
    ("Which organ makes insulin?", ("Liver", "Pancreas", "Heart", "Spleen"), 1),
    ("Which bone is in the thigh?", ("Femur", "Tibia", "Ulna", "Radius"), 0),
    ("Which cell carries oxygen?", ("Platelet", "Lymphocyte", "Neuron", "Erythrocyte"), 3),
]
CHOSEN = (2, 0, 0, 3)
"""The place of the option that the model took, from 0: three of four are right."""
LOGS = (Path(__file__).parent / "logs" / "further.jsonl").read_text(encoding="utf-8").splitlines()
SHAPES = {shape["shape"]: shape for shape in map(json.loads, LOGS)}


def write(folder: Path, files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            pq.write_table(pa.Table.from_pylist(content), path)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def make_importer(own_importer):
    """`make_importer(turned=True)`: imports on the four questions, whose options may stand in the other order."""

    def make(*, turned: bool = False):
        rows = []
        for number, (stem, options, right) in enumerate(QUESTIONS):
            shown, place = (options[::-1], 3 - right) if turned else (options, right)
            rows.append({"id": f"q{number}", "question": stem, "options": list(shown), "answer": "ABCD"[place]})
        return own_importer(rows, 0.1)

    return make


@pytest.fixture
def importer(make_importer):
    return make_importer()


def _numbers(one):
    answers = one.folder.read_predictions()
    return [answers[f"q{number}"].answer for number in range(4)]


@pytest.mark.parametrize("name", SHAPES)
def test_the_answers_are_those_that_were_given(name, importer, tmp_path) -> None:
    shape = SHAPES[name]
    found = list(importer.take(write(tmp_path, shape["files"]), print))
    assert [one.record.cell.program.measure for one in found] == shape["measures"]
    for one in found:
        harness = one.record.cell.program.harness
        assert (harness, one.model, one.environment["imported"]["unreadable"]) == (shape["harness"], shape["model"], 0)
        assert _numbers(one) == [chosen + 1 for chosen in CHOSEN]
        assert one.metrics.measure("accuracy").value == 0.75
        assert one.warnings == ()


@pytest.mark.parametrize("name", ["opencompass_gen", "evalscope_reviews", "lighteval_replies"])
def test_options_that_a_harness_shuffled_are_read_in_its_order(name, make_importer, tmp_path) -> None:
    (one,) = make_importer(turned=True).take(write(tmp_path, SHAPES[name]["files"]), print)
    assert _numbers(one) == [4 - chosen for chosen in CHOSEN]


@pytest.mark.parametrize(("score", "number"), [("0", None), ("0.0", None), ("False", None), ("1", 3), ("1.0", 3)])
def test_the_score_of_simple_evals_stands_for_an_answer_that_cannot_be_read(
    own_importer, tmp_path, score, number
) -> None:
    stem, options, _ = QUESTIONS[0]
    ((name, content),) = SHAPES["simple_evals"]["files"].items()
    document = json.loads(content)
    messages = deepcopy(document["convos"][0])
    messages[-1]["content"] = "It is well known."
    report = f"<p>Correct Answer: C</p>\n<p>Extracted Answer: </p>\n<p>Score: {score}</p>\n"
    path = write(tmp_path, {name: document | {"convos": [messages], "htmls": [report]}})
    rows = [{"id": "q0", "question": stem, "options": list(options), "answer": "C"}]
    (one,) = own_importer(rows).take(path, print)
    assert one.folder.read_predictions()["q0"].answer == number
    assert one.metrics.measure("accuracy").value == float(number is not None)


def test_scores_are_kept_with_their_unit(importer, tmp_path) -> None:
    one = next(importer.take(write(tmp_path, SHAPES["lighteval_today"]["files"]), print, "acc"))
    first = one.folder.read_predictions()["q0"]
    assert first.option_scores == {1: -20.0, 2: -21.0, 3: -1.0, 4: -23.0}
    assert (first.score_unit, first.score_norm) == ("nats", "sum")


@pytest.mark.parametrize(
    ("name", "document", "said"),
    [
        ("mmlu_m.json", {"score": 0.5, "score:std": 0.1}, "has totals alone, no answers"),
        ("results_x.json", {"config_general": {}, "results": {}, "versions": {}}, "has totals alone, no answers"),
        ("list.jsonl", "[1, 2]", "line 1: is no JSON object"),
        ("simple_allresults.json", {"convos": [[{}]]}, "sample 1: is not in the format of simple-evals"),
        ("oc.json", {"0": {"origin_prompt": 5, "prediction": "A"}}, "sample 1: is not in the format of OpenCompass"),
    ],
)
def test_what_holds_no_answers_is_refused_in_one_line(name, document, said, importer, tmp_path) -> None:
    with pytest.raises(ResultsError) as caught:
        list(importer.take(write(tmp_path, {name: document}), print))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
