"""Comparisons of runs that answer in words, on real run folders over small files in CasiMedicos-Arg's form."""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_1samp

from case_files import CLAIM, REST, write_cases
from medexam.cli.views.output import write_file
from medexam.companions.item_response.questions import find_item_response
from medexam.companions.item_response.strengths import find_strengths
from medexam.datasets import load_task_set
from medexam.errors import DatasetError, SpecError
from medexam.experiments import RunFolder, compare_runs, paired_report, rescore, verdicts
from medexam.experiments.compare.further import find_further
from medexam.experiments.compare.margins import Equivalence
from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import find_compared
from medexam.experiments.report.comparison_tables import comparison_lines, comparison_tables
from medexam.experiments.track.comparisons import track_comparison
from medexam.predictions import Failure, Reason, Status
from medexam.questions import Task
from medexam.specs import CellSpec, DatasetSpec
from stored_runs import write_run
from terminal import draw

Answer = Callable[[Task, int], str]
"""A task and its place -> the text that is quoted; `u`, `f` and `m`: unanswered, failed, missing."""


@pytest.fixture
def cases(tmp_path) -> Path:
    return write_cases(tmp_path / "cases", 12, ("en", "es"))


@pytest.fixture
def make_run(tmp_path, cases):
    """`make_run("free", answer)` -> a run folder over the twelve cases in all variants; `dataset` adds to the spec."""

    def make(name: str, answer: Answer, **dataset: Any) -> RunFolder:
        known = {"name": "casimedicos_spans", "split": "test", "path": str(cases), **dataset}
        return _write_run(tmp_path / "runs" / name, known, {"kind": "extract_explanation"}, answer)

    return make


def _write_run(path: Path, dataset: Mapping[str, Any], program: Mapping[str, Any], answer: Answer) -> RunFolder:
    tasks = load_task_set(DatasetSpec.model_validate(dataset))
    places = {task.key: place for place, task in enumerate(tasks.questions)}
    return write_run(
        path,
        tasks,
        program,
        lambda task, _: _fields(task, answer(task, places[task.key])),
        model={"engine": "scripted", "path": f"{path.name}.yaml", "name": path.name},
        environment={"engine": {"model": path.name}},
        dataset=dataset,
        scored=False,
    )


def _fields(task: Task, said: str) -> dict[str, Any] | None:
    if said == "u":
        return {"status": Status.UNANSWERED, "reason": Reason.NOT_IN_CONTEXT, "reply": "?"}
    if said == "f":
        return {"status": Status.FAILED, "failure": Failure(kind="LMServerError", message="gone")}
    if said == "m":
        return None
    start = task.context.find(said)
    found = {} if start < 0 else {"span": (start, start + len(said)), "alignment": "literal"}
    return {"status": Status.ANSWERED, "text": said, "reply": said, **found}


def case_of(task: Task) -> int:
    return int(task.key.split("/")[2])


def claim(task: Task, place: int) -> str:
    return CLAIM.format(n=case_of(task))


def rest(task: Task, place: int) -> str:
    return REST


def half(task: Task, place: int) -> str:
    """The claim in even cases."""
    return claim(task, place) if case_of(task) % 2 == 0 else REST


def shown(comparison: Comparison, width: int = 200) -> str:
    return draw(*comparison_tables(comparison), width=width)


def test_a_run_that_finds_the_claim_is_better(make_run) -> None:
    comparison = compare_runs([make_run("rest", rest), make_run("claim", claim)])
    assert (len(comparison.questions), comparison.statistics.cluster_count, comparison.statistics.first) == (
        48,
        12,
        "component_f1",
    )
    (pair,) = comparison.statistics.pairs
    f1 = pair.measures["component_f1"]
    assert (f1.n, f1.questions, f1.baseline, f1.other, f1.verdict) == (48, 12, 0.0, 1.0, "better")
    assert f1.p == pytest.approx(2 / 2**12)
    assert pair.measures["quoted"].p == pair.measures["literal"].p == 1.0
    assert f1.p_adjusted == pytest.approx(5 * f1.p)
    assert {name: (each.n, each.p) for name, each in pair.by_group.items()} == dict.fromkeys(
        ("CQ#E", "CQP#E", "Q#CE", "QP#CE"), (12, f1.p)
    )
    assert comparison_lines(comparison) == [
        "48 questions, variants of 12, of casimedicos_spans en: those that both runs scored. None dropped."
    ]
    said = verdicts(comparison)
    assert [each.split(": +")[0].rpartition(" in ")[2] for each in said] == [
        "Components: F1",
        "Components: precision",
        "Components: recall",
    ]
    assert said[0] == (
        "extract_explanation claim is better than extract_explanation rest in Components: F1: +100.0 [100.0, 100.0] "
        "percentage points, p < 0.001, 0.002 after Holm."
    )
    (back,) = compare_runs([comparison.runs[1].folder, comparison.runs[0].folder]).statistics.pairs
    assert (back.measures["component_f1"].verdict, back.measures["component_f1"].difference.value) == ("worse", -1.0)


def test_a_margin_is_tested_on_whole_questions(make_run) -> None:
    folders = [make_run("half", half), make_run("claim", claim)]
    comparison = compare_runs(folders, find_further(equivalent_within=60))
    (found,) = comparison.sections
    assert isinstance(found, Equivalence)
    # In each of 12 whole questions all four variants differ alike: by 0 or by 1.
    differences = [0.0, 1.0] * 6
    known = ttest_1samp(differences, 0.6, alternative="less").pvalue
    assert (found.tests[0].p_better, found.tests[0].interval) == (pytest.approx(known, abs=1e-9), None)
    assert "claim is not shown to be equivalent to" in verdicts(comparison)[-1]
    assert verdicts(comparison)[-1] in paired_report(comparison)


def test_runs_in_words_have_strengths_and_no_item_response(make_run) -> None:
    folders = [make_run("rest", rest), make_run("half", half), make_run("claim", claim)]
    (found,) = compare_runs(folders, [find_strengths]).sections
    assert found.order == [2, 1, 0]
    assert [(each.wins, each.losses) for each in found.strengths] == [(0, 72), (24, 24), (72, 0)]
    with pytest.raises(SpecError, match="these runs answer in words: leave it out"):
        compare_runs(folders, [find_item_response])


def test_means_are_those_of_the_runs(make_run) -> None:
    folders = [make_run("half", half), make_run("claim", claim), make_run("rest", rest)]
    comparison = compare_runs(folders)
    baseline, *others = (rescore(folder).metrics for folder in folders)
    assert [run.metrics for run in comparison.runs] == [baseline, *others]
    for pair, metrics in zip(comparison.statistics.pairs, others, strict=True):
        for name, measure in pair.measures.items():
            assert measure.baseline == pytest.approx(baseline.measures[name].value)
            assert measure.other == pytest.approx(metrics.measures[name].value)
        for name, measure in pair.by_group.items():
            assert measure.other == pytest.approx(metrics.by_group[name]["component_f1"].value)
    assert list(comparison.names[1:]) == ["extract_explanation claim", "extract_explanation rest"]


def test_what_any_run_has_not_scored_is_dropped_and_counted(make_run) -> None:
    def some(task: Task, place: int) -> str:
        return {0: "f", 1: "m", 2: "u"}.get(place, claim(task, place))

    def more(task: Task, place: int) -> str:
        return "m" if place in (0, 3) else half(task, place)

    folders = [make_run("some", some), make_run("more", more), make_run("two", half, variants=["CQ#E", "Q#CE"])]
    comparison = compare_runs(folders)
    dropped = comparison.exclusions
    assert (dropped.not_in_every_run, dropped.failed, dropped.not_asked_yet, dropped.other_gold) == (24, 1, 0, 0)
    assert (comparison.question_counts, comparison.pending, len(comparison.questions)) == ((48, 48, 24), (2, 2, 0), 23)
    assert compare_runs(folders[:2]).exclusions.not_asked_yet == 2
    assert [run.metrics.unanswered for run in comparison.runs] == [1, 0, 0]
    assert "Dropped: 24 not in every run, 1 failed in at least one." in comparison_lines(comparison)[0]


def test_runs_without_a_common_question_are_refused(make_run) -> None:
    folders = [make_run("one", claim, variants=["CQ#E"]), make_run("other", claim, variants=["Q#CE"])]
    with pytest.raises(DatasetError, match=r"no question is scored by both runs \(Dropped: 24 not in every run\)"):
        compare_runs(folders)


def test_languages_and_versions_are_noted(make_run) -> None:
    folders = [
        make_run("en", half),
        make_run("es", claim, language="es"),
        make_run("old", claim),
        make_run("older", claim),
    ]
    for number, folder in enumerate(folders[2:]):
        record = folder.read_record()
        old = {"schema": 1, "dataset_golds": None, "dataset_fingerprint": f"{number}" * 64}
        folder.write_record(dataclasses.replace(record, **old))
    comparison = compare_runs(folders)
    first, second = comparison.notes
    assert "different languages (en, es)" in first
    assert "the runs in en read 2 different versions of the data" in second
    assert comparison.exclusions.total == 0
    assert "of casimedicos_spans en, es:" in comparison_lines(comparison)[0]


def test_a_task_whose_right_answer_differs_is_dropped(make_run, tmp_path) -> None:
    other = write_cases(tmp_path / "relabelled", 12, label="Claim")
    path = other / "EN" / "test.tsv"
    path.write_text(path.read_text().replace("I-Claim", "B-Claim", 1))
    one, two = make_run("one", half), make_run("two", claim, path=str(other))
    with pytest.raises(DatasetError, match="48 with another right answer"):
        compare_runs([one, two])
    write_cases(other, 12)
    path.write_text(path.read_text().replace("B-Premise", "O", 1))
    comparison = compare_runs([one, make_run("three", claim, path=str(other))])
    assert (comparison.exclusions.other_gold, len(comparison.questions)) == (4, 44)
    assert "2 different versions" in comparison.notes[0]


def test_spans_with_answers_are_compared_by_f1(tmp_path) -> None:
    def item(n: int, answer: str) -> dict[str, Any]:
        context = f"{CLAIM.format(n=n)} {REST}"
        answers = {"text": [answer.format(n=n)], "answer_start": [context.index(answer.format(n=n))]}
        return {"id": f"case-{n}", "title": "", "question": "Why?", "context": context, "answers": answers}

    file = tmp_path / "spans.jsonl"
    file.write_text("".join(json.dumps(item(n, CLAIM)) + "\n" for n in range(9)))

    def first_words(task: Task, place: int) -> str:
        return task.context[: 9 + 8]

    dataset = {"name": "casimedicos_spans", "path": str(file)}
    program = {"kind": "extract_explanation"}
    folders = [
        _write_run(tmp_path / name, dataset, program, answer)
        for name, answer in (("part", first_words), ("rest", rest))
    ]
    comparison = compare_runs(folders)
    (pair,) = comparison.statistics.pairs
    assert list(pair.measures)[:4] == ["f1", "exact_match", "f1_spanish", "exact_match_spanish"]
    assert (pair.measures["f1"].verdict, pair.measures["exact_match"].p) == ("worse", 1.0)
    assert list(pair.by_group) == ["given"]
    assert "by group" not in shown(comparison)
    assert "The intervals resample 9 whole questions only and are rough." in comparison_lines(comparison)


def test_tables_hold_both_means_and_every_difference(make_run) -> None:
    comparison = compare_runs([make_run("half", half), make_run("claim", claim)])
    text = shown(comparison)
    assert "Scores on the same questions" in text
    assert "claim against extract_explanation half, by group" in " ".join(text.split())
    row = next(line for line in text.splitlines() if "Components: F1" in line and "+50.0" in line)
    assert row.split()[2:6] == ["48", "50.0", "100.0", "+50.0"]
    assert "adjusted by Holm for all measures." in " ".join(text.split())
    narrow = shown(comparison, 60)
    assert max(map(len, narrow.splitlines())) <= 60


def test_of_many_pairs_the_groups_are_left_to_files(make_run) -> None:
    runs = [make_run(name, answer) for name, answer in (("a", half), ("b", claim), ("c", rest), ("d", half))]
    comparison = compare_runs(runs)
    text = shown(comparison)
    assert "by group" not in text
    assert "measures and runs" in " ".join(text.split())
    assert paired_report(comparison).count(", by group\n") == 3


def test_json_holds_what_the_tables_round(make_run) -> None:
    comparison = compare_runs([make_run("half", half), make_run("claim", claim)])
    document = json.loads(json.dumps(comparison.document()))
    assert (document["questions"], document["whole_questions"], document["baseline"]) == (48, 12, "half")
    assert document["interval"]["clusters"] == "whole questions"
    assert [run["metrics"]["n"] for run in document["runs"]] == [48, 48]
    (pair,) = document["pairs"]
    assert (pair["measure"], pair["verdict"]) == ("component_f1", pair["measures"]["component_f1"]["verdict"])
    f1 = pair["measures"]["component_f1"]
    assert set(f1) == {"n", "questions", "baseline", "other", "difference", "p", "p_holm", "verdict"}
    assert (f1["n"], f1["difference"]["value"], f1["p"]) == (48, 0.5, pytest.approx(2 / 2**6))
    assert set(pair["by_group"]) == {"CQ#E", "CQP#E", "Q#CE", "QP#CE"}


def test_markdown_holds_it_all(make_run, tmp_path) -> None:
    comparison = compare_runs([make_run("rest", rest), make_run("claim", claim)])
    text = paired_report(comparison)
    assert text.startswith("# extract_explanation claim against extract_explanation rest\n")
    for part in ("- ", "## Scores on the same questions", ", by group", "## Runs", "| Components: F1 | 48 | 0.0 |"):
        assert part in text
    assert "**+100.0 [100.0, 100.0]**" in text
    write_file(text, tmp_path / "compare.md")
    assert (tmp_path / "compare.md").read_text() == text


def test_mlflow_receives_the_differences_once(make_run, uri, client) -> None:
    comparison = compare_runs([make_run("half", half), make_run("claim", claim), make_run("rest", rest)])
    run_id = track_comparison(comparison, tracking_uri=uri)
    assert track_comparison(comparison, tracking_uri=uri) == run_id
    sent = client.get_run(run_id)
    assert sent.data.metrics == pytest.approx(comparison.values())
    f1 = comparison.statistics.pairs[1].measures["component_f1"]
    assert sent.data.metrics["component_f1_difference.2"] == pytest.approx(f1.difference.value)
    assert sent.data.metrics["component_f1_p_holm.2"] == pytest.approx(f1.p_adjusted)
    assert sent.data.metrics["component_f1_difference_low.2"] == pytest.approx(f1.difference.interval[0])
    assert sent.data.tags["medexam.kind"] == "comparison"
    assert sent.data.tags["medexam.run.0"] == "half"
    assert {each.path for each in client.list_artifacts(run_id)} == {"compare.json", "compare.md"}


def test_the_real_cliniqlink_sample(tmp_path) -> None:
    """The right answers against a fixed word, over all seven formats."""
    if "MEDEXAM_DATA" not in os.environ:
        pytest.skip("MEDEXAM_DATA names no folder that holds cliniqlink")
    pytest.importorskip("sentence_transformers")
    dataset = {"name": "cliniqlink", "limit": 16}
    program = {"kind": "by_format"}
    cell = CellSpec.model_validate({"name": "demo", "dataset": dataset, "program": program})
    golds = load_task_set(cell.dataset).golds

    def right(task: Task, place: int) -> str:
        return ", ".join(golds[task.key].answers)

    folders = [
        _write_run(tmp_path / name, dataset, program, answer)
        for name, answer in (("same", lambda task, place: "True"), ("right", right))
    ]
    comparison = compare_runs(folders)
    (pair,) = comparison.statistics.pairs
    assert list(pair.measures)[:2] == ["paper", "published"]
    for at, side in enumerate(("baseline", "other")):
        by_group = comparison.runs[at].metrics.by_group
        assert list(pair.by_group) == list(by_group)
        found = {name: getattr(measure, side) for name, measure in pair.by_group.items()}
        assert found == pytest.approx({name: measures["paper"].value for name, measures in by_group.items()})
        weighed = sum(found[name] * measure.n for name, measure in pair.by_group.items())
        assert getattr(pair.measures["paper"], side) == pytest.approx(weighed / len(comparison.questions))
    assert pair.measures["paper"].verdict == "better"
    assert "Paper, Published: in the table above every format has the same weight" in " ".join(
        shown(comparison).split()
    )


def test_runs_are_found_as_those_of_exams(make_run, tmp_path) -> None:
    make_run("half", half), make_run("claim", claim)
    assert [folder.name for folder in find_compared([tmp_path / "runs"])] == ["claim", "half"]
