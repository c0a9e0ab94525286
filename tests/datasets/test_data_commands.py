"""`medexam data`: what it prints and how it exits."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from medexam.cli.data.commands import app
from medexam.errors import DatasetError, MedExamError, SpecError


@pytest.fixture
def run():
    def call(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        if isinstance(result.exception, MedExamError):
            raise result.exception
        return result

    return call


def test_list_tells_where_sets_are_and_how_to_get_the_others(run, tmp_path, write_jsonl, records) -> None:
    text = run("list").output
    assert "medexam data fetch headqa_v2" in text
    write_jsonl(records, "cache/headqa_v2/gl.jsonl")
    sets = {described["name"]: described for described in json.loads(run("list", "--json").stdout)}
    assert list(sets) == [
        *("headqa_sample", "headqa_study", "headqa_v1", "headqa_v2"),
        "casimedicos",
        *("headqa_sample_open", "headqa_study_open", "headqa_v1_open", "headqa_v2_open"),
        *("casimedicos_spans", "cliniqlink"),
    ]
    assert sets["headqa_v2"]["files"]["gl"] == [str(tmp_path / "cache/headqa_v2/gl.jsonl")]
    assert sets["headqa_v2"]["files"]["en"] == []
    assert len(sets["headqa_sample"]["files"]["es"]) == 1
    assert "gl in " in run("list").output


def test_check_prints_counts_and_passes(run) -> None:
    result = run("check", "headqa_sample")
    assert result.exit_code == 0
    assert "30 exams, 120 questions: 72 with 4 options, 48 with 5 options" in result.output
    assert "languages compared: en, es" in result.output
    assert result.output.endswith("sound\n")


def test_check_as_json_is_one_document(run) -> None:
    report = json.loads(run("check", "headqa_sample", "--language", "es", "--json").stdout)
    assert report["passed"] is True
    assert [checked["language"] for checked in report["languages"]] == ["es"]
    assert report["languages"][0]["by_discipline"]["medicine"]["2013"] == 4


def test_check_exits_2_on_errors_and_lists_them(run, document, write_json) -> None:
    for entry in [entry for exam in document["exams"].values() for entry in exam["data"]][:7]:
        entry["ra"] = "9"
    path = write_json(document)
    result = run("check", "headqa_v1", "--path", path)
    assert result.exit_code == 2
    assert "error: gold is no option: 7" in result.output
    assert "headqa-v1/2013/biology/8: the gold answer 9" in result.output
    assert "and 2 more" in result.output
    assert "not sound: 7 errors" in result.output
    as_json = run("check", "headqa_v1", "--path", path, "--json")
    assert as_json.exit_code == 2
    assert len(json.loads(as_json.stdout)["languages"][0]["errors"]) == 7


def test_show_prints_a_question_with_its_gold_marked(run) -> None:
    text = run("show", "headqa_sample", "--key", "headqa-v1/2013/biology/8").output
    assert "headqa-v1/2013/biology/8  Cuaderno_2013_1_B, biology 2013, en" in text
    assert text.count("* ") == 1
    assert text.count("  1. ") + text.count("* 1. ") == 1


def test_show_prints_brackets_as_they_are_and_names_the_picture(run, document, first, write_json) -> None:
    first |= {"qtext": "The ion [red]Fe[/red] is:", "image": "a.png"}
    text = run("show", "headqa_v1", "--path", write_json(document), "--key", "headqa-v1/2013/biology/8").output
    assert "The ion [red]Fe[/red] is:" in text
    assert "(refers to the picture a.png)" in text


@pytest.mark.parametrize(
    ("words", "n"),
    [
        ([], 3),
        (["--limit", 5], 5),
        (["--limit", 500], 120),
        (["--limit", 500, "--split", "dev"], 24),
        (["--limit", 500, "--year", 2013, "--year", 2014, "--discipline", "nursing"], 8),
        (["--limit", 500, "--images", "without"], 120),
    ],
)
def test_show_as_json_is_one_document(run, words, n) -> None:
    shown = json.loads(run("show", "headqa_sample", "--language", "es", "--json", *words).stdout)
    assert len(shown) == n
    assert all(1 <= entry["gold"] <= len(entry["options"]) and entry["language"] == "es" for entry in shown)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["check", "nope"], DatasetError, "no data set is called 'nope'"),
        (["check", "headqa_v1"], DatasetError, "fetch headqa_v1"),
        (["check", "headqa_sample", "--language", "pt"], DatasetError, "published in en, es, not in pt"),
        (["show", "nope"], SpecError, "headqa_sample"),
        (["show", "headqa_sample", "--language", "pt"], SpecError, "language"),
        (["show", "headqa_sample", "--discipline", "law"], SpecError, "disciplines"),
        (["show", "headqa_sample", "--limit", 0], SpecError, "limit"),
        (["show", "headqa_sample", "--year", 1999], DatasetError, "years=1999"),
        (
            ["show", "headqa_sample", "--key", "headqa-v1/2013/biology/88"],
            DatasetError,
            "did you mean headqa-v1/2013/bi",
        ),
        (["show", "headqa_sample", "--key", "?"], DatasetError, "its keys look like headqa-v1/2013/biology/8"),
        (["fetch", "headqa_sample"], DatasetError, "ships in the package"),
    ],
)
def test_errors_are_left_to_the_caller(run, words, error, message) -> None:
    with pytest.raises(error, match=message):
        run(*words)


def test_show_tells_of_a_question_without_an_official_answer(run, records, write_jsonl) -> None:
    records[0]["ra"] = 0
    with pytest.raises(DatasetError, match="no official answer"):
        run("show", "headqa_v2", "--path", write_jsonl(records), "--key", "headqa-v2/2013/biology/8")


def test_importing_the_commands_loads_nothing_heavy() -> None:
    script = "import sys, medexam.cli.main; print({'pydantic', 'dspy', 'pyarrow', 'datasets'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
