"""A data set is known by what its questions say, apart from its golds, however its files are written."""

import json

import pytest
from task_data import items_of, write_casimedicos, write_cliniqlink

from medexam.benchmarks import find_benchmark
from medexam.specs import DatasetSpec, validate
from table_cases import write_squad


def _prints(name, path, **settings) -> tuple[str, str]:
    """Of the questions, and of the golds."""
    spec = validate(DatasetSpec, {"name": name, "path": path, **settings})
    found = find_benchmark(spec).load(spec)
    return found.fingerprint, found.golds_fingerprint


def _same(one, two) -> tuple[bool, ...]:
    """Whether the questions are the same, and whether the golds are."""
    return tuple(first == second for first, second in zip(one, two, strict=True))


def _with_crlf(path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def _reordered(value):
    """The same JSON, the keys of its objects in the opposite order."""
    if isinstance(value, dict):
        return {key: _reordered(value[key]) for key in reversed(value)}
    return [_reordered(each) for each in value] if isinstance(value, list) else value


def test_casimedicos(tmp_path) -> None:
    first, other = (write_casimedicos(tmp_path / name, "en") for name in ("first", "other"))
    test = other / "EN" / "test.tsv"
    for path in (other / "EN").iterdir():
        _with_crlf(path)
    for name in ("casimedicos", "casimedicos_spans"):
        assert _prints(name, other) == _prints(name, first)
    plain, explained = _prints("casimedicos", other), _prints("casimedicos", other, explained=True)
    text = test.read_text()
    test.write_text(text.replace("He O", "She O").replace("He B-", "She B-"))
    assert _prints("casimedicos", other) == plain, "the explanation is not shown"
    assert _prints("casimedicos", other, explained=True)[0] != explained[0]
    test.write_text(text.replace("ANSWER: O\n2", "ANSWER: O\n1"))
    assert _same(_prints("casimedicos", other), plain) == (True, False)
    spans = _prints("casimedicos_spans", first)
    test.write_text(text.replace("B-Premise", "B-Claim").replace("I-Premise", "I-Claim"))
    assert _same(_prints("casimedicos_spans", other), spans) == (True, False)


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
    first = _prints("cliniqlink", write_cliniqlink(tmp_path / "first"))
    again = write_cliniqlink(tmp_path / "again", TF=json.dumps(_reordered(items_of("TF")), indent=1))
    _with_crlf(again / "TF.json")
    assert _prints("cliniqlink", again) == _prints("cliniqlink", again, limit=2) == first
    items = items_of(file)
    items[0][field] = value
    assert _same(first, _prints("cliniqlink", write_cliniqlink(tmp_path / "changed", **{file: items}))) == same


def test_spans(tmp_path) -> None:
    rows = [("a", "It is a cold, for he coughs.", "Why?", "he coughs"), ("b", "Heat it was.", "Why?", "Heat")]
    first = _prints("casimedicos_spans", write_squad(tmp_path / "a.jsonl", rows))
    turned = write_squad(tmp_path / "b.jsonl", rows[::-1])
    _with_crlf(turned)
    assert _prints("casimedicos_spans", turned) == first
    gold = _prints("casimedicos_spans", write_squad(turned, [rows[0], (*rows[1][:3], "was")]))
    assert _same(gold, first) == (True, False)
    text = _prints("casimedicos_spans", write_squad(turned, [rows[0], ("b", "Heat it was!", "Why?", "Heat")]))
    assert _same(text, first) == (False, True)
