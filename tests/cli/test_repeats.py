"""`medexam run --repeat` and the noise floor of `medexam compare`, as a user meets them: a server of moods."""

import json
from pathlib import Path

import pytest

from medexam.serve import ScriptedEngine


@pytest.fixture
def trial(spec):
    """A spec of forty questions."""
    return spec(dataset={"name": "headqa_sample", "limit": 40})


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


@pytest.fixture
def ask(run, trial):
    """`ask("--repeat", 2)` runs the spec; gives the run's folder."""
    return lambda *options: Path(run(trial, *options)[0]["run_dir"])


def _order(folder: Path) -> list[str]:
    return [json.loads(line)["question"] for line in (folder / "predictions.jsonl").read_text().splitlines()]


def test_repeats_lie_within_the_run_and_ask_in_other_orders(medexam, ask, moody) -> None:
    alone = json.loads((ask() / "spec.json").read_text())
    folder = ask("--repeat", 2)
    repeats = sorted((folder / "repeats").iterdir())
    assert [path.name for path in repeats] == [f"{folder.name}-repeat-{number}" for number in (1, 2)]
    assert {json.loads((path / "spec.json").read_text())["spec_digest"] for path in repeats} == {alone["spec_digest"]}
    first, second, third = map(_order, (folder, *repeats))
    assert sorted(first) == sorted(second) == sorted(third)
    assert len({tuple(first), tuple(second), tuple(third)}) == 3
    assert set(moody.values()) == {3}
    ask("--repeat", 2)
    assert set(moody.values()) == {3}
    assert [each["run_id"] for each in json.loads(medexam("list", "--json")[1])] == [folder.name]


def test_a_difference_under_the_noise_floor_is_not_said_to_be_better(medexam, ask, moody, tmp_path) -> None:
    folder = ask("--repeat", 2)
    other = ask("--fresh")
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


def test_a_repeat_that_was_hardly_begun_is_left_out(medexam, ask, moody) -> None:
    folder = ask("--repeat", 2)
    path = folder / "repeats" / f"{folder.name}-repeat-2" / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    (found,) = json.loads(medexam("report", folder, "--json")[1])
    assert (found["noise"]["askings"], found["noise"]["n"]) == (2, 40)


def test_answers_of_another_model_are_no_repeats(medexam, ask, moody) -> None:
    folder = ask("--repeat", 1)
    (repeat,) = (folder / "repeats").iterdir()
    path = repeat / "predictions.jsonl"
    lines = [json.loads(line) | {"answered_by": "another"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    other = ask("--fresh")
    assert "noise" not in json.loads(medexam("compare", folder, other, "--json")[1])
