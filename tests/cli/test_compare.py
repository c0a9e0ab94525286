"""`medexam compare` as a user meets it, on real runs of the packaged sample."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import binomtest

import medexam as package
from medexam.datasets import load_exam_set
from medexam.experiments import RunFolder
from medexam.specs import DatasetSpec


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Runs of the controls, made once for all tests; those of one discipline lie beside them."""
    home = tmp_path_factory.mktemp("controls")
    kinds, sample = ["random", "longest", "blind"], {"name": "headqa_sample"}
    for name, dataset, matrix in (
        ("controls", sample, {"program": kinds, "dataset.language": ["en", "es"]}),
        ("medicine", {**sample, "disciplines": ["medicine"]}, {"program": kinds[:2]}),
        ("biology", {**sample, "disciplines": ["biology"]}, {"program": kinds[:1]}),
    ):
        spec = {"name": name, "dataset": dataset, "program": "random", "matrix": matrix}
        package.run(spec, runs_dir=home / name, track=False)
    return home


@pytest.fixture
def stored(home):
    """`stored("longest")` -> the folder of that control's run; `name` chooses the questions."""

    def find(kind: str, language: str = "en", name: str = "controls") -> Path:
        (found,) = (home / name).glob(f"{name}-{kind}*-{language}-*")
        return found

    return find


def compared(medexam, *arguments) -> dict:
    """The document of `medexam compare --json`."""
    code, out, err = medexam("compare", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_gate_fails_and_passes_with_its_exit_code(medexam, stored) -> None:
    both = (stored("random"), stored("longest"))
    code, _, err = medexam("compare", *both, "--fail-if", "worse:1")
    assert (code, "FAILED: longest may be worse than random by 1.0 percentage points or more" in err) == (1, True)
    code, _, err = medexam("compare", *both, "--fail-if", "worse:50")
    assert (code, "passed: longest is not worse than random by 50.0 percentage points" in err) == (0, True)


def test_a_flag_adds_its_part_to_every_output(medexam, stored, tmp_path) -> None:
    runs, flags = [stored(kind) for kind in ("random", "longest", "blind")], ("--equivalent-within", "40")
    title = "longest is equivalent to random within 40.0 percentage points"
    code, out, _ = medexam("compare", *runs, *flags, "--markdown", "compare.md")
    assert (code, title in " ".join(out.split()), title in (tmp_path / "compare.md").read_text()) == (0, True, True)
    document = compared(medexam, *runs, *flags)
    pair = next(pair for pair in document["pairs"] if "longest" in pair["run"])
    tested = document["equivalence"]["pairs"][pair["run"]]
    assert (document["equivalence"]["margin"], tested["verdict"]) == (0.4, "equivalent")
    assert tested["p"] == max(tested["p_worse"], tested["p_better"]) <= tested["p_adjusted"] < 0.025


def test_controls_are_compared_on_the_terminal_and_any_is_the_baseline(medexam, stored, home) -> None:
    folders = [stored("random"), stored("longest"), stored("blind")]
    code, out, err = medexam("compare", *folders)
    assert (code, err) == (0, "")
    plain = " ".join(out.split())
    assert "those that all 3 runs scored. None dropped." in plain
    assert "longest shows no difference from random in accuracy" in plain
    assert "better" not in plain
    names = [folder.name for folder in folders]
    assert medexam("compare", *names, "--runs-dir", home / "controls") == (0, out, "")
    chosen = names[2].rpartition("-")[2]
    where = ("--baseline", chosen, "--runs-dir", home / "controls")
    assert "Against blind" in medexam("compare", *folders, *where)[1]
    reported = json.loads(medexam("report", home / "controls", *where, "--json")[1])
    assert reported[0]["run_id"] == names[2]


def test_json_agrees_with_the_stored_runs(medexam, stored, tmp_path) -> None:
    folders = stored("random"), stored("longest")
    document = compared(medexam, *folders, "--markdown", "compare.md")
    assert [each["run_dir"] for each in document["runs"]] == [str(folder) for folder in folders]
    assert (tmp_path / "compare.md").read_text().startswith("# longest against random\n")
    mine, its = (each["metrics"] for each in json.loads(medexam("report", *folders, "--json")[1]))
    assert [each["metrics"] for each in document["runs"]] == [mine, its]
    (pair,) = document["pairs"]
    for score in ("accuracy", "exam_score", "points"):
        assert pair["measures"][score]["difference"]["value"] == pytest.approx(
            its["measures"][score]["value"] - mine["measures"][score]["value"]
        )
    flips = pair["measures"]["accuracy"]["flips"]
    assert flips["right_to_wrong"] + flips["both_right"] == mine["right"]
    assert flips["wrong_to_right"] + flips["both_right"] == its["right"]
    assert len(document["flipped"]) == flips["right_to_wrong"] + flips["wrong_to_right"]


def test_two_folders_of_one_id_stay_two_runs(medexam, stored, tmp_path) -> None:
    folders = [
        shutil.copytree(stored(kind), tmp_path / at / "same") for at, kind in (("a", "random"), ("b", "longest"))
    ]
    for folder in folders:
        record = json.loads((folder / "spec.json").read_text())
        (folder / "spec.json").write_text(json.dumps(record | {"run_id": "same"}))
    document = compared(medexam, *folders)
    keys = [str(folder) for folder in folders]
    assert (document["baseline"], [each["key"] for each in document["runs"]]) == (keys[0], keys)
    assert [each["run"] for each in document["pairs"]] == keys[1:]


def test_an_ensemble_of_stored_runs_is_scored_and_tested_against_each(medexam, stored) -> None:
    folders = [stored(kind) for kind in ("longest", "blind", "random")]
    alone = compared(medexam, *folders)
    document = compared(medexam, *folders, "--ensemble", "vote")
    together = document.pop("ensemble")
    assert document == alone
    exams = load_exam_set(DatasetSpec(name="headqa_sample"))
    answers = [RunFolder(folder).read_predictions() for folder in folders]
    right = []
    for question in exams.questions:
        votes = [of[question.key].answer for of in answers]
        # The options' mean probability is their share of the votes, so of equals the first run's counts.
        winner = max(votes, key=lambda answer: (Counter(votes)[answer], -votes.index(answer)))
        right.append(exams.golds[question.key].accepts(winner))
    assert together["metrics"]["right"] == sum(right)
    assert list(together["pairs"]) == [run["key"] for run in document["runs"]]
    for of, pair in zip(answers, together["pairs"].values(), strict=True):
        its = [exams.golds[question.key].accepts(of[question.key].answer) for question in exams.questions]
        gained = sum(one and not other for one, other in zip(its, right, strict=True))
        lost = sum(other and not one for one, other in zip(its, right, strict=True))
        accuracy = pair["measures"]["accuracy"]
        assert (accuracy["flips"]["wrong_to_right"], accuracy["flips"]["right_to_wrong"]) == (gained, lost)
        assert accuracy["p"] == pytest.approx(binomtest(gained, gained + lost).pvalue if gained + lost else 1.0)
    shown = " ".join(medexam("compare", *folders, "--ensemble", "mean_probability")[1].split())
    assert "Ensemble: " in shown
    assert "random shows no difference from ensemble of 3 by mean_probability in accuracy" in shown


def test_what_cannot_be_compared_is_one_line_with_a_way_out(refused, stored, tmp_path) -> None:
    first, medicine = stored("random"), stored("longest", name="medicine")
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        ((first,), "give the baseline and one run or more"),
        ((first, first), "is the only run"),
        ((first, "nowhere"), "no run at"),
        ((first, tmp_path / "empty"), "give a run folder, or a folder that holds run folders"),
        ((stored("random", name="biology"), medicine), "not in every run"),
        ((first, medicine, "--equivalent-within", "0"), "over 0 and under 100"),
    ):
        assert said in refused("compare", *arguments)
