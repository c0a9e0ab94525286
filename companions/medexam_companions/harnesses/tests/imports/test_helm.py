"""Runs imported from files that HELM's own runner wrote, beside HELM's numbers."""

import json
import zipfile
from pathlib import Path

import pytest

from medexam_companions.harnesses import ResultsError

LOGS = Path(__file__).parent / "logs"
MEASURES = ["exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"]


@pytest.fixture
def helm(tmp_path):
    with zipfile.ZipFile(LOGS / "helm_run.zip") as archive:
        archive.extractall(tmp_path / "helm")
    return tmp_path / "helm"


@pytest.fixture
def read(sample_importer, take):
    return lambda path: take(sample_importer, path)


def _load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_each_measure_of_a_run_has_the_score_that_helm_states(helm, read) -> None:
    state = _load(helm / "scenario_state.json")
    # The copies that HELM perturbed may stand first.
    state["request_states"].reverse()
    (helm / "scenario_state.json").write_text(json.dumps(state))
    found = read(helm / "scenario_state.json")
    assert list(found) == MEASURES
    stats = _load(helm / "stats.json")
    asked = {each["id"]: each for each in _load(helm / "instances.json") if "perturbation" not in each}
    replies = {
        each["instance_id"]: each for each in _load(helm / "display_predictions.json") if "perturbation" not in each
    }
    for measure, one in found.items():
        (stated,) = [
            each["mean"] for each in stats if each["name"]["name"] == measure and "perturbation" not in each["name"]
        ]
        assert one.metrics.measure("accuracy").value == one.environment["imported"]["stated"] == stated == 0.25
        # The 20 copies that HELM perturbed are no questions of the exam.
        assert (one.environment["imported"]["samples"], one.environment["imported"]["by"]) == (20, {"key": 20})
        assert one.model == "drawn/letters"
        predictions = one.folder.read_predictions()
        for name, instance in asked.items():
            extra = instance["extra_data"]
            said = predictions[f"headqa-v1/{extra['year']}/{extra['category']}/{extra['id']}"]
            texts = [each["output"]["text"] for each in instance["references"]]
            mapped = replies[name].get("mapped_output")
            assert said.answer == (None if mapped is None else texts.index(mapped) + 1)
            assert said.reply == replies[name]["predicted_text"]
            assert (said.reason == "unparsed") == (mapped is None)


def test_options_that_are_asked_one_by_one_are_one_question(helm, read) -> None:
    """As the adapter `multiple_choice_separate_original` writes them: a request for each option."""
    state, stats = (_load(helm / name) for name in ("scenario_state.json", "per_instance_stats.json"))
    states = [each for each in state["request_states"] if "perturbation" not in each["instance"]]
    state["request_states"] = []
    for each in states:
        del each["output_mapping"]
        for index in range(len(each["instance"]["references"])):
            state["request_states"].append({**each, "reference_index": index, "request_mode": "original"})
    # The second option is chosen always, and of the first question two options score alike.
    for each in stats:
        right = next(one["instance"] for one in states if one["instance"]["id"] == each["instance_id"])["references"]
        value = float("correct" in right[1]["tags"]) if each["instance_id"] != "id0" else 0.5
        each["stats"] = [
            {"name": {"name": name, "split": "test"}, "mean": mean}
            for name, mean in (("predicted_index", 1.0), ("exact_match", value), ("num_references", 4.0))
        ]
    (helm / "scenario_state.json").write_text(json.dumps(state))
    (helm / "per_instance_stats.json").write_text(json.dumps(stats))
    one = read(helm / "scenario_state.json")["exact_match"]
    assert {said.answer for said in one.folder.read_predictions().values()} == {2}
    told = one.environment["imported"]
    assert (told["samples"], told["matched"]) == (20, 20)
    assert one.metrics.right == sum("correct" in each["instance"]["references"][1]["tags"] for each in states)


def test_a_request_that_failed_is_left_out_and_trials_are_apart(helm, read) -> None:
    state, stats = (_load(helm / name) for name in ("scenario_state.json", "per_instance_stats.json"))
    state["request_states"][0]["result"] = {"success": False, "completions": [], "cached": False}
    state["request_states"] += [{**each, "train_trial_index": 1} for each in state["request_states"][2:]]
    stats += [{**each, "train_trial_index": 1} for each in stats[2:]]
    (helm / "scenario_state.json").write_text(json.dumps(state))
    (helm / "per_instance_stats.json").write_text(json.dumps(stats))
    found = read(helm / "scenario_state.json")
    first, second = (found[f"exact_match-trial-{trial}"] for trial in (1, 2))
    assert [(one.environment["imported"]["failed"], one.metrics.n) for one in (first, second)] == [(1, 19), (0, 19)]


def test_a_file_without_the_verdicts_beside_it_is_refused(helm, read) -> None:
    (helm / "per_instance_stats.json").unlink()
    with pytest.raises(ResultsError, match=r"not in the format of HELM, or not whole .*per_instance_stats.json"):
        read(helm / "scenario_state.json")
