"""`medexam sequential`: cells that are asked in blocks until their comparisons are decided."""

import json
from pathlib import Path

import pytest
import yaml

import medexam as package

DIFFERENCE = ("--difference", 10)


@pytest.fixture
def document(tmp_path):
    """Three scripted models: right one time in four, always right, and right where the first is but for one."""
    questions = package.load_questions("headqa_sample")

    def model(name, right):
        table = {}
        for place, question in enumerate(questions):
            gold = questions.answers[question.key]
            table[question.stem] = f"{{Answer: {gold if right(place) else gold % 4 + 1}}}"
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(table))
        return {"engine": "scripted", "path": str(tmp_path / f"{name}.yaml")}

    return {
        "name": "few",
        "dataset": {"name": "headqa_sample"},
        "matrix": {
            "model": [
                model("base", lambda place: place % 4 == 0),
                model("good", lambda _: True),
                model("same", lambda place: place % 4 == 0 and place != 8),
            ]
        },
    }


@pytest.fixture
def sequential(medexam, runs_dir, tmp_path):
    """`sequential(document, ...)` -> exit code, standard output and error of the command, without MLflow."""

    def run(document, *words):
        (tmp_path / "few.yaml").write_text(yaml.safe_dump(document))
        return medexam("sequential", tmp_path / "few.yaml", *(words or DIFFERENCE), "--runs-dir", runs_dir)

    return run


@pytest.fixture
def stored(runs_dir):
    """`stored()` -> the runs, by their models' names."""

    def load():
        runs = [package.load_run(path) for path in runs_dir.glob("few-*")]
        models = [json.loads((run.folder / "spec.json").read_text())["cell"]["model"]["path"] for run in runs]
        return {Path(model).stem: run for model, run in zip(models, runs, strict=True)}

    return load


def record(run):
    return json.loads((run.folder / "sequential.json").read_text())


def test_comparisons_end_early_and_every_look_is_kept(sequential, document, stored, medexam, runs_dir) -> None:
    code, out, err = sequential(document)
    assert (code, "stopped after" in out) == (0, True), err
    runs = stored()
    good, same = record(runs["good"]), record(runs["same"])
    assert (good["ended"], same["ended"], good["baseline"]) == ("better", "no difference", runs["base"].id)
    assert good["asked"] < same["asked"] == runs["base"].n < 120 == good["questions"]
    for name, one in (("good", good), ("same", same)):
        assert runs[name].complete
        assert runs[name].n == len(runs[name].predictions) == one["asked"]
    before, after = runs["base"].predictions, runs["good"].predictions
    assert set(after) <= set(before), "blocks are the same questions in every cell"
    assert [look["asked"] for look in good["looks"]] == list(range(10, good["asked"] + 1, 10))
    last = good["looks"][-1]
    assert last["gained"] == sum(before[key].answer != after[key].answer for key in after)
    assert (good["level"], last["lost"], last["better"] >= 2 / 0.025, last["interval"][0] > 0) == (0.025, 0, True, True)
    code, out, err = medexam("compare", runs["base"].folder, runs["good"].folder)
    assert (code, f"stopped after {good['asked']} of 120 questions" in " ".join(out.split())) == (0, True), err

    logs = {run.id: (run.folder / "predictions.jsonl").read_bytes() for run in runs.values()}
    assert sequential(document)[0] == 0
    assert logs == {run.id: (run.folder / "predictions.jsonl").read_bytes() for run in stored().values()}
    assert [record(run) for run in (stored()["good"], stored()["same"])] == [good, same]
    package.run(document, runs_dir=runs_dir, track=False, progress=False)
    assert {(run.id, run.n) for run in stored().values()} == {(run.id, 120) for run in runs.values()}
    assert "stopped after" not in medexam("compare", runs["base"].folder, runs["good"].folder)[1]


def test_a_server_that_is_gone_ends_it_after_one_block(sequential, document, stored) -> None:
    for model in document["matrix"]["model"]:
        Path(model["path"]).write_text(yaml.safe_dump({model["path"]: "", "*": {"error": "server"}}))
    code, _, err = sequential(document)
    assert (code, "have not ended" in err) == (3, True), err
    assert {len(run.predictions) for run in stored().values()} == {10}
    assert record(stored()["good"])["ended"] is None


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        ({"matrix": {}}, DIFFERENCE, "has one cell"),
        ({"matrix": {"dataset.years": [[2013], [2014]]}}, DIFFERENCE, "select different ones"),
        ({}, ("--difference", 0), "--difference is over 0"),
    ],
)
def test_what_cannot_be_compared_is_refused(sequential, document, change, words, said) -> None:
    code, _, err = sequential({**document, **change}, *words)
    assert (code, said in err) == (2, True)
