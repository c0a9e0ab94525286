"""`medexam compare` as a user meets it, on real runs of the packaged sample."""

import json
import shutil
from pathlib import Path

import pytest
from mlflow import MlflowClient

import medexam as package
from medexam.datasets import load_exam_set
from medexam.experiments import RunFolder, rescore
from medexam.experiments.compare.flows import find_flows
from medexam.predictions import Status
from medexam.specs import DatasetSpec
from stored_runs import write_run


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory):
    """Runs of the controls, made once for all tests; those of one discipline lie beside them."""
    home = tmp_path_factory.mktemp("controls")
    spec = {
        "name": "controls",
        "dataset": {"name": "headqa_sample"},
        "program": {"kind": "random"},
        "matrix": {"program.kind": ["random", "longest", "blind"], "dataset.language": ["en", "es"]},
    }
    one_discipline = {**spec, "name": "medicine", "matrix": {"program.kind": ["random", "longest"]}}
    one_discipline["dataset"] = {**spec["dataset"], "disciplines": ["medicine"]}
    another = {**one_discipline, "name": "biology", "dataset": {**spec["dataset"], "disciplines": ["biology"]}}
    for document in (spec, one_discipline, another):
        package.run(document, runs_dir=home / document["name"], track=False)
    return home / "controls"


@pytest.fixture
def run(runs_dir):
    """`run("longest")` -> the folder of that control's run; `name` chooses the questions."""

    def find(kind: str, language: str = "en", name: str = "controls"):
        (found,) = (runs_dir.parent / name).glob(f"{name}-{kind}*-{language}-*")
        return found

    return find


def test_a_gate_fails_and_passes_with_its_exit_code(medexam, run, tmp_path) -> None:
    code, _, err = medexam(
        "compare", run("random"), run("longest"), "--fail-if", "worse:1", "--junit", tmp_path / "j.xml"
    )
    assert (code, "FAILED: longest may be worse than random by 1.0 percentage points or more" in err) == (1, True)
    assert 'failures="1"' in (tmp_path / "j.xml").read_text()
    code, _, err = medexam("compare", run("random"), run("longest"), "--fail-if", "worse:50")
    assert (code, "passed: longest is not worse than random by 50.0 percentage points" in err) == (0, True)
    code, _, err = medexam("compare", run("random"), run("longest"), "--junit", tmp_path / "j.xml")
    assert (code, "give --fail-if worse:POINTS with it" in err) == (2, True)


def test_exams_before_and_after_a_cutoff_are_set_against_the_baseline(medexam, run, tmp_path) -> None:
    asked = ("compare", run("random"), run("longest"), "--cutoff", "2015")
    code, out, _ = medexam(*asked, "--markdown", tmp_path / "compare.md")
    title = "Contamination: before and after the cutoff 2015"
    assert (code, title in out, f"## {title}" in (tmp_path / "compare.md").read_text()) == (0, True, True)
    found = json.loads(medexam(*asked, "--json")[1])
    around = found["contamination"]["cutoff"]
    assert around["before"]["n"] + around["after"]["n"] == found["questions"]
    name = found["pairs"][0]["run"]
    for key, of in around["difference"].items():
        accuracies = [around[side]["mean"][key] for side in ("before", "after")]
        assert of["value"] == pytest.approx(accuracies[0] - accuracies[1], abs=1e-12)
    assert list(around["against_control"]) == [name]
    code, _, err = medexam(*asked[:-1], "soon")
    assert (code, err.count("\n"), "such as 2023 or 2023-06" in err) == (2, 1, True)


def test_equivalence_is_tested_against_a_margin(medexam, run, tmp_path) -> None:
    both = run("random"), run("longest")
    asked = ("compare", *both, "--equivalent-within", "40", "--fail-if", "worse:50")
    code, out, _ = medexam(*asked, "--markdown", tmp_path / "compare.md")
    said = "longest is equivalent to random within 40.0 percentage points"
    assert (code, said in " ".join(out.split()), said in (tmp_path / "compare.md").read_text()) == (0, True, True)
    document = json.loads(medexam(*asked, "--json")[1])
    name = document["pairs"][0]["run"]
    tested = document["equivalence"]["pairs"][name]
    assert (document["equivalence"]["margin"], tested["verdict"]) == (0.4, "equivalent")
    assert tested["p"] == tested["p_holm"] == max(tested["p_worse"], tested["p_better"]) < 0.025
    assert tested["interval"][0] < document["pairs"][0]["accuracy"]["value"] < tested["interval"][1]
    gate = document["non_inferiority"]["pairs"][name]
    assert (gate["passed"], gate["bound"]) == (True, tested["interval"][0])
    code, out, _ = medexam("compare", *both, "--equivalent-within", "1")
    assert (code, "longest is not shown to be equivalent to random within 1.0" in " ".join(out.split())) == (0, True)
    assert "over 0 and under 100" in _one_line(*medexam("compare", *both, "--equivalent-within", "0"))
    assert "without --languages" in _one_line(*medexam("compare", *both, "--languages", "--equivalent-within", "1"))


def test_many_runs_are_set_in_an_order(medexam, run, tmp_path) -> None:
    runs = [run(kind) for kind in ("random", "longest", "blind")]
    code, out, _ = medexam("compare", *runs, "--strengths", "--markdown", tmp_path / "compare.md")
    said = "0 of 3 pairs of runs are separable in strength"
    assert (code, said in " ".join(out.split()), said in (tmp_path / "compare.md").read_text()) == (0, True, True)
    document = json.loads(medexam("compare", *runs, "--strengths", "--json")[1])
    found = list(document["strengths"]["runs"].values())
    assert sum(each["strength"] for each in found) == pytest.approx(0)
    assert sum(each["wins"] for each in found) == sum(each["losses"] for each in found)
    first, second, _ = document["strengths"]["runs"]
    assert second in found[0]["not_separable"]
    assert document["runs"][0]["key"] == first
    assert "three runs or more" in _one_line(*medexam("compare", *runs[:2], "--strengths"))


def test_questions_are_judged_by_runs_and_a_weak_fit_is_said_to_be(medexam, run, tmp_path) -> None:
    runs = [run(kind, language) for kind in ("random", "longest", "blind") for language in ("en", "es")]
    code, out, _ = medexam("compare", *runs, "--item-response", "--markdown", tmp_path / "compare.md")
    said = "The fit is weak: it has 6 runs and needs 100 or more"
    assert (code, said in " ".join(out.split()), said in (tmp_path / "compare.md").read_text()) == (0, True, True)
    document = json.loads(medexam("compare", *runs, "--item-response", "--json")[1])
    found = document["item_response"]
    assert (found["weak"], len(found["strong"])) == (True, 3)
    assert list(found["abilities"]) == [each["key"] for each in document["runs"]]
    assert len(found["questions"]) == document["questions"]
    assert sum(each["right"] for each in found["questions"].values()) == sum(
        each["metrics"]["right"] for each in document["runs"]
    )
    never = [each for each in found["questions"].values() if each["right"] == 0]
    assert len(never) == document["together"]["none_right"]
    assert "Suspicious questions to review" in out
    assert "three runs or more" in _one_line(*medexam("compare", *runs[:2], "--item-response"))


def test_a_subset_is_chosen_by_runs_and_can_be_asked_alone(medexam, run, tmp_path) -> None:
    runs = [run(kind, language) for kind in ("random", "longest", "blind") for language in ("en", "es")]
    code, out, _ = medexam("compare", *runs, "--subset", 30, "--json")
    found = json.loads(out)["subset"]
    assert (code, len(set(found["questions"]))) == (0, 30)
    (tmp_path / "chosen.json").write_text(out)
    setting = f"dataset.only={tmp_path / 'chosen.json'}"
    _, out, _ = medexam("run", "quickstart", "--set", "program=longest", "--set", setting, "--json")
    asked = RunFolder(Path(json.loads(out)[0]["run_dir"])).read_record()
    assert sorted(asked.questions) == sorted(found["questions"])
    assert asked.spec_digest == RunFolder(run("longest")).read_record().spec_digest
    assert "four runs or more" in _one_line(*medexam("compare", *runs[:2], "--subset", 30)).replace("4", "four")
    assert "from 2 to 119" in _one_line(*medexam("compare", *runs, "--subset", 120))


def test_any_run_of_a_folder_can_be_the_baseline(medexam, run, runs_dir) -> None:
    chosen = run("blind").name.rpartition("-")[2]
    _, out, _ = medexam(
        "compare", run("random"), run("longest"), run("blind"), "--baseline", chosen, "--runs-dir", runs_dir
    )
    assert "Against blind" in out
    _, out, _ = medexam("report", runs_dir, "--baseline", chosen, "--runs-dir", runs_dir, "--json")
    assert json.loads(out)[0]["run_id"] == run("blind").name


def test_controls_are_compared_on_the_terminal(medexam, run, runs_dir) -> None:
    folders = [run("random"), run("longest"), run("blind")]
    code, out, err = medexam("compare", *folders)
    assert (code, err) == (0, "")
    plain = " ".join(out.split())
    assert "those that all 3 runs scored. None dropped." in plain
    assert "longest shows no difference from random in accuracy" in plain
    assert "better" not in plain
    code, by_id, _ = medexam("compare", *(folder.name for folder in folders), "--runs-dir", runs_dir)
    assert (code, by_id) == (0, out)


def test_json_agrees_with_the_stored_runs(medexam, run, tmp_path) -> None:
    folders = run("random"), run("longest")
    code, out, err = medexam("compare", *folders, "--json", "--markdown", tmp_path / "compare.md")
    document = json.loads(out)
    assert (code, [each["run_dir"] for each in document["runs"]]) == (0, [str(folder) for folder in folders])
    assert "wrote" in err
    assert (tmp_path / "compare.md").read_text().startswith("# longest against random\n")
    mine, its = (each["metrics"] for each in json.loads(medexam("report", *folders, "--json")[1]))
    assert [each["metrics"] for each in document["runs"]] == [mine, its]
    (pair,) = document["pairs"]
    for score in ("accuracy", "exam_score", "points"):
        assert pair[score]["value"] == pytest.approx(its[score] - mine[score])
    assert pair["right_to_wrong"] + pair["both_right"] == mine["right"]
    assert pair["wrong_to_right"] + pair["both_right"] == its["right"]
    assert len(document["flipped"]) == pair["right_to_wrong"] + pair["wrong_to_right"]


def test_only_common_questions_are_compared(medexam, run) -> None:
    code, out, _ = medexam("compare", run("random"), run("longest", name="medicine"), "--json")
    document = json.loads(out)
    assert (code, list(document["pairs"][0]["by_discipline"])) == (0, ["medicine"])
    assert document["dropped"]["not_in_every_run"] == document["runs"][0]["asked"] - document["questions"] > 0


def test_two_languages_are_compared_question_by_question(medexam, run) -> None:
    code, out, _ = medexam("compare", run("longest"), run("longest", "es"))
    assert code == 0
    assert "asked in different languages (en, es)" in " ".join(out.split())
    assert "longest es shows no difference from longest en" in " ".join(out.split())


def test_of_many_runs_the_breakdowns_are_left_to_files(medexam, run, tmp_path) -> None:
    both = [run(kind, language) for language in ("en", "es") for kind in ("random", "longest")]
    code, out, _ = medexam("compare", *both, "--markdown", tmp_path / "compare.md")
    assert (code, "by discipline" in out.replace("breakdowns by discipline", "")) == (0, False)
    assert (tmp_path / "compare.md").read_text().count(", by discipline\n") == 3


def test_track_sends_the_comparison_beside_the_runs(medexam, run, runs_dir, tmp_path) -> None:
    folders = run("random"), run("longest")
    code, out, err = medexam("compare", *folders, "--track", "--json")
    assert (code, json.loads(out)["baseline"]) == (0, folders[0].name)
    assert f"sent to sqlite:///{runs_dir}/mlflow.db" in err
    (tmp_path / "file").write_text("")
    code, out, err = medexam("compare", *folders, "--json", "--tracking-uri", f"sqlite:///{tmp_path}/file/mlflow.db")
    assert (code, json.loads(out)["baseline"]) == (2, folders[0].name)
    assert "compare again with --track" in err


def _one_line(code: int, out: str, err: str) -> str:
    assert (code, out) == (2, "")
    assert err.startswith("medexam: ")
    assert err.count("\n") == 1
    return err


def test_bad_input_is_one_line_with_a_way_out(medexam, run, tmp_path) -> None:
    first, other = run("random", name="biology"), run("longest", name="medicine")
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        ((first,), "give the baseline and one run or more"),
        ((first, first), "name each run once"),
        ((first, "nowhere"), "no run at"),
        ((first, tmp_path / "empty"), "give a run folder, or a folder that holds run folders"),
        ((first, other), "not in every run"),
    ):
        assert said in _one_line(*medexam("compare", *arguments))


def test_runs_of_different_data_sets_are_refused(medexam, run, tmp_path) -> None:
    other = shutil.copytree(run("longest"), tmp_path / "other")
    document = json.loads((other / "spec.json").read_text())
    document["cell"]["dataset"]["name"] = "headqa_v2"
    (other / "spec.json").write_text(json.dumps(document))
    said = _one_line(*medexam("compare", run("random"), other))
    assert "different data sets: headqa_sample" in said
    assert "compare runs of one data set" in said


def test_no_run_at_all_is_a_usage_error(medexam) -> None:
    code, out, err = medexam("compare")
    assert (code, out) == (2, "")
    assert "no run at runs: give a run folder" in err


def test_languages_write_and_track_what_is_asked_for(medexam, run, tmp_path, empty_store) -> None:
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    narrowed = shutil.copytree(run("longest", "es"), tmp_path / "longest-es")
    lines = (narrowed / "predictions.jsonl").read_text().splitlines(keepends=True)
    (narrowed / "predictions.jsonl").write_text("".join(lines[1:]))
    asked = ("compare", "--languages", run("longest"), narrowed)

    code, out, err = medexam(*asked, "--markdown", tmp_path / "languages.md", "--tracking-uri", uri)

    plain = " ".join(out.split())
    assert (code, "Dropped: 1 not asked yet in at least one." in plain) == (0, True)
    assert f"1 questions are pending; medexam run --resume {narrowed} asks them" in plain
    assert err.splitlines()[0] == f"wrote {tmp_path / 'languages.md'}"
    text = (tmp_path / "languages.md").read_text()
    assert "Dropped: 1 not asked yet in at least one." in text
    document = json.loads(medexam(*asked, "--json")[1])
    assert (document["dropped"]["not_asked_yet"], [each["owed"] for each in document["runs"]]) == (1, [0, 1])
    assert all(key in text for key in (*document["only_en"], *document["only_es"]))
    client = MlflowClient(tracking_uri=uri)
    (sent,) = client.search_runs([client.get_experiment_by_name("controls").experiment_id])
    assert sent.info.run_name == "compare languages longest es with longest en"
    assert (sent.data.metrics["n"], sent.data.metrics["both_right"]) == (document["questions"], document["both_right"])
    assert sent.data.metrics["only_en"] == len(document["only_en"])


def test_two_folders_of_one_id_stay_two_runs(medexam, run, tmp_path) -> None:
    folders = [shutil.copytree(run(kind), tmp_path / at / "same") for at, kind in (("a", "random"), ("b", "longest"))]
    for folder in folders:
        record = json.loads((folder / "spec.json").read_text())
        (folder / "spec.json").write_text(json.dumps(record | {"run_id": "same"}))
    document = json.loads(medexam("compare", *folders, "--json")[1])
    keys = [str(folder) for folder in folders]
    assert (document["baseline"], [each["key"] for each in document["runs"]]) == (keys[0], keys)
    assert [each["run"] for each in document["pairs"]] == keys[1:]
    assert [list(each["answers"]) for each in document["flipped"][:2]] == [keys, keys]


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

    code, out, err = medexam("compare", tmp_path / "two", "--markdown", tmp_path / "two.md")

    assert (code, err.splitlines()[-1]) == (0, f"medexam: warning: {said}")
    for text in (out, (tmp_path / "two.md").read_text()):
        assert said[1:] in " ".join(text.split())
        assert "chain_of_thought (mixed models)" in " ".join(text.split())
    document = json.loads(medexam("compare", tmp_path / "two", "--json")[1])
    assert (document["baseline"], document["notes"]) == ("zero_shot", [said])
    assert [each["mixed"] for each in document["runs"]] == [False, True]
    runs = [rescore(RunFolder(tmp_path / "two" / kind)) for kind in ("chain_of_thought", "zero_shot")]
    assert [flow.before.record.run_id for flow in find_flows(runs)] == ["zero_shot"]
    code, out, _ = medexam("report", tmp_path / "two" / "chain_of_thought")
    assert said[1:] in " ".join(out.split())
    assert "A (15) + B (5)" in out


def test_a_report_of_two_languages_ranks_nothing_and_names_the_command_that_compares(medexam, run, tmp_path) -> None:
    folders = run("longest"), run("longest", "es")
    said = f"this compares them: medexam compare {folders[0]} {folders[1]}"
    code, out, _ = medexam("report", *folders, "--markdown", "both.md", "--html", "both.html")
    assert (code, said in out.splitlines()[-1]) == (0, True)
    assert said in (tmp_path / "both.md").read_text()
    assert said in (tmp_path / "both.html").read_text()
    code, out, _ = medexam("report", *folders, "--layout", "paper", "--markdown", "paper.md")
    assert (code, said in out, said in (tmp_path / "paper.md").read_text()) == (0, True, True)
    assert "give one of them at a time" in _one_line(
        *medexam("report", *folders, "--layout", "paper", "--html", "both.html")
    )


def test_fresh_runs_are_compared_without_their_predictions(medexam, run, tmp_path, monkeypatch) -> None:
    folders = [str(shutil.copytree(run(kind), tmp_path / run(kind).name)) for kind in ("random", "blind")]
    for folder in folders:
        (Path(folder) / "made_from.json").unlink()
    _, whole, _ = medexam("compare", *folders, "--json")
    folders = [str(run("random")), str(run("blind"))]
    monkeypatch.setattr(RunFolder, "read_predictions", lambda _: pytest.fail("the predictions were read"))
    _, fresh, _ = medexam("compare", *folders, "--json")
    assert _without_folders(json.loads(fresh)) == _without_folders(json.loads(whole))


def _without_folders(document):
    return {**document, "runs": [{**run, "run_dir": None} for run in document["runs"]]}
