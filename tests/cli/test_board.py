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


def test_two_models_on_three_benchmarks_end_in_one_board_page_and_latex(medexam, suite, tmp_path) -> None:
    for kind in ("longest", "random"):
        code, out, err = medexam("run", suite, "--set", f"program.kind={kind}")
        assert (code, "Leaderboard" in out) == (0, True), err
    code, out, _ = medexam("board", "--html", "b.html", "--latex", "b.tex", "--markdown", "b.md", "--json")
    board = json.loads(out)
    assert (code, len(board["columns"]), [row["missing"] for row in board["rows"]]) == (0, 3, [[], []])
    assert sum(row["mean_rank"] for row in board["rows"]) == pytest.approx(3)
    assert sum(row["mean_z"] for row in board["rows"]) == pytest.approx(0)
    protocols = {score["protocol"] for row in board["rows"] for score in row["scores"].values()}
    assert len(protocols) == 6
    page = (tmp_path / "b.html").read_text()
    assert all(text in page for text in (*protocols, 'class="sortable', "longest", "2 ways of asking"))
    assert all(text in page for text in ('<td class="whole">20', "<code>medexam compare</code>"))
    assert r"\toprule" in (tmp_path / "b.tex").read_text()
    assert "| longest |" in (tmp_path / "b.md").read_text()


def test_a_suite_resumes_what_is_there(medexam, suite) -> None:
    medexam("run", suite, "--set", "program.kind=longest")
    _, out, _ = medexam("plan", suite, "--set", "program.kind=longest", "--json")
    assert [cell["owed"] for cell in json.loads(out)] == [0, 0, 0]
    assert len(json.loads(medexam("list", "--json")[1])) == 3


def test_a_run_that_two_specs_plan_is_asked_once(medexam) -> None:
    _, out, _ = medexam("plan", "headqa_sample", "headqa_sample", "--set", "program.kind=longest", "--json")
    assert len(json.loads(out)) == 1


def test_a_missing_or_pending_score_is_named_and_not_ranked(medexam, suite) -> None:
    medexam("run", suite, "--set", "program.kind=longest")
    medexam("run", suite, "--set", "program.kind=blind")
    medexam("run", "headqa_sample", "--set", "program.kind=random", "--limit", 30)
    _, out, _ = medexam("board", "--json")
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    assert (rows["random"]["mean_rank"], len(rows["random"]["missing"])) == (None, 2)
    assert {rows[name]["mean_rank"] for name in ("longest", "blind-1")} <= {1.0, 4 / 3, 1.5, 5 / 3, 2.0}
    assert "random has no whole score in" in " ".join(medexam("board")[1].split())


def test_other_questions_of_a_data_set_are_a_column_of_their_own(medexam) -> None:
    for limit in (30, 60):
        medexam("run", "headqa_sample", "--set", "program.kind=longest", "--limit", limit, "--fresh")
    board = json.loads(medexam("board", "--json")[1])
    assert board["columns"] == ["headqa_sample en (30)", "headqa_sample en (60)"]


def test_the_last_of_equal_runs_is_shown_and_the_others_are_named(medexam) -> None:
    for _ in range(2):
        medexam("run", "headqa_sample", "--set", "program.kind=longest", "--limit", 30, "--fresh")
    board = json.loads(medexam("board", "--json")[1])
    assert "left out: headqa_sample-longest" in board["notes"][0]


@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ({"suite": []}, "expected a list of specs"),
        ({"suite": [{"name": "x"}]}, "names no spec"),
        ({"suite": ["sample_suite"]}, "a suite itself"),
        ({"suite": ["headqa_sample"], "modle.name": "x"}, "modle"),
    ],
)
def test_a_suite_that_cannot_be_read_is_refused(medexam, tmp_path, suite, message) -> None:
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(suite))
    code, _, err = medexam("plan", "s.yaml")
    assert (code, message in err) == (2, True)


def test_set_changes_a_program_that_the_suite_gives_to_all_its_specs(medexam) -> None:
    code, out, err = medexam("plan", "sample_suite", "--set", "program.kind=longest", "--json")
    assert code == 0, err
    assert {cell["program"] for cell in json.loads(out)} == {"longest"}


def test_two_models_of_one_name_have_a_row_each(medexam, suite, tmp_path) -> None:
    for reply in ("{Answer: 1}", "{Answer: 2}"):
        table = tmp_path / f"{reply[-2]}.yaml"
        table.write_text(yaml.safe_dump({"*": reply}))
        model = {"engine": "scripted", "path": str(table)}
        assert medexam("run", suite, "--set", f"model={json.dumps(model)}")[0] == 0
    board = json.loads(medexam("board", "--json")[1])
    assert [row["missing"] for row in board["rows"]] == [[], []]
    assert all(row["name"].startswith("scripted (") for row in board["rows"])
    assert [note for note in board["notes"] if "is not scripted (" in note and "weights" in note] == board["notes"]
    for command in (("report", "--markdown", "r.md"), ("compare", "--markdown", "c.md")):
        code, out, err = medexam(*command, *sorted(map(str, (tmp_path / "runs").glob("en-*"))))
        assert code == 0, err
        text = (tmp_path / command[-1]).read_text()
        for row in board["rows"]:
            assert row["name"] in text.replace("\\", "")
        assert "The model scripted (" in " ".join(out.split())
    assert {run["model"] for run in json.loads(medexam("report", "--json")[1])} == {"scripted"}
