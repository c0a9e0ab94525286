"""What an audit finds, beside pandas, and how it is shown."""

import json

import pandas as pd
import pytest

from medexam.companions.audit.folder import write_sheets
from medexam.companions.audit.ratings import read_ratings
from medexam.companions.audit.result import audit_document, find_audit
from medexam.companions.audit.tables import audit_report, audit_tables


@pytest.fixture
def audit(make_items, audit_folder, fill):
    """Two raters: one marks everything, the other all but a few; both follow the semantic score, one sloppily."""
    sheets = write_sheets(audit_folder, make_items({"one": 8, "two": 8}), 2, seed=0)
    entries = audit_folder.read_key().items
    places = {entry.code: int(entry.key.rpartition("/")[2]) for entry in entries}
    fill(
        sheets[0],
        {code: {"correctness": str(1 + place // 2), "completeness": "3"} for code, place in places.items()},
    )
    sloppy = {code: {"correctness": str(1 + place * 3 % 5)} for code, place in places.items() if place != 5}
    sloppy[entries[0].code]["comment"] = "unclear"
    fill(sheets[1], sloppy)
    return find_audit(read_ratings(audit_folder))


def test_findings_are_those_of_pandas(audit) -> None:
    document = audit_document(audit)
    json.dumps(document, allow_nan=False)
    frame = pd.json_normalize(document["answers"])
    raters = frame[["correctness.rater_1", "correctness.rater_2"]]
    frame["mark"] = raters.mean(axis=1)
    (pair,) = [each for each in document["raters"] if each["aspect"] == "correctness"]
    both = raters.dropna()
    assert (pair["n"], pair["same"]) == (len(both), pytest.approx((both.iloc[:, 0] == both.iloc[:, 1]).mean()))
    assert pair["spearman"] == pytest.approx(both.corr(method="spearman").iloc[0, 1])
    assert [each["measure"] for each in document["measures"]] == ["semantic", "bleu"]
    for each in document["measures"]:
        for method in ("spearman", "kendall"):
            column = f"scores.{each['measure']}"
            assert each["overall"][method] == pytest.approx(frame["mark"].corr(frame[column], method=method))
            for part, name in (("group", "by_group"), ("run", "by_run")):
                for value, rows in frame.groupby(part):
                    assert each[name][value][method] == pytest.approx(rows["mark"].corr(rows[column], method=method))
    assert {run: marks["means"]["correctness"] for run, marks in document["by_run"].items()} == pytest.approx(
        frame.groupby("run")["mark"].mean().to_dict()
    )
    assert document["sheets"][1] | {"means": None} == {
        "rater": "rater_2",
        "rows": 32,
        "correctness_marked": 28,
        "completeness_marked": 0,
        "means": None,
    }
    assert document["answers"][0]["comments"] == {"rater_2": "unclear"}


def test_tables_show_a_dash_where_nothing_can_be_said(audit) -> None:
    tables = {table.title: table for table, _ in audit_tables(audit)}
    assert list(tables) == [
        "Sheets",
        "Marks",
        "Raters against each other",
        "Measures against the raters",
        "Measures against the raters, by group",
        "Measures against the raters, by run",
    ]
    assert tables["Sheets"].rows[1] == ("rater_2", "32", "28", "3.00", "0", "-")
    assert [row[:3] for row in tables["Marks"].rows] == [
        ("one", "run", "16"),
        ("two", "run", "16"),
        ("list", "group", "16"),
        ("short", "group", "16"),
    ]
    # Only one rater has marked completeness: no pair.
    assert [row[:3] for row in tables["Raters against each other"].rows] == [
        ("rater_1 and rater_2", "correctness", "28")
    ]


def test_one_rater_one_run_one_group(make_items, audit_folder, fill) -> None:
    (sheet,) = write_sheets(audit_folder, make_items({"one": 2}, groups=("short",)), 1, seed=0)
    fill(sheet, {entry.code: {"correctness": "4"} for entry in audit_folder.read_key().items})
    found = find_audit(read_ratings(audit_folder))
    assert [table.title for table, _ in audit_tables(found)] == ["Sheets", "Marks", "Measures against the raters"]
    assert audit_tables(found)[-1][0].rows[0] == ("semantic", "2", "-", "-")


def test_the_markdown_report(audit) -> None:
    text = audit_report(audit)
    assert text.startswith("# Audit\n\n32 answers to 16 questions, sample `")
    assert text.count("\n## ") == 6
