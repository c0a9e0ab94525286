"""Cells that are asked in blocks until their comparisons are decided."""

import json

import pytest

import medexam
from medexam.errors import RunFolderError, SpecError


@pytest.fixture
def document(replies):
    """Three scripted models: right one time in four, always right, and right where the first is but for one."""
    questions = medexam.load_questions("headqa_sample")

    def model(name, right):
        table = {}
        for place, question in enumerate(questions):
            gold = questions.answers[question.key]
            table[question.stem] = f"{{Answer: {gold if right(place) else gold % 4 + 1}}}"
        return replies(table, name)

    return {
        "name": "few",
        "dataset": {"name": "headqa_sample"},
        "stop_when": {"difference": 10},
        "matrix": {
            "model": [
                model("base", lambda place: place % 4 == 0),
                model("good", lambda _: True),
                model("same", lambda place: place % 4 == 0 and place != 8),
            ]
        },
    }


def record(run):
    return json.loads((run.folder / "spec.json").read_text())


def test_comparisons_end_early_and_every_look_is_kept(ask, document, asked) -> None:
    runs = ask(document)
    base, good, _ = runs
    ended = [record(run)["stopped"] for run in runs]
    assert (runs.stop, runs.complete) == (None, True)
    assert [one["ended"] for one in ended] == ["all comparisons ended", "better", "no difference"]
    assert ended[1]["asked"] < ended[2]["asked"] == ended[0]["asked"] < 120
    assert len(asked.take()) == sum(one["asked"] for one in ended)
    for run, one in zip(runs, ended, strict=True):
        assert run.n == len(run.predictions) == one["asked"]
        assert (one["questions"], one["baseline"]) == (120, base.id)
        assert set(good.predictions) <= set(run.predictions), "blocks are the same questions in every cell"
    assert [look["asked"] for look in ended[1]["looks"]] == list(range(10, ended[1]["asked"] + 1, 10))
    last, before, after = ended[1]["looks"][-1], base.predictions, good.predictions
    assert last["gained"] == sum(before[key].answer != after[key].answer for key in after)
    level = ended[1]["level"]
    assert (level, last["lost"], last["better"] >= 2 / level, last["interval"][0] > 0) == (0.025, 0, True, True)
    assert f"topped after {ended[1]['asked']} of 120 questions" in (good.folder / "report.md").read_text()
    assert "stopped after" in repr(medexam.compare(base, good))

    again = ask(document)
    assert (asked.prompts, [record(run) for run in again]) == ([], [record(run) for run in runs])
    del document["stop_when"]
    whole = ask(document)
    assert len(asked.prompts) + sum(one["asked"] for one in ended) == 360
    assert [(run.id, run.n, record(run)["stopped"]) for run in whole] == [(run.id, 120, None) for run in runs]


def test_a_budget_ends_it_between_blocks_and_the_same_command_goes_on(ask, document, asked) -> None:
    runs = ask(document, limits=medexam.Limits(tokens=3000))
    before = len(asked.take())
    assert (runs.stop, before > 0, [run.complete for run in runs]) == ("tokens", True, [False] * 3)
    assert record(runs[0])["stopped"]["ended"] is None
    with pytest.raises(RunFolderError, match="cannot continue alone"):
        runs[0].resume(progress=False)
    continued = ask(document)
    assert continued.stop is None
    assert before + len(asked.prompts) == sum(run.n for run in continued)
    ended = [record(run)["stopped"]["ended"] for run in continued]
    assert ended == ["all comparisons ended", "better", "no difference"]


def test_a_server_that_is_gone_ends_it_after_one_block(ask, document, asked, failing) -> None:
    failing("")
    runs = ask(document)
    assert (runs.stop, len(asked.prompts), [run.complete for run in runs]) == (None, 30, [False] * 3)


def test_a_named_baseline_is_compared_with(ask, document) -> None:
    document["matrix"] = {"program": ["longest", "random", {"kind": "blind", "option": 1}]}
    document["stop_when"] = {"difference": 30, "baseline": "random"}
    runs = ask(document)
    assert {record(run)["stopped"]["baseline"] for run in runs} == {runs["random"].id}


def test_too_few_questions_are_said_before_anything_is_asked(document) -> None:
    planned = repr(medexam.plan(document, stop_when__difference=3))
    assert "detect a difference of 3 points with less than 80 % power" in " ".join(planned.split())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"matrix": {}}, "this spec has one"),
        ({"matrix": {"dataset.years": [[2013], [2014]]}}, "select different ones"),
        ({"stop_when": {"difference": 5, "baseline": "few_shot"}}, "no cell is called 'few_shot'"),
        ({"stop_when": {"difference": 5, "baseline": "zero_shot"}}, "3 cells are called 'zero_shot'"),
        ({"stop_when": {"difference": 0}}, "stop_when.difference: input should be greater than 0"),
    ],
)
def test_what_cannot_be_compared_is_refused(document, change, said) -> None:
    with pytest.raises(SpecError, match=said):
        medexam.plan({**document, **change})
