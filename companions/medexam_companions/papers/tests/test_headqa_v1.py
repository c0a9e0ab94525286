"""The HEAD-QA v1 paper's tables from real runs of the real data: every number is that of `metrics.json`."""

import json
import os

import pytest

import medexam as package

LONGEST_OF_DEV = {
    "name": "controls",
    "dataset": {"name": "headqa_v1", "language": "es", "split": "dev"},
    "program": {"kind": "longest"},
}
SPECS = {"all": "headqa_v1_controls", "test": "headqa_v1_controls_test", "dev": LONGEST_OF_DEV}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not os.environ.get("MEDEXAM_DATA"):
        pytest.skip("MEDEXAM_DATA names no folder with headqa_v1/HEAD.json")
    return tmp_path_factory.mktemp("v1")


@pytest.fixture
def tables(folder, medexam):
    """`tables("all")`: the tables that `medexam report --layout headqa-v1` makes of those runs, by number."""

    def call(name):
        runs = folder / name
        if not runs.exists():
            package.run(SPECS[name], runs_dir=runs, track=False, progress=False)
        code, out, err = medexam("report", runs, "--layout", "headqa-v1", "--json")
        assert code == 0, err
        return {table["table"]: table for table in json.loads(out)}

    return call


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "numbers", "count"),
    [("test", [7, 8], 7 * (3 + 3)), pytest.param("all", [5, 6, 7, 8, 9], 7 * (6 + 2), marks=pytest.mark.nightly)],
)
def test_every_published_cell_of_the_controls_is_reproduced(tables, name, numbers, count) -> None:
    of_runs = tables(name)
    assert list(of_runs) == numbers
    figures = [figure for n in numbers[:2] for row in of_runs[n]["runs"] for figure in row["figures"].values()]
    assert [figure["difference"] for figure in figures if figure["published"] is not None] == [0.0] * count


@pytest.mark.nightly
@pytest.mark.data
def test_rows_say_what_the_paper_calls_them(tables) -> None:
    of_all = tables("all")
    accuracy, people = of_all[5], of_all[9]
    assert accuracy["headers"] == ["Solver", "BIR", "MIR", "EIR", "FIR", "PIR", "QIR", "Avg", "n"]
    names = [row[0] for row in accuracy["rows"] if not row[0].startswith("  ")]
    assert names == ["RANDOM es", "BLIND 1 es", "BLIND 2 es", "BLIND 3 es", "BLIND 4 es", "LENGTH es"]
    at = names.index("LENGTH es") * 3
    assert [row[1] for row in accuracy["rows"][at : at + 3]] == ["26.9", "26.9", "="]
    assert people["rows"][-2:] == [
        ["Avg 10 best humans", "627.1", "592.2", "515.2", "575.5", "602.1", "529.1", ""],
        ["Pass mark", "219.0", "207.0", "180.0", "201.0", "210.0", "185.0", ""],
    ]
    for number, table in tables("test").items():
        rows = {row[0]: row for row in of_all[number]["rows"]}
        assert all(rows[row[0]] == row for row in table["rows"] if row[0].startswith(("BLIND", "LENGTH")))
    assert list(tables("dev")) == [None]


def test_runs_of_other_data_are_refused_with_the_way_out(medexam, tmp_path) -> None:
    sample = {"name": "x", "dataset": {"name": "headqa_sample"}, "program": {"kind": "longest"}}
    package.run(sample, runs_dir=tmp_path / "runs", track=False, progress=False)
    code, _, err = medexam("report", tmp_path / "runs", "--layout", "headqa-v1", "--json")
    assert (code, "asked headqa_sample: name runs of headqa_v1 alone" in err) == (2, True)
