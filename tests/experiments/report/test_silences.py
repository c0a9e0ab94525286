"""The sentence below a table names the commonest cause of missing answers, and advises what would change it."""

from dataclasses import replace

import pytest
import yaml

from medexam.experiments import Runner, plan_experiment
from medexam.experiments.report.silences import silences
from medexam.predictions import Reason, Status
from watching import Silent

ZERO_SHOT = {"kind": "zero_shot"}
FEW_SHOT = {"kind": "few_shot"}
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}
LIKE = ', such as "It may be the first."'
GUIDE = "; program.answer_format=guided makes that impossible."
ROOM = "; a larger program.max_tokens leaves them room."
TYPED = {"kind": "signature", "signature": "question, options -> answer: int"}
UNTYPED = {"kind": "signature", "signature": "question, options -> answer"}
READ = "; an answer must be in the format of the module's adapter, {}, and be one of the options."


def _unanswered(reasons, reply="It may be the first."):
    """What replaces predictions, question by question, with these reasons in turn."""
    turns = iter(reasons * 20)

    def fields(_):
        return {"status": Status.UNANSWERED, "answer": None, "reason": next(turns), "reply": reply}

    return fields


@pytest.mark.parametrize(
    ("program", "reasons", "sentence"),
    [
        (ZERO_SHOT, [Reason.UNPARSED], "20 of 20 replies without a legal answer" + LIKE + GUIDE),
        (
            FEW_SHOT,
            [Reason.TRUNCATED],
            "20 of 20 replies cut at their budget" + LIKE + GUIDE,
        ),
        (GUIDED, [Reason.UNPARSED], "20 of 20 replies without a legal answer" + LIKE + "."),
        (
            GUIDED,
            [Reason.TRUNCATED],
            "20 of 20 replies cut at their budget" + LIKE + ROOM,
        ),
        (TYPED, [Reason.UNPARSED], "20 of 20 replies without a legal answer" + LIKE + GUIDE),
        (
            UNTYPED,
            [Reason.UNPARSED],
            "20 of 20 replies without a legal answer" + LIKE + READ.format("chat"),
        ),
        (
            {**TYPED, "adapter": "json"},
            [Reason.UNPARSED],
            "20 of 20 replies without a legal answer" + LIKE + READ.format("json"),
        ),
    ],
)
def test_every_program_that_asks_is_told_what_its_replies_lack(program, reasons, sentence, make_run) -> None:
    run = make_run(program, "u", extra=_unanswered(reasons))
    assert silences([run]) == [f"{run.program}: {sentence}"]


@pytest.mark.parametrize(
    ("reasons", "reply", "sentence"),
    [
        ([Reason.FILTERED], None, "20 of 20 replies withheld by the provider's filter."),
        ([Reason.REFUSED], "I cannot.", '20 of 20 questions refused by the model, such as "I cannot.".'),
        ([Reason.EMPTY], None, "20 of 20 replies without text" + GUIDE),
        ([Reason.CONTEXT_OVERFLOW], None, "20 of 20 prompts too long for the model's context."),
        (
            [Reason.TRUNCATED_THINKING],
            None,
            "20 of 20 replies cut at their budget while thinking (truncated_thinking)" + ROOM,
        ),
        (
            [Reason.FILTERED, Reason.FILTERED, Reason.FILTERED, Reason.UNPARSED, Reason.EMPTY],
            None,
            "12 of 20 replies withheld by the provider's filter (replies without a legal answer: 4, "
            "replies without text: 4).",
        ),
        ([Reason.ABSTAINED], None, None),
    ],
)
def test_the_commonest_cause_decides_what_is_advised(reasons, reply, sentence, make_run) -> None:
    run = make_run(ZERO_SHOT, "u", extra=_unanswered(reasons, reply))
    assert silences([run]) == ([f"zero_shot: {sentence}"] if sentence else [])


@pytest.mark.parametrize(
    ("engine", "advice"),
    [
        ({"guided_by": "prefill"}, GUIDE),
        ({"guided_by": "tool_choice"}, GUIDE),
        ({"guided_by": "words"}, "."),
        ({"guided_by": None}, "."),
        ({}, "."),
    ],
)
def test_guided_answers_are_advised_only_where_the_engine_enforces_them(engine, advice, make_run) -> None:
    run = replace(make_run(ZERO_SHOT, "u"), environment={"engine": engine})
    (sentence,) = silences([run])
    assert sentence.endswith('the first"' + advice)


def test_a_prompt_that_asks_for_no_format_is_named(make_run) -> None:
    run = make_run(ZERO_SHOT, "u")
    for instructions, named in (("Answer.", True), ("Answer with {Answer: [number]}.", False)):
        known = {**run.record.identity, "words": {"instructions": instructions, "examples": []}}
        (sentence,) = silences([replace(run, record=replace(run.record, identity=known))])
        assert sentence.endswith("program.prompt paper lacks $form, so it does not ask for the answer format.") is named


def test_a_module_of_ones_own_is_told_with_an_example_of_a_reply(tmp_path) -> None:
    path = tmp_path / "replies.yaml"
    path.write_text(yaml.safe_dump({"*": "The second one,\nI think."}))
    document = {
        "name": "mine",
        "dataset": {"name": "headqa_sample", "limit": 10},
        "model": {"engine": "scripted", "path": str(path)},
        "program": UNTYPED,
    }
    (run,), _ = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
    assert silences([run]) == [
        'signature: 10 of 10 replies without a legal answer, such as "The second one, I think."' + READ.format("chat")
    ]
