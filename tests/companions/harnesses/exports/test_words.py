"""Runs that answer in words as files of lm-evaluation-harness and for the hub, read back."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from medexam.companions.harnesses.exports.writing import export_runs
from medexam.companions.harnesses.imports.importing import Importer
from medexam.errors import SpecError
from medexam.specs import DatasetSpec
from task_data import write_cliniqlink, write_submission

pytestmark = pytest.mark.model
pytest.importorskip("sentence_transformers")


@pytest.fixture
def importer(tmp_path) -> Importer:
    return Importer(
        DatasetSpec(name="cliniqlink", path=write_cliniqlink(tmp_path / "data")), tmp_path / "runs", most_unmatched=0.0
    )


def test_answers_in_words_are_read_back_as_they_were(importer, tmp_path) -> None:
    folder = write_submission(tmp_path / "team", true_false=["True", ""], short=["Benign growth."])
    (first,) = importer.take(folder, print)
    samples, results = export_runs([first.run], "lm-eval", tmp_path / "out")
    assert results.is_file()
    (again,) = importer.take(samples, print)
    assert again.account["by"] == {"key": 8}
    texts = [{key: each.text for key, each in taken.run.folder.read_predictions().items()} for taken in (first, again)]
    assert texts[0] == texts[1]
    assert first.run.metrics.measures == again.run.metrics.measures


def test_the_hub_gets_texts_and_scores(importer, tmp_path) -> None:
    (taken,) = importer.take(write_submission(tmp_path / "team"), print)
    table, card = export_runs([taken.run], "hub", tmp_path / "out")
    rows = {row["key"]: row for row in pq.read_table(table).to_pylist()}
    assert len(rows) == 8
    assert rows["cliniqlink/list/1"]["gold"] == ["Liver", "Spleen"]
    assert dict(rows["cliniqlink/short/1"]["scores"])["published"] == 1.0
    assert "`scores` maps each measure" in Path(card).read_text()


def test_a_format_of_numbered_options_is_refused(importer, tmp_path) -> None:
    (taken,) = importer.take(write_submission(tmp_path / "team"), print)
    with pytest.raises(SpecError, match="choose --to lm-eval or hub"):
        export_runs([taken.run], "inspect", tmp_path / "out")
