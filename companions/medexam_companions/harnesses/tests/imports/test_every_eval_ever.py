"""Runs imported from files that the converters of Every Eval Ever wrote, beside the numbers of their sources."""

import json
import zipfile
from pathlib import Path

import pytest

from medexam_companions.harnesses import ResultsError

LOGS = Path(__file__).parent / "logs"
STATED = json.loads(next(LOGS.glob("results_*.json")).read_text())["results"]


@pytest.fixture
def task(tmp_path):
    """The folder of a task's two files."""
    with zipfile.ZipFile(LOGS / "every_eval_ever.zip") as archive:
        archive.extractall(tmp_path)
    return lambda name: tmp_path / "data" / name / "HuggingFaceTB" / "SmolLM2-135M-Instruct"


@pytest.fixture
def read(sample_importer, take):
    return lambda path: take(sample_importer, path)


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("headqa_en", {"acc": "acc,none", "acc_norm": "acc_norm,none"}),
        (
            "headqa_en_letters",
            {f"exact_match:{each}": f"exact_match,{each}" for each in ("strict-match", "flexible-extract")},
        ),
    ],
)
def test_each_result_has_the_score_of_its_source(task, read, name, measures) -> None:
    (path,) = task(name).glob("*_samples.jsonl")
    found = read(path)
    assert found.keys() == measures.keys()
    for measure, one in found.items():
        assert (
            one.metrics.measure("accuracy").value
            == one.environment["imported"]["stated"]
            == STATED[name][measures[measure]]
        )
        # The files keep whole prompts, and those of letters no options.
        assert one.environment["imported"]["by"] == {"text within": 20}
        assert one.model == "HuggingFaceTB/SmolLM2-135M-Instruct"
        assert one.environment["imported"]["other_gold"] == 0


def test_the_options_of_acc_are_those_of_the_harness_itself(task, read) -> None:
    (path,) = task("headqa_en").glob("*_samples.jsonl")
    (samples,) = LOGS.glob("samples_headqa_en_2*.jsonl")
    ours, theirs = (read(each)["acc"].folder.read_predictions() for each in (path, samples))
    assert {key: one.answer for key, one in ours.items()} == {key: one.answer for key, one in theirs.items()}


def test_of_a_prompt_with_other_questions_the_last_counts(task, read) -> None:
    (path,) = task("headqa_en_letters").glob("*_samples.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    shown = lines[5]["input"]["raw"] + " B\n\n"
    for line in lines:
        line["input"]["raw"] = shown + line["input"]["raw"]
    path.write_text("\n".join(map(json.dumps, lines)))
    one = read(path)["exact_match:strict-match"]
    assert (one.environment["imported"]["by"], one.metrics.measure("accuracy").value) == (
        {"text within": 20},
        one.environment["imported"]["stated"],
    )


def test_a_result_of_shares_is_left_out(task, read) -> None:
    (path,) = task("headqa_en").glob("*_samples.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    next(line for line in lines if line["evaluation_result_id"] == "acc_norm")["evaluation"]["score"] = 0.5
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read(path).keys() == {"acc"}


def test_what_is_no_whole_file_is_refused(task, read) -> None:
    (samples,) = task("headqa_en").glob("*_samples.jsonl")
    (evaluation,) = task("headqa_en").glob("*[0-9a-f].json")
    lines = samples.read_text().splitlines()
    record = json.loads(lines[3])
    del record["evaluation"]
    samples.write_text("\n".join([*lines[:3], json.dumps(record)]))
    with pytest.raises(ResultsError, match="sample 4: is not in the format of Every Eval Ever"):
        read(samples)
    with pytest.raises(ResultsError, match="has totals alone, no answers"):
        read(evaluation)
