"""A data set is known by what its questions say, apart from its golds, however its files are written."""

import json

import pytest
from task_data import items_of, write_casimedicos, write_cliniqlink

from fingerprint_cases import are_same, end_lines_with_crlf, prints_of, reordered


def test_casimedicos(tmp_path) -> None:
    first, other = (write_casimedicos(tmp_path / name, "en") for name in ("first", "other"))
    test = other / "EN" / "test.tsv"
    for path in (other / "EN").iterdir():
        end_lines_with_crlf(path)
    for name in ("casimedicos", "casimedicos_spans"):
        assert prints_of(name, other) == prints_of(name, first)
    plain, explained = prints_of("casimedicos", other), prints_of("casimedicos", other, explained=True)
    text = test.read_text()
    test.write_text(text.replace("He O", "She O").replace("He B-", "She B-"))
    assert prints_of("casimedicos", other) == plain, "the explanation is not shown"
    assert prints_of("casimedicos", other, explained=True)[0] != explained[0]
    test.write_text(text.replace("ANSWER: O\n2", "ANSWER: O\n1"))
    assert are_same(prints_of("casimedicos", other), plain) == (True, False)
    spans = prints_of("casimedicos_spans", first)
    test.write_text(text.replace("B-Premise", "B-Claim").replace("I-Premise", "I-Claim"))
    assert are_same(prints_of("casimedicos_spans", other), spans) == (True, False)


@pytest.mark.parametrize(
    ("file", "field", "value", "same"),
    [
        ("TF", "answer", "False", (True, False)),
        ("short_inverse", "incorrect_explanation", "the dose is 0.4 units", (True, False)),
        ("multi_hop_inverse", "incorrect_reasoning_step", ["- Step 2"], (True, False)),
        ("TF", "question", "Is the liver an organ", (False, True)),
        ("MC", "options", ["Gold", "Aspirin", "Sugar", "Salt"], (False, True)),
        ("short_inverse", "false_answer", "0.06 units", (False, True)),
        ("multi_hop_inverse", "reasoning", ["Step 1: no."], (False, True)),
    ],
)
def test_cliniqlink(tmp_path, file, field, value, same) -> None:
    first = prints_of("cliniqlink", write_cliniqlink(tmp_path / "first"))
    again = write_cliniqlink(tmp_path / "again", TF=json.dumps(reordered(items_of("TF")), indent=1))
    end_lines_with_crlf(again / "TF.json")
    assert prints_of("cliniqlink", again) == prints_of("cliniqlink", again, limit=2) == first
    items = items_of(file)
    items[0][field] = value
    assert are_same(first, prints_of("cliniqlink", write_cliniqlink(tmp_path / "changed", **{file: items}))) == same
