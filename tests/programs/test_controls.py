"""The controls answer without a model, and the same way every time."""

import json
import random
from collections import Counter

import pytest

import medexam


@pytest.fixture
def control(tmp_path):
    """`control(program, rows)` -> the answers of a run over questions of one's own, by their ids."""

    def run(program, rows):
        (tmp_path / "exam.jsonl").write_text("\n".join(map(json.dumps, rows)))
        dataset = {"kind": "choice", "path": str(tmp_path / "exam.jsonl"), "columns": {"numbering": "one"}}
        spec = {"name": "controls", "dataset": dataset, "program": program}
        (done,) = medexam.run(spec, runs_dir=tmp_path / "runs", progress=False, track=False)
        return {key: said.answer for key, said in done.predictions.items()}

    return run


def row(key, *options):
    return {"id": key, "stem": f"Question {key}?", "options": options, "answer": 1}


ROWS = [row("a", "short", "as long", "as bold"), row("b", "tiny", "the longest"), row("c", "1", "2", "3", "4", "5")]


@pytest.mark.parametrize(
    ("program", "answers"),
    [
        ("longest", [2, 2, 1]),
        ({"kind": "blind", "option": 2}, [2, 2, 2]),
        ({"kind": "blind", "option": 5}, [None, None, 5]),
        ("abstain", [None, None, None]),
    ],
)
def test_a_control_answers_by_its_rule(control, program, answers) -> None:
    assert list(control(program, ROWS).values()) == answers


def test_random_depends_on_seed_and_key_alone(control) -> None:
    rows = [row(f"q{n}", "a", "b", "c", "d", "e") for n in range(1000)]
    first = control("random", rows)
    assert first == {key: random.Random(f"17:{key}").choice((1, 2, 3, 4, 5)) for key in first}
    assert control("random", rows[::-2]).items() <= first.items()
    counts = Counter(first.values())
    assert set(counts) == {1, 2, 3, 4, 5}
    assert all(150 < count < 250 for count in counts.values())
    assert control({"kind": "random", "seed": 18}, rows) != first


def test_random_in_order_is_one_stream_over_a_split(control) -> None:
    rows = [row(f"q{n}", "a", "b", "c", "d", "e") | {"split": "test" if n >= 10 else "dev"} for n in range(50)]
    answers = control({"kind": "random_in_order", "split": "test"}, rows)
    stream = random.Random(17)
    assert [answers[one["id"]] for one in rows[10:]] == [stream.randint(1, 5) for _ in range(40)]
    assert answers["q3"] is None
