"""A suite and several specs in one command, and the board of models over their benchmarks."""

import json

import pytest
import yaml

SUITE = {
    "name": "mine",
    "suite": [
        {"spec": "headqa_sample", "name": "en"},
        {"spec": "beside.yaml", "dataset.language": "es"},
        {"spec": "headqa_sample", "name": "early", "dataset.years": [2013]},
    ],
    "dataset.limit": 30,
}


@pytest.fixture
def suite(tmp_path):
    """A suite of three benchmarks in a folder of its own."""
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "beside.yaml").write_text("name: es\ndataset: headqa_sample\n")
    (folder / "mine.yaml").write_text(yaml.safe_dump(SUITE))
    return folder / "mine.yaml"


@pytest.fixture
def board(medexam):
    """`board()`: the document of `medexam board --json`."""

    def call(*options: str) -> dict:
        code, out, err = medexam("board", *options, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


def test_two_models_on_three_benchmarks_end_in_one_board_and_latex(medexam, board, suite, tmp_path) -> None:
    for kind in ("longest", "random"):
        code, out, err = medexam("run", suite, "--set", f"program.kind={kind}")
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
    cells = json.loads(medexam("plan", suite, "--set", "program.kind=longest", "--json")[1])
    assert [cell["owed"] for cell in cells] == [0, 0, 0], "what is there is not asked again"


def test_a_run_that_two_specs_plan_is_asked_once_and_set_changes_all_specs_of_a_suite(medexam) -> None:
    changes = ("--set", "program.kind=longest", "--json")
    assert len(json.loads(medexam("plan", "headqa_sample", "headqa_sample", *changes)[1])) == 1
    assert {cell["program"] for cell in json.loads(medexam("plan", "sample_suite", *changes)[1])} == {"longest"}


def test_a_missing_score_is_named_and_not_ranked(medexam, board, suite) -> None:
    medexam("run", suite, "--set", "program.kind=longest")
    medexam("run", suite, "--set", "program.kind=blind")
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
