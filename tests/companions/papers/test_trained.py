"""`medexam reproduce` of a table of fine-tuned encoders, with real, tiny ones instead of the paper's."""

import json

import pytest
from typer.testing import CliRunner

from medexam.cli import app
from retrievers.tiny_models import save_bert

TEXTS = ["the heart is blood", "the kidney and fever", "bone of the lung", "treat the nerve"]


pytestmark = pytest.mark.usefixtures("no_collection")


@pytest.fixture
def reproduce(tmp_path, runs_dir, monkeypatch):
    """Make a table with one tiny encoder, one training of two stages and one variant."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEDEXAM_RUNS", str(runs_dir))
    save_bert(tmp_path / "tiny", 1)
    rows = [
        {
            "id": str(n),
            "question": "what is",
            "context": text,
            "answers": [{"text": text[-5:], "answer_start": len(text) - 5}],
        }
        for n, text in enumerate(TEXTS)
    ]
    for name in ("sqac", "train", "test"):
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    known = {
        "encoders": "{XLM-R-large: tiny}",
        "trainings": "{CM: [], SQAC+CM: [sqac.json]}",
        "train": "train.json",
        "validation": "test.json",
        "variants": "[CQ#E]",
        "epochs": "1",
        "device": "cpu",
    }

    def call(name: str, *more: str) -> str:
        settings = [word for key, value in known.items() for word in ("--set", f"{key}={value}")]
        done = CliRunner().invoke(app, ["reproduce", name, *settings, *more], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return call


@pytest.mark.nightly
def test_a_cell_is_trained_and_stands_beside_the_papers(reproduce) -> None:
    assert "3 stages are pending" in reproduce("casimedicos/table-7", "--plan")
    document = json.loads(reproduce("casimedicos/table-7", "--json"))
    assert document["columns"] == ["CM", "SQAC+CM", "Avg."]
    (row,) = document["rows"]
    assert (row["row"], row["published"]) == ("XLM-R-large CQ#E", [71.74, 74.47, 72.75])
    assert row["values"][2] == pytest.approx(sum(row["values"][:2]) / 2, abs=0.01)
    assert row["differences"][0] == pytest.approx(row["values"][0] - 71.74)
    # The same cells, without training: another measure, and the mean.
    assert "0 stages are pending" in reproduce("casimedicos/table-15", "--plan")
    exact = json.loads(reproduce("casimedicos/table-15", "--json"))
    assert exact["rows"][0]["published"] == [37.34, 40.96, 40.05]
    mean = json.loads(reproduce("casimedicos/table-11", "--json"))
    assert (mean["columns"], mean["rows"][0]["published"]) == (["CasiMedicos"], [72.75])
    assert mean["rows"][0]["values"][0] == row["values"][2]
    negated = json.loads(reproduce("casimedicos/table-12", "--json"))
    assert negated["rows"][0]["values"] == [None, None, None], "no question of the file is negated"
    kinds = json.loads(reproduce("casimedicos/table-13", "--json"))
    assert kinds["columns"][:3] == ["CM empty", "CM incomplete", "CM exact"]
    assert len(kinds["columns"]) == len(kinds["rows"][0]["values"]) == 6
    assert 0 <= sum(kinds["rows"][0]["values"][:3]) <= 4
