"""An exam whose files tell no year, from the spec to reports, pages and comparisons."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from task_data import write_casimedicos


@pytest.fixture
def run(medexam, tmp_path, runs_dir):
    """`run()`: the documents of four runs over CasiMedicos as an exam, with and without explanations."""
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"man of 74": "{Answer: 3}", "*": "{Answer: 1}"}))
    document = {
        "name": "mc",
        "dataset": {
            "name": "casimedicos",
            "path": str(write_casimedicos(tmp_path / "casimedicos", "en", "es")),
            "language": "es",
            "split": "test",
        },
        "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
        "program": {"kind": "zero_shot"},
        "matrix": {"program.kind": ["zero_shot", "longest"], "dataset.explained": [False, True]},
    }
    (path := tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))

    def call(*options):
        code, out, err = medexam("run", path, "--json", *options)
        assert code == 0, err
        return json.loads(out)

    return call


def test_runs_reports_pages_and_comparisons_do_without_a_year(run, medexam, tmp_path) -> None:
    documents = run()
    assert len({each["spec_digest"] for each in documents}) == 4
    plain = documents[0]
    assert (plain["metrics"]["n"], plain["metrics"]["accuracy"]) == (3, pytest.approx(2 / 3))
    assert plain["metrics"]["by_year"] == {}
    folder = Path(plain["run_dir"])
    rows = pq.read_table(folder / "predictions.parquet").to_pylist()
    assert [(row["question"], row["year"], row["gold"]) for row in rows] == [
        ("casimedicos/test/0", None, 3),
        ("casimedicos/test/1", None, 1),
        ("casimedicos/test/2", None, 2),
    ]
    report = (folder / "report.md").read_text()
    assert "Complete: 3 questions of 1 exams scored." in report
    assert "None" not in report
    assert "By year" not in report
    code, out, err = medexam("report", "runs", "--markdown", "all.md", "--html", "page.html")
    assert code == 0, err
    assert "(3 questions" in err
    code, compared, err = medexam("compare", plain["run_dir"], documents[1]["run_dir"], "--markdown", "compared.md")
    assert code == 0, err
    code, alone, err = medexam("report", plain["run_dir"], "--html", "alone.html")
    assert code == 0, err
    written = [(tmp_path / name).read_text() for name in ("all.md", "page.html", "compared.md", "alone.html")]
    for text in (out, compared, alone, *written):
        assert not re.search(r"\bNone\b(?!\s+dropped)", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
        assert not re.search(r"by year", text, re.IGNORECASE)


def test_a_run_that_is_resumed_asks_nothing(run, medexam) -> None:
    (plain, *_) = run()
    answers = Path(plain["run_dir"], "predictions.jsonl")
    before = answers.read_bytes()
    code, out, _ = medexam("run", "--resume", plain["run_dir"], "--json")
    assert (code, json.loads(out)[0]["metrics"]) == (0, plain["metrics"])
    assert answers.read_bytes() == before
