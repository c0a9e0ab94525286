"""Several specs in one command, and the board of models over their benchmarks."""

import json

import pytest
import yaml

BENCHMARKS = {"en": {}, "es": {"language": "es"}, "early": {"years": [2013]}}


@pytest.fixture
def benchmarks(tmp_path):
    """Specs of three benchmarks."""
    for name, part in BENCHMARKS.items():
        spec = {"name": name, "dataset": {"name": "headqa_sample", "limit": 30, **part}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    return [tmp_path / f"{name}.yaml" for name in BENCHMARKS]


@pytest.fixture
def board(medexam):
    """`board()`: the document of `medexam board --json`."""

    def call(*options: str) -> dict:
        code, out, err = medexam("board", *options, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


def test_two_models_on_three_benchmarks_end_in_one_board_and_latex(medexam, board, benchmarks, tmp_path) -> None:
    for kind in ("longest", "random"):
        code, out, err = medexam("run", *benchmarks, "--set", f"program.kind={kind}")
        assert (code, "Leaderboard" in out) == (0, True), err
    document = board("--latex", "b.tex", "--markdown", "b.md")
    assert (len(document["columns"]), [row["missing"] for row in document["rows"]]) == (3, [[], []])
    assert sum(row["mean_rank"] for row in document["rows"]) == pytest.approx(3)
    better, worse = document["rows"]
    means = [sum(score["value"] for score in row["scores"].values()) for row in (better, worse)]
    assert better["mean_rank"] <= worse["mean_rank"], means
    protocols = {score["protocol"] for row in document["rows"] for score in row["scores"].values()}
    assert len(protocols) == 6
    assert r"\toprule" in (tmp_path / "b.tex").read_text()
    text = (tmp_path / "b.md").read_text()
    assert all(words in text for words in (*protocols, "| longest |"))
    cells = json.loads(medexam("plan", *benchmarks, "--set", "program.kind=longest", "--json")[1])
    assert [cell["owed"] for cell in cells] == [0, 0, 0], "what is there is not asked again"


def test_a_run_that_two_specs_plan_is_asked_once_and_set_changes_all_specs(medexam, benchmarks) -> None:
    changes = ("--set", "program.kind=longest", "--json")
    assert len(json.loads(medexam("plan", "headqa_sample", "headqa_sample", *changes)[1])) == 1
    assert {cell["program"] for cell in json.loads(medexam("plan", *benchmarks, *changes)[1])} == {"longest"}


def test_a_missing_score_is_named_and_not_ranked(medexam, board, benchmarks) -> None:
    medexam("run", *benchmarks, "--set", "program.kind=longest")
    medexam("run", *benchmarks, "--set", "program.kind=blind")
    medexam("run", "headqa_sample", "--set", "program.kind=random", "--limit", 30)
    rows = {row["name"]: row for row in board()["rows"]}
    assert (rows["random"]["mean_rank"], len(rows["random"]["missing"])) == (None, 2)
    assert {rows[name]["mean_rank"] for name in ("longest", "blind-1")} <= {1.0, 4 / 3, 1.5, 5 / 3, 2.0}
    assert "random has no whole score in" in " ".join(medexam("board")[1].split())


def test_other_questions_are_a_column_of_their_own_and_of_equal_runs_the_last_is_shown(medexam, board) -> None:
    for limit in (30, 60, 60):
        medexam("run", "headqa_sample", "--set", "program.kind=longest", "--limit", limit, "--fresh")
    document = board()
    assert document["columns"] == ["headqa_sample en (30)", "headqa_sample en (60)"]
    assert "left out: headqa_sample-longest" in document["notes"][0]
