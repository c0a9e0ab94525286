"""Tables of fine-tuned encoders: a tiny encoder is trained in place of the paper's, once for all tables."""

import json

import pytest

from retrievers.tiny_models import save_bert

pytestmark = pytest.mark.nightly


@pytest.fixture
def reproduce(medexam, tmp_path):
    """`reproduce("casimedicos/table-7")`: the rows of the table by name, and what was told."""
    row = {"question": "what is", "context": "the heart is blood"}
    rows = [row | {"id": str(n), "answers": [{"text": "blood", "answer_start": 13}]} for n in range(4)]
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(each | {'variant': 'CQ#E'})}\n" for each in rows))
    save_bert(tmp_path / "base", 1)
    settings = (
        "encoders={XLM-R-large: base}",
        "trainings={CM: [], SQAC+CM: [train.jsonl]}",
        "variants=[CQ#E]",
        *("train=[train.jsonl]", "validation=train.jsonl", "epochs=1", "device=cpu"),
    )

    def call(name):
        flags = [word for setting in settings for word in ("--set", setting)]
        code, out, err = medexam("reproduce", name, *flags, "--runs-dir", "runs", "--json")
        assert code == 0, err
        document = json.loads(out)
        return document["columns"], {row["row"]: row for row in document["rows"]}, err

    return call


def test_scores_stand_beside_the_papers_and_nothing_is_trained_twice(reproduce) -> None:
    columns, rows, err = reproduce("casimedicos/table-7")
    assert columns == ["CM", "SQAC+CM", "Avg."]
    row = rows["XLM-R-large CQ#E"]
    first, second, mean = row["values"]
    assert mean == pytest.approx((first + second) / 2, abs=0.01)
    assert row["published"] == [71.74, 74.47, 72.75]
    assert row["differences"][0] == pytest.approx(first - 71.74)
    assert "XLM-R-large, SQAC+CM, CQ#E: train.jsonl" in err
    columns, rows, err = reproduce("casimedicos/table-13")
    assert columns[:3] == ["CM empty", "CM incomplete", "CM exact"]
    assert all(0 <= count <= 4 for count in rows["XLM-R-large CQ#E"]["values"])
    assert "train.jsonl" not in err
    columns, rows, err = reproduce("casimedicos/table-11")
    assert columns == ["CasiMedicos"]
    assert rows["XLM-R-large"]["values"] == [mean]
    assert rows["XLM-R-large"]["published"] == [72.75]
    assert "left out MIR Asturias: " in err
