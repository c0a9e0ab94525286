"""What steps say by a key, run by the command: limits, ties, dropped options, numbered passages, demonstrations."""

import json
from types import SimpleNamespace

import pytest
import yaml

import medexam as package
from one_question import BY_QUERY, CHOICE, LINES, OPTIONS, STEM, make_engine
from scripted_engines import LAST_MADE

ANSWER = {"ask": "question, options -> answer: int"}
FURTHER = {"ask": "stem, options -> answer: int"}


@pytest.fixture
def run(medexam, tmp_path):
    """`run(steps, reply)` -> the stored answer to the question, and the last turn of each call."""

    def call(steps, reply, **program):
        row = {"stem": STEM, "options": list(OPTIONS), "answer": 1}
        (tmp_path / "exam.jsonl").write_text(json.dumps(row) + "\n")
        engine = make_engine(reply)
        spec = {
            "name": "asked",
            "dataset": {"path": "exam.jsonl", "language": "en", **CHOICE},
            "model": {"engine": LAST_MADE, "temperature": 0.7},
            "program": {"steps": steps, **program},
        }
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
        code, _, errors = medexam("run", "spec.yaml", "--fresh")
        assert code == 0, errors
        folder = max((tmp_path / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        line = json.loads((folder / "predictions.jsonl").read_text())
        turns = [one.messages[-1]["content"] for one in engine.dialogues]
        choices = [one.choices for one in engine.dialogues]
        return SimpleNamespace(answer=line.get("answer"), turns=turns, choices=choices, line=line)

    return call


def blocks(**fields):
    """Write a reply that holds these fields."""
    return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in {**fields, "completed": ""}.items())


@pytest.mark.parametrize(
    ("confidence", "limit", "calls", "answer"),
    [(0.4, "below", 2, 4), (0.6, "below", 1, 2), (0.9, "above", 2, 4), ("low", "below", 1, None)],
)
def test_a_number_decides_by_a_limit_and_none_leaves_it_unanswered(run, confidence, limit, calls, answer) -> None:
    steps = [
        {"ask": "question, options -> answer: int, confidence: float"},
        {"when": {"field": "confidence", limit: 0.6}, "do": [FURTHER]},
    ]
    said = run(steps, lambda turn: blocks(answer=2 if "confidence" in turn else 4, confidence=confidence))
    assert (len(said.turns), said.answer) == (calls, answer)


@pytest.mark.parametrize(("second", "calls"), [(3, 3), (2, 2)])
def test_a_tie_alone_is_broken(run, second, calls) -> None:
    steps = [{"all": [ANSWER, ANSWER], "combine": "vote"}, {"when": "tied", "do": [FURTHER]}]
    replies = iter([2, second])
    said = run(steps, lambda _: blocks(answer=next(replies, 5)))
    assert (len(said.turns), said.answer) == (calls, 5 if calls == 3 else 2)


def test_an_agreement_of_samples_is_a_field(run) -> None:
    steps = [{**ANSWER, "samples": 4}, {"when": {"field": "agreement", "below": 0.6}, "do": [FURTHER]}]
    replies = iter([1, 2, 3, 1])
    said = run(steps, lambda _: blocks(answer=next(replies, 5)))
    assert (len(said.turns), said.answer) == (5, 5)


def test_a_dropped_option_is_not_shown_and_the_others_keep_their_numbers(run) -> None:
    steps = [{"ask": "question, options -> worst: int"}, {"drop": "worst"}, {**ANSWER, "answer_format": "guided"}]
    said = run(steps, lambda turn: blocks(worst=2) if "worst" in turn else "5")
    assert said.choices == [None, ("1", "3", "4", "5")]
    assert LINES in said.turns[0]
    assert "\n".join(line for line in LINES.splitlines() if not line.startswith("2")) in said.turns[1]
    assert said.answer == 5
    assert run(steps, lambda _: blocks(worst=9)).line["status"] == "unanswered"


@pytest.mark.parametrize(("reads", "count"), [("question, options, hint", 1), ("question, options", 2)])
def test_a_step_that_none_reads_or_cannot_look_up_is_warned_of(reads, count, tmp_path) -> None:
    steps = [{"ask": "question -> hint", "by": "react"}, {"ask": f"{reads} -> answer: int"}]
    spec = {"name": "x", "dataset": {"name": "headqa_sample", "limit": 1}, "program": {"steps": steps}}
    (cell,) = package.plan(spec, runs_dir=tmp_path).cells
    assert str(cell["warnings"]).count("program.steps.0") == count


def test_options_are_judged_one_by_one(run) -> None:
    judge = {"ask": "question, option -> plausible: bool"}
    steps = [{"each": "options", "name": "option", "keep": "plausible", "do": [judge]}, {"use": "zero_shot"}]
    said = run(
        steps,
        lambda turn: (
            blocks(plausible="]]\nAre" not in turn.replace("1. ", "").replace("2. ", ""))
            if "plausible" in turn
            else "{Answer: 4}"
        ),
    )
    assert [
        f"{number}. {text}" in turn for number, (text, turn) in enumerate(zip(OPTIONS, said.turns, strict=False), 1)
    ] == [True] * 5
    assert said.turns[-1] == "\n".join([STEM, *LINES.splitlines()[2:]])
    assert said.answer == 4


def test_passages_are_numbered(run, finder) -> None:
    steps = [
        {"retrieve": "stem", "k": 2, "numbered": True},
        {"ask": "question, options, passages -> source: int, answer: int"},
    ]
    said = run(steps, blocks(source=2, answer=3), retriever=finder(BY_QUERY))
    assert f"[1] On {STEM}, 1.\n\n[2] On {STEM}, 2." in said.turns[0]
    assert (said.answer, len(said.line["passages"])) == (3, 2)


@pytest.mark.nightly
def test_the_nearest_demonstrations_are_shown(run) -> None:
    texts = ["Where is insulin made?", "Inhibitory postsynaptic potentials:", "Who wrote the Canon of Medicine?"]
    demos = [{"question": text, "options": "1. A\n2. B", "answer": 1} for text in texts]
    said = run([{**ANSWER, "demos": demos, "nearest": 1}], blocks(answer=3))
    assert said.answer == 3
    engine_words = json.dumps(said.line["calls"][0]["messages"])
    assert [text in engine_words for text in texts] == [False, True, False]


def test_what_a_limit_cannot_compare_is_refused(medexam, tmp_path) -> None:
    steps = [ANSWER, {"when": {"field": "stem", "below": 1}, "do": [FURTHER]}]
    (tmp_path / "spec.yaml").write_text(
        yaml.safe_dump({"name": "x", "dataset": "headqa_sample", "program": {"steps": steps}})
    )
    code, _, errors = medexam("plan", "spec.yaml")
    assert code == 2
    assert "program.steps.1.when: stem is str: name a field that is float or int" in errors
