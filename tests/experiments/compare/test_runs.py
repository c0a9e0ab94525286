"""Stored runs side by side: which questions are compared, what is said of them, and where it goes."""

import dataclasses
import json
import re

import pytest

from medexam.benchmarks.choice import benchmark as choice
from medexam.cli.views.output import write_file
from medexam.errors import DatasetError, RunFolderError, SpecError, TrackingError
from medexam.experiments import compare_runs, paired_report, verdicts
from medexam.experiments.compare.runs import find_compared
from medexam.experiments.report.comparison_tables import comparison_lines, comparison_tables
from medexam.experiments.track.comparisons import track_comparison
from medexam.questions import AnswerKey, Gold
from stored_runs import made_up_exams
from terminal import draw

ZERO_SHOT = {"kind": "zero_shot"}
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}
REASONING = {"kind": "chain_of_thought"}


@pytest.fixture
def data_set(exam_questions, answer_key, monkeypatch):
    """The questions of `make_run` in the place of the data set on disk; gives the key of each language."""
    keys = {"en": answer_key, "es": answer_key}

    def load(spec):
        return dataclasses.replace(made_up_exams(exam_questions, keys[spec.language]), language=spec.language)

    monkeypatch.setattr(choice, "load_exam_set", load)
    return keys


@pytest.fixture
def compare(data_set):
    return lambda *runs: compare_runs([run.folder for run in runs])


def _narrow(run, questions) -> None:
    """As if the run had been asked for these questions only."""
    record = run.folder.read_record()
    run.folder.write_record(dataclasses.replace(record, questions=tuple(questions)))


def test_a_pair_on_all_questions(compare, make_run) -> None:
    found = compare(make_run(ZERO_SHOT, "rwwww"), make_run(REASONING, "rrwwu"))
    assert (len(found.questions), found.statistics.size["exams"], found.exclusions.total, found.notes) == (20, 4, 0, ())
    assert found.names == ("zero_shot", "chain_of_thought")
    (pair,) = found.statistics.pairs
    assert (pair.paired.baseline_accuracy, pair.paired.accuracy.value) == (0.2, pytest.approx(0.2))
    assert (len(pair.paired.flips.wrong_to_right), pair.paired.flips.right_to_wrong) == (4, ())
    assert pair.p_adjusted == pair.paired.flips.p == 2 / 2**4
    # Every exam gains one question of five, so that whole exams say nothing; four flips are too few for the test.
    assert pair.paired.accuracy.resampled == "questions within exams"
    assert pair.paired.accuracy.interval == pytest.approx((0.05, 0.4))
    assert pair.verdict == "not told apart"
    assert {name: group.paired.n for name, group in pair.by_discipline.items()} == {"biology": 10, "medicine": 10}
    assert list(pair.by_year) == ["2013", "2015"]
    assert [(each.gold, each.answers) for each in found.statistics.flipped] == [(1, (2, 1))] * 4
    assert (found.statistics.together.any_right, found.statistics.together.alone_right) == (8, (0, 4))


def test_only_questions_that_all_have_scored_are_compared(compare, make_run, exam_questions) -> None:
    keys = [question.key for question in exam_questions]
    runs = [make_run(ZERO_SHOT, "r"), make_run(GUIDED, "frmrr"), make_run(REASONING, "w")]
    _narrow(runs[0], keys[:15])
    _narrow(runs[2], keys[5:])
    found = compare(*runs)
    assert dataclasses.astuple(found.exclusions) == (10, 2, 2, 0)
    assert found.questions == tuple(keys[at] for at in (6, 8, 9, 11, 13, 14))
    assert (found.question_counts, found.pending) == ((15, 20, 15), (0, 8, 0))
    assert {run.metrics.n for run in found.runs} == {6}
    assert [pair.paired.n for pair in found.statistics.pairs] == [6, 6]
    text = comparison_lines(found)[0]
    assert "10 not in every run, 2 failed in at least one, 2 not asked yet in at least one" in text


def test_the_baseline_is_the_first_run(compare, make_run) -> None:
    better, worse = make_run(ZERO_SHOT, "r"), make_run(REASONING, "w")
    (lost,), (gained,) = compare(better, worse).statistics.pairs, compare(worse, better).statistics.pairs
    assert (lost.verdict, gained.verdict) == ("worse", "better")
    assert verdicts(compare(better, worse)) == [
        "chain_of_thought is worse than zero_shot in accuracy: -100.0 percentage points, McNemar's p < 0.001, "
        "no interval, because there are fewer than five exams, and in each all questions have the same result."
    ]


@pytest.mark.parametrize("outcomes", ["rw", "wr", "rrw", "wwr", "rwwwu", "wrrrrrrrrrrrrrrrrrrr"])
def test_better_is_never_said_of_an_interval_with_zero(compare, make_run, outcomes) -> None:
    found = compare(make_run(ZERO_SHOT, "rww"), make_run(REASONING, outcomes), make_run(GUIDED, "wrw"))
    said = " ".join([*verdicts(found), paired_report(found)])
    told = [pair for pair in found.statistics.pairs if pair.verdict != "not told apart"]
    assert all(pair.paired.accuracy.excludes_zero for pair in told)
    assert bool(re.search(r"\b(better|worse)\b", said)) == bool(told)


def test_several_runs_are_adjusted_by_holm(compare, make_run) -> None:
    found = compare(make_run(ZERO_SHOT, "w"), make_run(REASONING, "rwwww"), make_run(GUIDED, "rrwww"))
    first, second = (pair.paired.flips.p for pair in found.statistics.pairs)
    assert (first, second) == (2 / 2**4, 2 / 2**8)
    assert [pair.p_adjusted for pair in found.statistics.pairs] == pytest.approx([first, 2 * second])
    assert "after Holm" in verdicts(found)[0]
    groups = [group for pair in found.statistics.pairs for group in (*pair.by_discipline.values(),)]
    assert all(group.p_adjusted >= group.paired.flips.p for group in groups)
    smallest = min(groups, key=lambda group: group.paired.flips.p)
    assert smallest.p_adjusted == pytest.approx(min(1, 4 * smallest.paired.flips.p))


def test_languages_may_be_compared_and_the_reader_is_told(compare, make_run) -> None:
    found = compare(make_run(ZERO_SHOT, "rw"), make_run(ZERO_SHOT, "rr", language="es"))
    assert found.names == ("zero_shot en", "zero_shot es")
    assert any("different languages (en, es)" in note for note in found.notes)
    assert "The runs asked in different languages (en, es)" in "\n".join(comparison_lines(found))


def test_a_question_with_another_gold_in_the_other_language_is_dropped(
    compare, make_run, data_set, exam_questions
) -> None:
    keys = [question.key for question in exam_questions]
    data_set["es"] = AnswerKey({key: Gold(number=2 if key == keys[0] else 1) for key in keys})
    found = compare(make_run(ZERO_SHOT, "r"), make_run(ZERO_SHOT, "r", language="es"))
    assert (len(found.questions), found.exclusions.other_gold) == (19, 1)
    assert "1 with another right answer" in comparison_lines(found)[0]


def test_data_that_changed_between_the_runs_is_noted(compare, make_run) -> None:
    first, second = make_run(ZERO_SHOT, "r"), make_run(REASONING, "r")
    record = second.folder.read_record()
    second.folder.write_record(dataclasses.replace(record, dataset_fingerprint="cd" * 32))
    assert any("2 different versions of the data" in note for note in compare(first, second).notes)


def test_runs_of_one_program_are_told_apart(compare, make_run) -> None:
    first = make_run(ZERO_SHOT, "r", run_id="first")
    second = make_run(ZERO_SHOT, "w", run_id="second")
    assert compare(first, second).names == ("first", "second")
    assert compare(first, make_run(REASONING, "w"), second).names == ("first", "chain_of_thought", "second")
    with_model = make_run(ZERO_SHOT, "w", run_id="third", model={"engine": "litellm", "name": "openai/gpt-4o"})
    assert compare(first, with_model).names == ("zero_shot SmolLM2-135M-Instruct", "zero_shot gpt-4o")


def test_different_data_sets_are_refused(compare, make_run) -> None:
    first, second = make_run(ZERO_SHOT, "r"), make_run(REASONING, "r")
    record = second.folder.read_record()
    cell = record.cell.model_copy(update={"dataset": record.cell.dataset.model_copy(update={"name": "headqa_v1"})})
    second.folder.write_record(dataclasses.replace(record, cell=cell))
    with pytest.raises(DatasetError, match=r"headqa_sample .* and headqa_v1 .*; compare runs of one data set"):
        compare(first, second)


@pytest.mark.parametrize("outcome", "fm")
def test_runs_without_a_common_question_are_refused(compare, make_run, outcome) -> None:
    with pytest.raises(DatasetError, match=r"no question is scored by both runs \(Dropped: 20 (failed|not asked yet)"):
        compare(make_run(ZERO_SHOT, "r"), make_run(REASONING, outcome))


def test_runs_of_other_questions_are_refused(compare, make_run, exam_questions) -> None:
    keys = [question.key for question in exam_questions]
    first, second = make_run(ZERO_SHOT, "r"), make_run(REASONING, "r")
    _narrow(first, keys[:10])
    _narrow(second, keys[10:])
    with pytest.raises(DatasetError, match=r"\(Dropped: 20 not in every run\)"):
        compare(first, second)


def test_runs_are_found_and_named_once(make_run, tmp_path) -> None:
    first, second = make_run(ZERO_SHOT, "r").folder, make_run(REASONING, "r").folder
    runs = tmp_path / "runs"
    assert find_compared([second.path, runs]) == [second, first]
    with pytest.raises(SpecError, match="given twice"):
        find_compared([first.path, second.path, runs / "." / first.name])
    with pytest.raises(SpecError, match="is the only run"):
        find_compared([first.path])
    with pytest.raises(RunFolderError, match="no run at"):
        find_compared([first.path, tmp_path / "nowhere"])


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_every_table_within_its_width(compare, make_run, width) -> None:
    found = compare(make_run(ZERO_SHOT, "rwwww"), make_run(REASONING, "rrwwu"), make_run({"kind": "longest"}, "uwr"))
    text = draw(*comparison_tables(found), width=width)
    assert max(map(len, text.splitlines())) <= width
    for title in (
        "Scores on the same questions",
        "Against zero_shot",
        "Agreement with zero_shot",
        "longest against zero_shot, by discipline",
        "chain_of_thought against zero_shot, by year",
        "Flipped questions",
    ):
        assert title in text


def test_markdown_names_the_flipped_questions_and_the_folders(compare, make_run, tmp_path) -> None:
    runs = make_run(ZERO_SHOT, "rwwww"), make_run(REASONING, "urwww")
    found = compare(*runs)
    write_file(paired_report(found), tmp_path / "compare.md")
    text = (tmp_path / "compare.md").read_text()
    assert text.startswith("# chain_of_thought against zero_shot\n")
    assert "| headqa-v1/2013/biology/1 | 1 | **1** | - |" in text
    assert "| headqa-v1/2013/biology/2 | 1 | 2 | **1** |" in text
    assert str(runs[1].folder.path) in text
    with pytest.raises(RunFolderError, match="choose another file with --markdown"):
        write_file(paired_report(found), tmp_path)


def test_runs_that_agree_have_no_flipped_questions(compare, make_run) -> None:
    found = compare(make_run(ZERO_SHOT, "rw"), make_run(REASONING, "rw"))
    assert found.statistics.flipped == ()
    assert "Flipped" not in paired_report(found)
    assert verdicts(found) == [
        "chain_of_thought shows no difference from zero_shot in accuracy: 0.0 percentage points, McNemar's p = 1.000, "
        "no interval, because there are fewer than five exams, and in each all questions have the same result."
    ]


def test_the_document_is_json_and_holds_every_number(compare, make_run) -> None:
    runs = make_run(ZERO_SHOT, "rwwww"), make_run(REASONING, "urwww")
    document = json.loads(json.dumps(compare(*runs).document()))
    ids = [run.record.run_id for run in runs]
    assert document["baseline"] == ids[0]
    assert document["dropped"] == {"not_in_every_run": 0, "failed": 0, "not_asked_yet": 0, "other_gold": 0}
    (pair,) = document["pairs"]
    assert (pair["run"], pair["right_to_wrong"], pair["wrong_to_right"], pair["both_wrong"]) == (ids[1], 4, 4, 12)
    within = "questions within exams"
    assert pair["accuracy"] == {"value": 0.0, "interval": pytest.approx([-0.25, 0.25]), "resampled": within}
    assert document["interval"]["clusters"] == within
    assert set(pair["by_year"]) == {"2013", "2015"}
    assert pair["by_year"]["2013"]["n"] == 10
    assert document["flipped"][0] == {
        "question": "headqa-v1/2013/biology/1",
        "gold": 1,
        "answers": {ids[0]: 1, ids[1]: None},
    }
    assert [run["metrics"]["n"] for run in document["runs"]] == [20, 20]


def test_mlflow_gets_one_run_that_is_updated(compare, make_run, uri, client, tmp_path) -> None:
    found = compare(make_run(ZERO_SHOT, "rwwww"), make_run(REASONING, "rrwww"))
    run_id = track_comparison(found, tracking_uri=uri)
    assert track_comparison(found, tracking_uri=uri) == run_id
    experiment = client.get_experiment_by_name("demo")
    (stored,) = client.search_runs([experiment.experiment_id])
    assert stored.info.status == "FINISHED"
    assert stored.data.tags["medexam.kind"] == "comparison"
    assert "mlflow.parentRunId" not in stored.data.tags
    assert "shows no difference from" in stored.data.tags["mlflow.note.content"]
    assert stored.data.metrics["accuracy_difference"] == pytest.approx(0.2)
    assert stored.data.metrics["p_holm"] == pytest.approx(0.125)
    assert {artifact.path for artifact in client.list_artifacts(run_id)} == {"compare.md", "compare.json"}
    local = client.download_artifacts(run_id, "compare.json", str(tmp_path))
    with open(local) as stream:  # noqa: PTH123
        assert json.load(stream) == json.loads(json.dumps(found.document()))


def test_mlflow_numbers_the_metrics_of_several_pairs(compare, make_run) -> None:
    found = compare(make_run(ZERO_SHOT, "rwwww"), make_run(REASONING, "rrwww"), make_run(GUIDED, "wwwww"))
    values = found.values()
    assert (values["n"], values["flipped"], values["any_right"], values["dropped"]) == (20, 8, 8, 0)
    assert values["accuracy_difference.1"] == pytest.approx(0.2)
    assert values["accuracy_difference.2"] == pytest.approx(-0.2)
    assert values["points_difference_low.2"] == pytest.approx(-8)
    assert values["p_holm.1"] == pytest.approx(0.25)


def test_an_outage_of_mlflow_says_how_to_send_it_again(compare, make_run, tmp_path) -> None:
    found = compare(make_run(ZERO_SHOT, "r"), make_run(REASONING, "w"))
    (tmp_path / "file").write_text("")
    with pytest.raises(TrackingError, match="compare again with --track"):
        track_comparison(found, tracking_uri=f"sqlite:///{tmp_path}/file/mlflow.db")
