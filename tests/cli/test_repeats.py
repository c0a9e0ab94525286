"""`medexam run --repeat` and the noise floor of `medexam compare`, as a user meets them."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def trial(spec):
    """Forty questions for a model that replies otherwise now and then; each repeat asks in another order."""
    return spec({"*": [*["{Answer: 1}"] * 3, "{Answer: 2}"]}, dataset={"name": "headqa_sample", "limit": 40})


@pytest.fixture
def ask(run, trial):
    """`ask("--repeat", 2)` runs the spec; gives the run's folder."""
    return lambda *options: Path(run(trial, *options)[0]["run_dir"])


def _answers(*folders: Path) -> list[dict[str, int]]:
    lines = [(folder / "predictions.jsonl").read_text().splitlines() for folder in folders]
    found = [[json.loads(line) for line in each] for each in lines]
    assert [len(each) for each in found] == [40] * len(folders), "each question is asked once"
    return [{one["question"]: one["answer"] for one in each} for each in found]


def test_repeats_lie_within_the_run_and_ask_in_other_orders(medexam, ask) -> None:
    alone = json.loads((ask() / "spec.json").read_text())
    folder = ask("--repeat", 2)
    repeats = sorted((folder / "repeats").iterdir())
    assert [path.name for path in repeats] == [f"{folder.name}-repeat-{number}" for number in (1, 2)]
    assert {json.loads((path / "spec.json").read_text())["spec_digest"] for path in repeats} == {alone["spec_digest"]}
    first, *others = asked = _answers(folder, *repeats)
    assert [set(one) for one in others] == [set(first)] * 2
    assert len({tuple(one) for one in asked}) == 3
    ask("--repeat", 2)
    assert list(map(list, _answers(folder, *repeats))) == list(map(list, asked))
    assert [each["run_id"] for each in json.loads(medexam("list", "--json")[1])] == [folder.name]


def test_a_difference_under_the_noise_floor_is_not_said_to_be_better(medexam, ask, tmp_path) -> None:
    folder = ask("--repeat", 2)
    other = ask("--fresh")
    code, out, _ = medexam("compare", folder, other, "--markdown", tmp_path / "compare.md")
    assert (code, "the noise floor is" in " ".join(out.split())) == (0, True)
    assert "was asked 3 times on 40 questions" in (tmp_path / "compare.md").read_text()
    document = json.loads(medexam("compare", folder, other, "--json")[1])
    noise = document["noise"]["runs"][folder.name]
    askings = _answers(folder, *(folder / "repeats").iterdir())
    changed = sum(len({one[key] for one in askings}) > 1 for key in askings[0])
    assert (noise["askings"], noise["n"], noise["changed"]) == (3, 40, changed)
    assert 0 < noise["flipped"] <= changed
    (floor,) = document["noise"]["floors"].values()
    assert floor == pytest.approx(1.959964 * 2**0.5 * noise["server"], rel=1e-6)
    assert abs(document["pairs"][0]["measures"]["accuracy"]["difference"]["value"]) <= floor or floor == 0
    assert document["pairs"][0]["verdict"] == "not told apart"


def test_a_repeat_that_was_hardly_begun_is_left_out(medexam, ask) -> None:
    folder = ask("--repeat", 2)
    path = folder / "repeats" / f"{folder.name}-repeat-2" / "predictions.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    (found,) = json.loads(medexam("report", folder, "--json")[1])
    assert (found["noise"]["askings"], found["noise"]["n"]) == (2, 40)


def test_answers_of_another_model_are_no_repeats(medexam, ask) -> None:
    folder = ask("--repeat", 1)
    (repeat,) = (folder / "repeats").iterdir()
    path = repeat / "predictions.jsonl"
    lines = [json.loads(line) | {"answered_by": "another"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    other = ask("--fresh")
    assert "noise" not in json.loads(medexam("compare", folder, other, "--json")[1])
