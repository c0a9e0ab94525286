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


def test_comparisons_end_early_and_the_same_command_asks_no_more(
    sequential, document, stored, runs_dir, medexam
) -> None:
    code, out, err = sequential(document)
    runs = stored()
    assert (code, f"{runs['good'].id}: better after" in out, "rely on what stands here" in err) == (0, True, True), err
    records = json.loads(sequential(document, *DIFFERENCE, "--json")[1])
    good, same = records[runs["good"].id], records[runs["same"].id]
    assert (good["ended"], same["ended"], good["baseline"]) == ("better", "no difference", runs["base"].id)
    assert good["asked"] < same["asked"] == runs["base"].n < 120 == good["questions"]
    for name, one in (("good", good), ("same", same)):
        assert runs[name].complete
        assert runs[name].n == len(runs[name].predictions) == one["asked"]
    before, after = runs["base"].predictions, runs["good"].predictions
    assert set(after) <= set(before), "blocks are the same questions in every cell"
    assert good["asked"] % 10 == 0
    assert good["gained"] == sum(before[key].answer != after[key].answer for key in after)
    assert (good["level"], good["lost"], good["better"] >= 2 / 0.025, good["interval"][0] > 0) == (0.025, 0, True, True)

    logs = {run.id: (run.folder / "predictions.jsonl").read_bytes() for run in runs.values()}
    assert sequential(document)[0] == 0
    assert logs == {run.id: (run.folder / "predictions.jsonl").read_bytes() for run in stored().values()}
    assert "p-values assume a number that was fixed before" in medexam("compare", runs_dir)[2]
    package.run(document, runs_dir=runs_dir, track=False, progress=False)
    assert "p-values" not in medexam("compare", runs_dir)[2]
    assert {(run.id, run.n) for run in stored().values()} == {(run.id, 120) for run in runs.values()}


def test_a_server_that_is_gone_ends_it_after_one_block(sequential, document, stored) -> None:
    for model in document["matrix"]["model"]:
        Path(model["path"]).write_text(yaml.safe_dump({model["path"]: "", "*": {"error": "server"}}))
    code, out, err = sequential(document)
    assert (code, "have not ended" in err, out.count("undecided after 10 of 120")) == (3, True, 2), err
    assert {len(run.predictions) for run in stored().values()} == {10}


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
