"""`medexam compare` as a user meets it, on real runs of the packaged sample and of answers in words."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from scipy.stats import binomtest

import medexam as package
from case_files import CLAIM, REST, write_cases
from medexam.datasets import load_exam_set
from medexam.experiments import RunFolder
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from stored_runs import write_run


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Runs of the controls, made once for all tests; those of one discipline and an ensemble lie beside them."""
    home = tmp_path_factory.mktemp("controls")
    kinds, sample = ["random", "longest", "blind"], {"name": "headqa_sample"}
    members = ["longest", {"kind": "blind", "option": 2}]
    for name, dataset, matrix in (
        ("controls", sample, {"program": kinds, "dataset.language": ["en", "es"]}),
        ("medicine", {**sample, "disciplines": ["medicine"]}, {"program": kinds[:2]}),
        ("biology", {**sample, "disciplines": ["biology"]}, {"program": kinds[:1]}),
        ("members", sample, {"program": [*members, "random", {"kind": "ensemble", "members": members}]}),
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


def test_a_gate_fails_and_passes_with_its_exit_code(medexam, refused, stored, tmp_path) -> None:
    both = (stored("random"), stored("longest"))
    code, _, err = medexam("compare", *both, "--fail-if", "worse:1", "--junit", "j.xml")
    assert (code, "FAILED: longest may be worse than random by 1.0 percentage points or more" in err) == (1, True)
    assert 'failures="1"' in (tmp_path / "j.xml").read_text()
    code, _, err = medexam("compare", *both, "--fail-if", "worse:50")
    assert (code, "passed: longest is not worse than random by 50.0 percentage points" in err) == (0, True)
    assert "give --fail-if worse:POINTS with it" in refused("compare", *both, "--junit", "j.xml")


@pytest.mark.parametrize(
    ("flags", "key", "title"),
    [
        (["--cutoff", "2015"], "contamination", "Contamination: before and after the cutoff 2015"),
        (["--equivalent-within", "40"], "equivalence", "longest is equivalent to random within 40.0 percentage points"),
        (["--strengths"], "strengths", "0 of 3 pairs of runs are separable in strength"),
        (["--item-response"], "item_response", "The fit is weak: it has 6 runs and needs 100 or more"),
    ],
)
def test_a_flag_adds_its_part_to_every_output(medexam, stored, tmp_path, flags, key, title) -> None:
    languages = ("en", "es") if key == "item_response" else ("en",)
    runs = [stored(kind, language) for kind in ("random", "longest", "blind") for language in languages]
    code, out, _ = medexam("compare", *runs, *flags, "--markdown", "compare.md")
    assert (code, title in " ".join(out.split()), title in (tmp_path / "compare.md").read_text()) == (0, True, True)
    document = compared(medexam, *runs, *flags)
    part = document[key]
    if key == "contamination":
        around = part["cutoff"]
        assert around["before"]["n"] + around["after"]["n"] == document["questions"]
        for run, difference in around["difference"].items():
            sides = [around[side]["mean"][run] for side in ("before", "after")]
            assert difference["value"] == pytest.approx(sides[0] - sides[1], abs=1e-12)
    elif key == "equivalence":
        pair = next(pair for pair in document["pairs"] if "longest" in pair["run"])
        tested = part["pairs"][pair["run"]]
        assert (part["margin"], tested["verdict"]) == (0.4, "equivalent")
        assert tested["p"] == max(tested["p_worse"], tested["p_better"]) < 0.025
        assert tested["interval"][0] < pair["accuracy"]["value"] < tested["interval"][1]
    elif key == "strengths":
        strengths = list(part["runs"].values())
        assert sum(each["strength"] for each in strengths) == pytest.approx(0)
        assert sum(each["wins"] for each in strengths) == sum(each["losses"] for each in strengths)
    else:
        right = sum(each["right"] for each in part["questions"].values())
        assert right == sum(each["metrics"]["right"] for each in document["runs"])


def test_a_subset_is_chosen_by_runs_and_can_be_asked_alone(medexam, run, stored, tmp_path) -> None:
    runs = [stored(kind, language) for kind in ("random", "longest", "blind") for language in ("en", "es")]
    document = compared(medexam, *runs, "--subset", 30)
    chosen = document["subset"]["questions"]
    assert len(set(chosen)) == 30
    (tmp_path / "chosen.json").write_text(json.dumps(document))
    setting = f"dataset.only={tmp_path / 'chosen.json'}"
    (asked,) = run("quickstart", "--set", "program=longest", "--set", setting)
    record = json.loads(Path(asked["run_dir"], "spec.json").read_text())
    assert sorted(record["questions"]) == sorted(chosen)
    assert record["spec_digest"] == json.loads((stored("longest") / "spec.json").read_text())["spec_digest"]


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
        assert pair[score]["value"] == pytest.approx(its[score] - mine[score])
    assert pair["right_to_wrong"] + pair["both_right"] == mine["right"]
    assert pair["wrong_to_right"] + pair["both_right"] == its["right"]
    assert len(document["flipped"]) == pair["right_to_wrong"] + pair["wrong_to_right"]


def test_only_common_questions_are_compared(medexam, stored) -> None:
    document = compared(medexam, stored("random"), stored("longest", name="medicine"))
    assert list(document["pairs"][0]["by_discipline"]) == ["medicine"]
    assert document["dropped"]["not_in_every_run"] == document["runs"][0]["asked"] - document["questions"] > 0


@pytest.mark.usefixtures("tracked")
def test_languages_are_compared_question_by_question_and_sent_to_a_store(
    medexam, stored, tmp_path, empty_store
) -> None:
    from mlflow import MlflowClient

    uri = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'mlflow.db')}"
    narrowed = shutil.copytree(stored("longest", "es"), tmp_path / "longest-es")
    lines = (narrowed / "predictions.jsonl").read_text().splitlines(keepends=True)
    (narrowed / "predictions.jsonl").write_text("".join(lines[1:]))
    asked = ("--languages", stored("longest"), narrowed)
    code, out, _ = medexam("compare", *asked, "--markdown", "languages.md", "--tracking-uri", uri)
    assert (code, "Dropped: 1 not asked yet in at least one." in " ".join(out.split())) == (0, True)
    document = compared(medexam, *asked)
    assert (document["dropped"]["not_asked_yet"], [each["owed"] for each in document["runs"]]) == (1, [0, 1])
    text = (tmp_path / "languages.md").read_text()
    assert all(key in text for key in (*document["only_en"], *document["only_es"]))
    client = MlflowClient(tracking_uri=uri)
    (sent,) = client.search_runs([client.get_experiment_by_name("controls").experiment_id])
    assert (sent.data.metrics["n"], sent.data.metrics["both_right"]) == (document["questions"], document["both_right"])
    assert sent.data.metrics["only_en"] == len(document["only_en"])
    code, out, err = medexam("compare", stored("random"), stored("longest"), "--tracking-uri", f"{uri}/none", "--json")
    assert (code, len(json.loads(out)["pairs"]), "compare again with --track" in err) == (2, 1, True)


def test_a_report_of_two_languages_ranks_nothing_and_names_the_command_that_compares(medexam, stored, tmp_path) -> None:
    folders = stored("longest"), stored("longest", "es")
    said = f"this compares them: medexam compare {folders[0]} {folders[1]}"
    code, out, _ = medexam("report", *folders, "--markdown", "both.md", "--html", "both.html")
    assert (code, said in out.splitlines()[-1]) == (0, True)
    assert all(said in (tmp_path / name).read_text() for name in ("both.md", "both.html"))
    assert "asked in different languages (en, es)" in " ".join(medexam("compare", *folders)[1].split())


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


def test_a_run_of_two_models_is_marked_and_no_baseline(medexam, tmp_path) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_sample", limit=20))
    keys = [question.key for question in exams.questions]
    model = {"engine": "vllm", "name": "A"}
    for kind, second in (("chain_of_thought", "B"), ("zero_shot", "A")):

        def answer(question, gold, second=second):
            who = "A" if keys.index(question.key) < 15 else second
            return {"status": Status.ANSWERED, "answer": gold, "reply": "x", "model": who}

        write_run(tmp_path / "two" / kind, exams, {"kind": kind}, answer, model=model, dataset={"limit": 20})
    said = "the run chain_of_thought mixes models and is not ranked: 15 answers of A, 5 of B"
    code, out, err = medexam("compare", tmp_path / "two", "--markdown", "two.md")
    assert (code, err.splitlines()[-1]) == (0, f"medexam: warning: {said}")
    for text in (out, (tmp_path / "two.md").read_text()):
        assert "chain_of_thought (mixed models)" in " ".join(text.split())
    document = compared(medexam, tmp_path / "two")
    assert (document["baseline"], document["notes"]) == ("zero_shot", [said])
    assert [each["mixed"] for each in document["runs"]] == [False, True]
    _, out, _ = medexam("report", tmp_path / "two" / "chain_of_thought")
    assert said[1:] in " ".join(out.split())


def test_an_ensemble_of_stored_runs_is_scored_and_tested_against_each(medexam, refused, stored) -> None:
    folders = [stored(kind, name="members") for kind in ("longest", "blind", "random")]
    before = sorted(folders[0].parent.rglob("*"))
    document = compared(medexam, *folders, "--ensemble", "vote")
    assert (document["baseline"], document["runs"][0]["run_dir"]) == ("ensemble3-vote", None)
    exams = load_exam_set(DatasetSpec(name="headqa_sample"))
    answers = [RunFolder(folder).read_predictions() for folder in folders]
    right = []
    for question in exams.questions:
        votes = [of[question.key].answer for of in answers]
        # The options' mean probability is their share of the votes, so of equals the first member's counts.
        winner = max(votes, key=lambda answer: (Counter(votes)[answer], -votes.index(answer)))
        right.append(exams.golds[question.key].accepts(winner))
    assert document["runs"][0]["metrics"]["right"] == sum(right)
    for of, run, pair in zip(answers, document["runs"][1:], document["pairs"], strict=True):
        its = [exams.golds[question.key].accepts(of[question.key].answer) for question in exams.questions]
        assert run["metrics"]["right"] == sum(its)
        gained = sum(one and not other for one, other in zip(its, right, strict=True))
        lost = sum(other and not one for one, other in zip(its, right, strict=True))
        assert pair["p"] == pytest.approx(binomtest(gained, gained + lost).pvalue if gained + lost else 1.0)
    assert {path for path in before if ".lock" not in path.name} >= {
        path for path in folders[0].parent.rglob("*") if ".lock" not in path.name
    }, "nothing is stored"
    ensemble = stored("ensemble", name="members")
    line = refused("compare", folders[0], ensemble, "--ensemble", "vote")
    assert "needs two runs or more, and none of them may be an ensemble" in line


@pytest.fixture(scope="module")
def extraction(tmp_path_factory):
    """Three runs of extraction, by what the model quotes, and one of an exam -> their folders by name."""
    home = tmp_path_factory.mktemp("extraction")
    cases = write_cases(home / "cases", 10)
    right = {f"Answer {n:02d}": CLAIM.format(n=n) for n in range(10)}
    replies = {
        "claim": right,
        "rest": {"*": REST},
        "torn": {"Answer 03": {"error": "context"}, "Answer 04": "what is not there", **right},
    }
    dataset = {"name": "casimedicos_spans", "split": "test", "path": str(cases), "variants": ["CQ#E", "Q#CE"]}
    specs = {"exam": {"dataset": {"name": "headqa_sample", "limit": 4}, "program": "random"}}
    for name, table in replies.items():
        (home / f"{name}.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
        model = {"engine": "scripted", "path": str(home / f"{name}.yaml")}
        specs[name] = {"dataset": dataset, "model": model, "program": {"kind": "extract_explanation"}}
    for name, spec in specs.items():
        package.run({"name": name, **spec}, runs_dir=home / "runs", track=False)
    return {name: next((home / "runs").glob(f"{name}-*")) for name in specs}


def test_answers_in_words_are_compared_measure_by_measure(medexam, extraction, tmp_path) -> None:
    code, out, err = medexam("compare", extraction["rest"], extraction["claim"])
    plain = " ".join(out.split())
    assert (code, err) == (0, "")
    assert "20 questions, variants of 10, of casimedicos_spans en: those that both runs scored. None dropped." in plain
    assert "in Components: F1: +100.0 [100.0, 100.0] percentage points, p = 0.002, 0.010 after Holm." in plain
    folders = [extraction[name] for name in ("rest", "torn", "claim")]
    document = compared(medexam, *folders, "--markdown", "compare.md")
    reported = json.loads(medexam("report", *folders, "--json")[1])
    assert [each["metrics"] for each in document["runs"]] == [each["metrics"] for each in reported]
    for pair, each in zip(document["pairs"], reported[1:], strict=True):
        for name, measure in pair["measures"].items():
            assert measure["other"] == pytest.approx(each["metrics"]["measures"][name]["value"])
    assert (tmp_path / "compare.md").read_text().startswith("# ")


def test_what_cannot_be_compared_is_one_line_with_a_way_out(refused, stored, extraction, tmp_path) -> None:
    first, medicine = stored("random"), stored("longest", name="medicine")
    claim, exam = extraction["claim"], extraction["exam"]
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        ((first,), "give the baseline and one run or more"),
        ((first, first), "name each run once"),
        ((first, "nowhere"), "no run at"),
        ((first, tmp_path / "empty"), "give a run folder, or a folder that holds run folders"),
        ((stored("random", name="biology"), medicine), "not in every run"),
        ((first, medicine, "--equivalent-within", "0"), "over 0 and under 100"),
        ((first, medicine, "--cutoff", "soon"), "such as 2023 or 2023-06"),
        ((first, medicine, "--strengths"), "three runs or more"),
        ((first, medicine, "--item-response"), "three runs or more"),
        ((first, medicine, "--ensemble", "vote", "--track"), "--ensemble compares runs as they are and stores nothing"),
        ((claim,), "give the baseline and one run or more"),
        ((claim, exam), "the runs asked different data sets: casimedicos_spans"),
        ((claim, extraction["rest"], "--languages"), "their measures are compared in any language"),
    ):
        assert said in refused("compare", *arguments)
