"""Runs in Python, as a script or a notebook makes them."""

import asyncio
import json

import pytest

import medexam
from medexam.errors import RunFolderError, SpecError
from table_cases import read_table


def test_a_data_sets_name_is_an_experiment(ask, runs_dir) -> None:
    (run,) = runs = ask()
    assert (run.n, run.program, run.model, run.complete, runs.stop) == (6, "zero_shot", "scripted", True, None)
    assert run.accuracy == run.metrics.measure("accuracy").value
    assert run.folder == runs_dir / run.id
    assert repr(run) == f"<Run {run.id}: 6 of 6 questions scored, accuracy {100 * run.accuracy:.1f} %>"
    assert "zero_shot" in repr(runs)
    assert "| Program | n | Accuracy |" in runs._repr_markdown_()
    assert "| Accuracy, % |" in run._repr_markdown_()


def test_it_works_inside_a_running_event_loop(ask) -> None:
    async def notebook():
        return ask()

    assert asyncio.run(notebook()).complete


def test_a_list_makes_a_run_of_each(ask) -> None:
    runs = ask(program=["random", {"kind": "blind", "option": 2}, "longest"])
    assert [run.program for run in runs] == ["random", "blind-2", "longest"]
    assert runs["longest"] is runs[2]
    assert runs["longest"] in runs
    with pytest.raises(KeyError, match="names none of the runs"):
        runs["zero_shot"]


def test_several_specs_are_one_plan_and_one_board(ask, scripted, runs_dir) -> None:
    specs = ["headqa_sample", {"name": "spanish", "dataset": {"name": "headqa_sample", "language": "es"}}]
    longest = ask(specs, program="longest", model=None)
    assert len(longest) == len({run.id for run in longest}) > 1
    both = [*longest, *ask(specs, program="random", model=None)]
    board = medexam.list_runs(runs_dir).board()
    assert {row["name"] for row in board.rows} == {"longest", "random"}
    assert len(board.columns) == len(longest)
    assert "Leaderboard" in repr(board)
    assert {run.id for run in both} == {run.id for run in medexam.list_runs(runs_dir)}
    plan = medexam.plan(specs, model=scripted, limit=6, runs_dir=runs_dir)
    assert [cell["language"] for cell in plan.cells] == ["en", "es"]
    with pytest.raises(SpecError, match="no spec is given"):
        ask([])


def test_a_mapping_changes_fields_of_the_part_that_the_spec_names(ask) -> None:
    document = {"name": "x", "dataset": {"name": "headqa_sample", "language": "es"}, "program": "random"}
    (run,) = ask(document, dataset={"years": [2016]})
    dataset = run.stored.record.cell.dataset
    assert (dataset.name, dataset.language, dataset.years) == ("headqa_sample", "es", (2016,))
    with pytest.raises(SpecError, match="it names no data set"):
        ask({"name": "x"}, dataset={"language": "es"})
    with pytest.raises(SpecError, match="it names no data set"):
        medexam.load_questions({"language": "es"})


def test_predictions_are_a_mapping_and_a_table(ask) -> None:
    (run,) = ask()
    assert len(run.predictions) == 6
    assert all(prediction.answer == 1 for prediction in run.predictions.values())
    assert list(run.predictions) == list(run.stored.record.questions)
    table = run.predictions.to_pandas()
    assert table["right"].mean() == run.accuracy
    assert "to_pandas" in repr(run.predictions)


def test_stored_runs_are_found_again(ask, runs_dir) -> None:
    (run,) = ask()
    (found,) = medexam.list_runs(runs_dir)
    assert found.metrics == run.metrics
    assert medexam.load_run(run.id, runs_dir=runs_dir).metrics == run.metrics
    assert medexam.load_run(run.folder).id == run.id
    ask(program="random")
    with pytest.raises(RunFolderError, match="holds 2 runs"):
        medexam.load_run(runs_dir)
    with pytest.raises(RunFolderError, match="no run at"):
        medexam.load_run("nothing", runs_dir=runs_dir)
    assert len(medexam.list_runs(runs_dir / "none")) == 0
    assert repr(medexam.list_runs(runs_dir / "none")) == "no runs"


def test_a_run_that_cannot_be_read_is_left_out(ask, runs_dir, capsys) -> None:
    (run,) = ask()
    (runs_dir / "broken").mkdir()
    (runs_dir / "broken" / "spec.json").write_text("{")
    assert [one.id for one in medexam.list_runs(runs_dir)] == [run.id]
    assert "broken is left out" in capsys.readouterr().err


def test_plan_says_what_would_run(scripted, runs_dir) -> None:
    planned = medexam.plan("headqa_sample", model=scripted, limit=3, runs_dir=runs_dir)
    (cell,) = planned.cells
    assert (cell["questions"], cell["owed"], cell["calls"], len(cell["prompt"])) == (3, 3, 3, 3)
    assert "First prompt: zero_shot" in repr(planned)
    assert not list(runs_dir.glob("headqa*"))


def test_compare_is_what_the_command_prints(ask, runs_dir, capsys, monkeypatch) -> None:
    from medexam.cli import run_command

    runs = ask(program=["random", "longest"])
    compared = medexam.compare(*runs)
    assert repr(medexam.compare(runs)) == repr(compared)
    assert len(compared.questions) == 6
    monkeypatch.setattr("sys.argv", ["medexam", "compare", *(str(run.folder) for run in runs), "--json"])
    with pytest.raises(SystemExit):
        run_command()
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(compared.document()))
    assert "Against random" in repr(compared)
    assert "Against random" in compared.markdown()
    assert "longest" in compared._repr_markdown_()
    with pytest.raises(SpecError, match="is the only run"):
        medexam.compare(runs[0])


def test_failures_are_told_and_resumed(ask, tmp_path) -> None:
    replies = tmp_path / "replies.yaml"
    script = replies.read_text()
    replies.write_text("'*': {error: transport}\n")
    (run,) = runs = ask(limits=medexam.Limits(failures=1))
    assert runs.stop == "failures"
    assert (run.complete, runs.complete, run.accuracy) == (False, False, None)
    assert "questions are pending" in repr(runs)
    replies.write_text(script)
    assert ask()[0].complete


@pytest.mark.parametrize(*read_table("refused_runs"))
def test_what_is_wrong_is_said(ask, settings, said) -> None:
    with pytest.raises(SpecError, match=said):
        ask(**settings)
