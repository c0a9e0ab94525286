"""`medexam run --repeat` and the noise floor of `medexam compare`, as a user meets them: a server of moods."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from medexam.serve import ScriptedEngine


@pytest.fixture
def spec(tmp_path, empty_store):
    (tmp_path / "runs").mkdir()
    shutil.copy(empty_store, tmp_path / "runs" / "mlflow.db")
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    document = {
        "name": "trial",
        "dataset": {"name": "headqa_sample", "limit": 40},
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "zero_shot"},
    }
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def moody(monkeypatch) -> dict[str, int]:
    """Have the model answer a quarter of the prompts otherwise at every second time; prompts -> how often asked."""
    answer, asked = ScriptedEngine.answer, {}

    def answer_by_mood(engine, dialogue):
        prompt = dialogue.messages[-1]["content"]
        asked[prompt] = asked.get(prompt, 0) + 1
        if len(prompt) % 4 == 0 and asked[prompt] % 2 == 0:
            other = ScriptedEngine({"*": "{Answer: 2}"})
            return answer(other, dialogue)
        return answer(engine, dialogue)

    monkeypatch.setattr(ScriptedEngine, "answer", answer_by_mood)
    return asked


def _run(medexam, spec: Path, *options: object) -> Path:
    code, out, _ = medexam("run", spec, "--json", *options)
    (found,) = json.loads(out)
    assert code == 0
    return Path(found["run_dir"])


def _order(folder: Path) -> list[str]:
    return [json.loads(line)["question"] for line in (folder / "predictions.jsonl").read_text().splitlines()]


def test_repeats_lie_within_the_run_and_ask_in_other_orders(medexam, spec, moody) -> None:
    alone = json.loads((_run(medexam, spec) / "spec.json").read_text())
    folder = _run(medexam, spec, "--repeat", 2)
    repeats = sorted((folder / "repeats").iterdir())
    assert [path.name for path in repeats] == [f"{folder.name}-repeat-{number}" for number in (1, 2)]
    assert {json.loads((path / "spec.json").read_text())["spec_digest"] for path in repeats} == {alone["spec_digest"]}
    first, second, third = map(_order, (folder, *repeats))
    assert sorted(first) == sorted(second) == sorted(third)
    assert len({tuple(first), tuple(second), tuple(third)}) == 3
    assert set(moody.values()) == {3}
    _run(medexam, spec, "--repeat", 2)
    assert set(moody.values()) == {3}
    assert [each["run_id"] for each in json.loads(medexam("list", "--json")[1])] == [folder.name]


def test_a_difference_under_the_noise_floor_is_not_said_to_be_better(medexam, spec, moody, tmp_path) -> None:
    folder = _run(medexam, spec, "--repeat", 2)
    other = _run(medexam, spec, "--fresh")
    code, out, _ = medexam("compare", folder, other, "--markdown", tmp_path / "compare.md")
    assert (code, "the noise floor is" in " ".join(out.split())) == (0, True)
    assert "## Noise" in (tmp_path / "compare.md").read_text()
    document = json.loads(medexam("compare", folder, other, "--json")[1])
    noise = document["noise"]["runs"][folder.name]
    moods = sum(len(prompt) % 4 == 0 for prompt in moody)
    assert (noise["askings"], noise["n"], noise["changed"]) == (3, 40, moods)
    assert 0 < noise["flipped"] <= moods
    (floor,) = document["noise"]["floors"].values()
    assert floor == pytest.approx(1.959964 * 2**0.5 * noise["server"], rel=1e-6)
    assert abs(document["pairs"][0]["accuracy"]["value"]) <= floor or floor == 0
    assert document["pairs"][0]["verdict"] == "not told apart"


def test_a_report_shows_how_far_answers_vary(medexam, spec, moody, tmp_path) -> None:
    folder = _run(medexam, spec, "--repeat", 1)
    code, out, _ = medexam("report", folder, "--markdown", tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert (code, "Noise" in out, "## Noise" in text, "| SD server |" in text) == (0, True, True, True)
    (found,) = json.loads(medexam("report", folder, "--json")[1])
    assert found["noise"]["askings"] == 2
    assert found["noise"]["scores"][0] == pytest.approx(found["metrics"]["accuracy"])


def test_a_repeat_that_was_hardly_begun_is_left_out(medexam, spec, moody) -> None:
    folder = _run(medexam, spec, "--repeat", 2)
    path = folder / "repeats" / f"{folder.name}-repeat-2" / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    (found,) = json.loads(medexam("report", folder, "--json")[1])
    assert (found["noise"]["askings"], found["noise"]["n"]) == (2, 40)


def test_answers_of_another_model_are_no_repeats(medexam, spec, moody) -> None:
    folder = _run(medexam, spec, "--repeat", 1)
    (repeat,) = (folder / "repeats").iterdir()
    path = repeat / "predictions.jsonl"
    lines = [json.loads(line) | {"answered_by": "another"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    other = _run(medexam, spec, "--fresh")
    assert "noise" not in json.loads(medexam("compare", folder, other, "--json")[1])


def test_repeats_of_nothing_are_refused(medexam, spec) -> None:
    code, _, err = medexam("run", spec, "--repeat", 1, "--set", "program.kind=random")
    assert (code, "no program of this plan asks a model" in err, err.count("\n")) == (2, True, 1)
    code, _, err = medexam("run", "--resume", "trial", "--repeat", 1)
    assert (code, "--fresh, --repeat" in err) == (2, True)
