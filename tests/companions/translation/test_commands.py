"""`medexam data stats`, `translate` and `quality` as a user types them, with the scripted engine."""

import csv
import json
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from medexam.cli import run_command
from medexam.cli.data.commands import stats
from medexam.companions.translation.quality_command import quality
from medexam.companions.translation.translate_command import translate
from medexam.datasets import check_exam_set
from medexam.errors import DatasetError, MedExamError

GOOD = "Which?\n1. One.\n2. Two.\n3. Three.\n4. Four."

app = typer.Typer()
app.command()(stats)
app.command()(translate)
app.command()(quality)


@pytest.fixture
def invoke(runs_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEDEXAM_RUNS", str(runs_dir))
    monkeypatch.setenv("COLUMNS", "140")

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.stdout

    return run


@pytest.fixture
def scripted(tmp_path: Path):
    path = tmp_path / "replies.yaml"
    path.write_text(yaml.safe_dump({"*": GOOD}))
    four = "dataset.option_counts=[4]"
    return ["--set", "model.engine=scripted", "--set", f"model.path={path}", "--set", four, "--limit", "4"]


def test_stats_prints_tables_json_and_pictures(invoke, tmp_path) -> None:
    shown = invoke("stats", "headqa_sample", "--pictures", tmp_path / "pictures")

    assert "headqa_sample en · 120 questions of 30 exams" in shown
    assert "Place of the right answer" in shown
    pictures = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    lengths = ["answer_lengths.png", "question_lengths.png", "question_lengths_by_discipline.png"]
    assert pictures == [*lengths, "questions_by_year.png", "right_answers.png"]
    document = json.loads(invoke("stats", "headqa_sample", "--language", "es", "--json"))
    assert (document["questions"], document["language"]) == (120, "es")


def _tracked(client):
    """The one copy in MLflow."""
    experiment = client.get_experiment_by_name("translations")
    (run,) = client.search_runs([experiment.experiment_id])
    return run


def test_translate_prints_errors_and_selection_and_tracks_them(invoke, scripted, client, tmp_path) -> None:
    shown = invoke("translate", "headqa_sample", *scripted)

    assert "es to en · scripted" in shown
    assert "three valid: of the two most similar" in shown
    (folder,) = (tmp_path / "runs").glob("translate-*")
    assert f"4 questions in {folder}/en.parquet" in shown
    assert check_exam_set("headqa_v2", None, folder).passed
    run = _tracked(client)
    assert run.data.metrics["valid.expert"] == 4
    assert run.data.metrics["rule.most_similar"] == 4

    again = json.loads(invoke("translate", "headqa_sample", *scripted, "--json"))
    assert [setup["valid"] for setup in again["setups"]] == [4, 4, 4]
    assert again["path"] == str(folder / "en.parquet")


def test_an_incomplete_translation_says_so_and_writes_no_data_set(invoke, scripted, client, tmp_path) -> None:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": {"error": "transport"}}))

    document = json.loads(invoke("translate", "headqa_sample", *scripted, "--json", "--max-failures", "2", code=3))

    assert document["owed_replies"] == 12
    assert document["path"] is None
    assert (_tracked(client).data.metrics["owed"], _tracked(client).info.status) == (12, "KILLED")


def test_without_a_valid_translation_one_line_says_what_to_try(invoke, scripted, tmp_path, capsys, monkeypatch) -> None:
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "I am a language model."}))

    with pytest.raises(DatasetError) as caught:
        invoke("translate", "headqa_sample", *scripted)

    (folder,) = (tmp_path / "runs").glob("translate-*")
    assert str(caught.value) == (
        "none of the 4 questions has a valid translation, so no data set is written; read the replies in "
        f"{folder}/replies, then try a stronger model with --set model.name=NAME or, if replies are cut off, a "
        "larger --set model.max_tokens=N, and another --out DIR"
    )
    assert len(json.loads((folder / "selection.json").read_text())["discarded"]) == 4
    assert list(folder.glob("*.parquet")) == []

    monkeypatch.setattr("sys.argv", ["medexam", "data", "translate", "headqa_sample", *scripted, "--json"])
    with pytest.raises(SystemExit) as ended:
        run_command()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out)["path"] is None
    assert printed.err.splitlines()[-1] == f"medexam: {caught.value}"


def test_quality_measures_the_round_trip_and_lists_lost_terms(invoke, scripted, client, tmp_path) -> None:
    invoke("translate", "headqa_sample", *scripted)
    (folder,) = (tmp_path / "runs").glob("translate-*")

    shown = invoke("quality", folder, "--no-bert", "--reference")

    assert "BLEU nrefs:1|case:mixed|eff:no|tok:13a" in shown
    assert "round trip" in shown
    assert "Terms that must survive" in shown
    stored = json.loads((folder / "quality.json").read_text())
    assert {row["what"] for row in stored["measured"]} == {"round trip", "reference"}
    measured = _tracked(client).data.metrics
    assert "reference.bleu.selected" in measured
    invoke("translate", "headqa_sample", *scripted)
    assert _tracked(client).data.metrics == measured
    with pytest.raises(MedExamError, match=r"holds no translation\.json"):
        invoke("quality", tmp_path)


def test_a_sheet_goes_out_and_comes_back(invoke, scripted, tmp_path) -> None:
    invoke("translate", "headqa_sample", *scripted)
    (folder,) = (tmp_path / "runs").glob("translate-*")
    invoke("quality", folder, "--sheet", tmp_path / "ana.csv")
    rows = list(csv.DictReader((tmp_path / "ana.csv").read_text(encoding="utf-8-sig").splitlines(keepends=True)))
    assert len(rows) == 4
    assert rows[0]["translation"] == GOOD
    for name, marks in (("ana", "5432"), ("luis", "4432")):
        for row, mark in zip(rows, marks, strict=True):
            row |= {"adequacy": mark, "fluency": mark}
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    reviews = ["--reviews", tmp_path / "ana.csv", "--reviews", tmp_path / "luis.csv"]
    assert "ana and luis" in invoke("quality", *reviews)
    document = json.loads(invoke("quality", *reviews, "--json"))

    assert document["reviews"][0]["means"]["adequacy"] == 3.5
    assert document["agreement"][0]["same"] == 0.75
