"""The order of runs and the questions to review, as `medexam compare` and Python give them, on runs of the sample."""

import json
from pathlib import Path

import pytest

import medexam as package
from medexam.datasets import load_task_set
from medexam.errors import SpecError
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from stored_runs import write_run


@pytest.fixture(scope="module")
def controls(tmp_path_factory) -> list[Path]:
    """Runs of three controls in two languages, made once for all tests."""
    home = tmp_path_factory.mktemp("controls")
    matrix = {"program": ["random", "longest", "blind"], "dataset.language": ["en", "es"]}
    spec = {"name": "controls", "dataset": {"name": "headqa_sample"}, "program": "random", "matrix": matrix}
    package.run(spec, runs_dir=home, track=False)
    return sorted(path.parent for path in home.glob("*/spec.json"))


@pytest.mark.parametrize(
    ("flags", "key", "title"),
    [
        (["--cutoff", "2015"], "cutoff", "Contamination: before and after the cutoff 2015"),
        (["--strengths"], "strengths", "pairs of runs are separable in strength"),
        (["--item-response"], "item_response", "The fit is weak: it has 6 runs and needs 100 or more"),
    ],
)
def test_a_flag_adds_its_part_to_every_output(medexam, controls, tmp_path, flags, key, title) -> None:
    code, out, err = medexam("compare", *controls, *flags, "--markdown", "compare.md")
    assert (code, title in " ".join(out.split()), title in (tmp_path / "compare.md").read_text()) == (0, True, True), (
        err
    )
    code, out, err = medexam("compare", *controls, *flags, "--json")
    assert code == 0, err
    document = json.loads(out)
    part = document[key]
    match key:
        case "cutoff":
            assert part["before"]["n"] + part["after"]["n"] == document["questions"]
        case "strengths":
            strengths = part["runs"].values()
            assert sum(each["wins"] for each in strengths) == sum(each["losses"] for each in strengths)
        case "item_response":
            right = sum(each["right"] for each in part["questions"].values())
            assert right == sum(each["metrics"]["right"] for each in document["runs"])


def test_few_runs_and_dates_that_are_none_are_refused(medexam, controls) -> None:
    for words, problem in (
        (("--cutoff", "soon"), "such as 2023 or 2023-06"),
        (("--strengths",), "three runs or more"),
        (("--item-response",), "three runs or more"),
    ):
        code, _, err = medexam("compare", *controls[:2], *words)
        assert (code, problem in err) == (2, True)


def test_runs_in_words_have_strengths_and_no_item_response(tmp_path) -> None:
    spec = DatasetSpec(name="headqa_sample_open", limit=24)
    tasks = load_task_set(spec)
    places = {task.key: place for place, task in enumerate(tasks.questions)}

    def write(name: str, right: int) -> Path:
        """Right on each question but those from place `right` on."""

        def answer(task, gold):
            text = gold.answers[0] if places[task.key] < right else "nothing of it"
            return {"status": Status.ANSWERED, "text": text, "reply": text}

        dataset = spec.model_dump(mode="json", include={"name", "limit"})
        return write_run(tmp_path / "runs" / name, tasks, {"kind": "short_answer"}, answer, dataset=dataset).path

    runs = [write("none", 0), write("half", 12), write("all", 24)]
    strengths = package.compare(*runs, strengths=True).document()["strengths"]["runs"]
    assert {name: (each["wins"], each["losses"]) for name, each in strengths.items()} == {
        "all": (36, 0),
        "half": (12, 12),
        "none": (0, 36),
    }
    with pytest.raises(SpecError, match="these runs answer in words: leave it out"):
        package.compare(*runs, item_response=True)
