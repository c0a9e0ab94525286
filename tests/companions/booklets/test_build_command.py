"""`medexam data build`: what it prints, how it refuses, and what a build that was killed leaves behind."""

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from medexam.companions.booklets.commands import build as command
from medexam.errors import DatasetError, MedExamError


@pytest.fixture
def run(print_booklet, questions, write_key, answer_all, tmp_path):
    app = typer.Typer()
    app.command()(command)
    booklet = print_booklet(questions)
    key = write_key(answer_all(questions) | {3: None})

    def call(*words):
        fixed = ["--booklet", booklet, "--key", key, "--name", "Cuaderno_2020_0_B", "--out", tmp_path / "built"]
        result = CliRunner().invoke(app, [str(word) for word in (*fixed, *words)])
        if isinstance(result.exception, MedExamError):
            raise result.exception
        return result

    return call


def test_a_table_of_counts_and_where_everything_lies(run, questions, tmp_path) -> None:
    result = run()
    assert result.exit_code == 0
    assert "Cuaderno_2020_0_B: biology 2020, es, 2 pages in " in result.output
    counts = {line.split("  ")[0]: line.split()[1:] for line in result.output.splitlines()}
    assert counts["printed"][0] == "14"
    assert counts["annulled"] == ["1", "3"]
    assert counts["built"] == ["13", "13", "with", "4", "options"]
    assert f"questions: {tmp_path}/built/es/Cuaderno_2020_0_B.parquet" in result.output
    assert f"medexam data check headqa_v2 --path {tmp_path}/built --language es" in result.output


def test_json_is_the_report(run, tmp_path) -> None:
    report = json.loads(run("--json").stdout)
    assert (report["built"], report["annulled"]) == (13, [3])
    assert json.loads((tmp_path / "built" / "Cuaderno_2020_0_B.report.json").read_text()) == report


def test_findings_are_printed_by_kind(run, print_booklet, questions) -> None:
    for question in questions[:7]:
        question.options.pop()
    print_booklet(questions)
    output = run().output
    assert "suspicious: missing option: 7" in output
    assert "  headqa-v2/2020/biology/1, page 2: has options 1, 2, 3, most questions have 4" not in output
    assert "  and 2 more in the report" in output


def test_words_that_are_none(run) -> None:
    with pytest.raises(DatasetError, match="the disciplines are biology, chemistry"):
        run("--discipline", "astrology")
    with pytest.raises(DatasetError, match="not in fr"):
        run("--language", "fr")
    assert run("--year", "soon").exit_code == 2


KILLED_BUILDS = """
import os, signal, sys
from pathlib import Path
from medexam.cli import load_command

replace, moves = Path.replace, int(sys.argv[1])

def killed(self, target):
    global moves
    if moves == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    moves -= 1
    return replace(self, target)

Path.replace = killed
load_command("data")(["build", *sys.argv[2:]])
"""
"""Builds an exam and kills itself when as many of its files have taken their places as the first argument says."""


@pytest.mark.parametrize("moved", [0, 1, 3])
def test_a_build_that_was_killed_does_not_block_its_folder(run, moved: int, tmp_path) -> None:
    out = tmp_path / "built"
    words = [tmp_path / "booklet.pdf", "--key", tmp_path / "key.csv", "--name", "Cuaderno_2020_0_B", "--out", out]
    killed = subprocess.run([sys.executable, "-c", KILLED_BUILDS, str(moved), "--booklet", *words], check=False)
    assert killed.returncode == -9
    assert sum(path.is_file() and not path.name.startswith(".") for path in out.rglob("*")) == moved
    assert run().exit_code == 0
    kept = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    name = "Cuaderno_2020_0_B"
    assert kept == [f"{name}.report.json", f"{name}.review.html", "README.md", f"es/{name}.parquet"]
