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


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """`runs("all")`: a folder with runs of the controls on all exams, on the test split ("test") or of one on "dev"."""
    if not os.environ.get("MEDEXAM_DATA"):
        pytest.skip("MEDEXAM_DATA is not set: it names the folder that holds headqa_v1/HEAD.json")
    folder = tmp_path_factory.mktemp("v1")
    specs = {"all": "headqa_v1_controls", "test": "headqa_v1_controls_test", "dev": LONGEST_OF_DEV}

    def call(name):
        if not (folder / name).exists():
            package.run(specs[name], runs_dir=folder / name, track=False, progress=False)
        return folder / name

    return call


@pytest.fixture
def tables(runs, medexam):
    """`tables("all")`: the tables that `medexam report --layout headqa-v1` makes of those runs, by number."""

    def call(name):
        code, out, err = medexam("report", runs(name), "--layout", "headqa-v1", "--json")
        assert code == 0, err
        return {table["table"]: table for table in json.loads(out)}

    return call


@pytest.mark.data
def test_every_published_cell_of_the_test_split_is_reproduced(tables) -> None:
    of_test, dev = tables("test"), tables("dev")
    assert (list(of_test), list(dev)) == ([7, 8], [None])
    published = [figure for table in of_test.values() for row in table["runs"] for figure in row["figures"].values()]
    differences = [figure["difference"] for figure in published if figure["published"] is not None]
    assert differences == [0.0] * 7 * (3 + 3)


@pytest.mark.nightly
@pytest.mark.data
def test_every_published_cell_of_the_controls_is_reproduced(tables) -> None:
    of_all, of_test = tables("all"), tables("test")
    assert (list(of_all), list(of_test)) == ([5, 6, 7, 8, 9], [7, 8])
    published = [
        figure
        for table in (of_all[5], of_all[6], of_test[7], of_test[8])
        for row in table["runs"]
        for figure in row["figures"].values()
        if figure["published"] is not None
    ]
    assert len(published) == 7 * (6 + 2 + 3 + 3)
    assert {figure["difference"] for figure in published} == {0.0}


@pytest.mark.nightly
@pytest.mark.data
def test_rows_say_what_the_paper_calls_them(tables) -> None:
    of_all = tables("all")
    accuracy, people = of_all[5], of_all[9]
    assert accuracy["headers"] == ["Solver", "BIR", "MIR", "EIR", "FIR", "PIR", "QIR", "Avg", "n"]
    names = [row[0] for row in accuracy["rows"] if not row[0].startswith("  ")]
    assert names == ["RANDOM es", "BLIND 1 es", "BLIND 2 es", "BLIND 3 es", "BLIND 4 es", "LENGTH es"]
    at = names.index("LENGTH es") * 3
    assert (accuracy["rows"][at][1], accuracy["rows"][at][-2:]) == ("26.9", ["28.1", "6,765"])
    assert [row[:2] for row in accuracy["rows"][at + 1 : at + 3]] == [["  paper", "26.9"], ["  difference", "="]]
    assert people["rows"][-2:] == [
        ["Avg 10 best humans", "627.1", "592.2", "515.2", "575.5", "602.1", "529.1", ""],
        ["Pass mark", "219.0", "207.0", "180.0", "201.0", "210.0", "185.0", ""],
    ]
    for number, table in tables("test").items():
        rows = {row[0]: row for row in of_all[number]["rows"]}
        assert all(rows[row[0]] == row for row in table["rows"] if row[0].startswith(("BLIND", "LENGTH")))


def test_runs_of_other_data_are_refused_with_the_way_out(medexam, tmp_path) -> None:
    sample = {"name": "x", "dataset": {"name": "headqa_sample"}, "program": {"kind": "longest"}}
    package.run(sample, runs_dir=tmp_path / "runs", track=False, progress=False)
    code, _, err = medexam("report", tmp_path / "runs", "--layout", "headqa-v1", "--json")
    assert (code, "asked headqa_sample: name runs of headqa_v1 alone" in err) == (2, True)
