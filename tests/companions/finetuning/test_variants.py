"""`medexam data variants`: spans of a SQuAD-form file in the four variants of the archive's documents."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from medexam.cli import app
from medexam.companions.casimedicos.documents import read_casimedicos
from medexam.datasets import read_squad
from medexam.errors import DatasetError

SAMPLE = Path(__file__).parents[1] / "casimedicos" / "sample"


@pytest.fixture
def archive(tmp_path):
    """The sample's Spanish documents as an unpacked archive; an English one stands for its training split."""
    shutil.copytree(SAMPLE / "ES", tmp_path / "archive" / "ES")
    shutil.copy(SAMPLE / "EN" / "dev.tsv", tmp_path / "archive" / "ES" / "train.tsv")
    return tmp_path / "archive"


def rows(archive):
    """The sample's documents as the hub's rows: a context with more white space, and a span of the explanation."""
    for number, document in enumerate(read_casimedicos(archive, "es")):
        words = document.explanation.split()
        span, start = "  ".join(words[3:9]), len("Caso.\n" + "  ".join(words[:3]) + "  ")
        yield {
            "id": number,
            "context": "Caso.\n" + "  ".join(words),
            "question": document.question,
            "answers": {"text": [span], "answer_start": [start]},
        }


def call(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["data", "variants", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_each_variant_is_a_file_whose_spans_stand_at_their_offsets(archive, tmp_path) -> None:
    spans = tmp_path / "spans.json"
    strange = {"id": "x", "context": "Nada.", "question": "?", "answers": {"text": ["Nada"], "answer_start": [0]}}
    given = [*rows(archive), strange]
    spans.write_text(json.dumps(given))
    told = json.loads(call(spans, "--out", tmp_path / "out", "--path", archive, "--json"))
    assert (told["questions"], told["unplaced"]) == (len(given) - 1, ["x"])
    assert list(told["files"]) == ["CQ#E", "CQP#E", "Q#CE", "QP#CE"]
    for name, path in told["files"].items():
        items = read_squad(Path(path))
        assert {item.variant for item in items} == {name}
        assert not any(item.anomalies for item in items)
        assert [item.answers[0].text for item in items] == [
            " ".join(row["answers"]["text"][0].split()) for row in given[:-1]
        ]
    assert " @@ " in read_squad(Path(told["files"]["QP#CE"]))[0].question


def test_files_without_spans_are_refused_with_the_file_that_is_needed(archive, tmp_path) -> None:
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps([{"id": 1, "context": "a b", "question": "?", "answers": []}]))
    for path in (tmp_path / "none.json", next(SAMPLE.rglob("*.tsv")), foreign):
        with pytest.raises(DatasetError, match="es_train_casimedicos_squad"):
            call(path, "--out", tmp_path, "--path", archive)
