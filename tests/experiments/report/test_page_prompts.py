"""The conversations on a page: real runs over the scripted engine, and the prompts that they were asked."""

from pathlib import Path

import pytest
import yaml

from medexam.experiments import Runner, plan_experiment, plan_resume
from medexam.experiments.plan.conversations import conversation
from medexam.experiments.report.page.blocks import build_blocks
from medexam.experiments.report.page.entries import read_answers
from medexam.predictions import Failure, Prediction, Reason, Status
from medexam.programs.replay import replay
from medexam.signatures import render_question
from page_blocks import unpack
from watching import Silent

CORPUS = Path(__file__).parents[2] / "retrievers" / "corpus_sample" / "passages.jsonl.gz"


@pytest.fixture
def runs_of(tmp_path, monkeypatch):
    """`runs_of(program, ...)` -> stored runs of four questions, every reply `{Answer: 1}`."""
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump({"*": "{Answer: 1}"}))

    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))

    def carry_out(*programs):
        document = {
            "name": "shown",
            "dataset": {"name": "headqa_sample", "limit": 4},
            "model": {"engine": "scripted", "path": str(replies), "temperature": 0.7},
            "matrix": {"program": list(programs)},
        }
        runs, stop = Runner(plan_experiment(document, {}, runs_dir=tmp_path / "runs"), Silent()).run()
        assert stop is None
        return runs

    return carry_out


def _parts(runs):
    return [unpack(block) for block in build_blocks(read_answers(runs), {}) if block.name.startswith("part-")]


def test_a_question_has_what_each_call_sent_and_received(runs_of) -> None:
    runs = runs_of({"kind": "zero_shot"}, {"kind": "few_shot"}, {"kind": "chain_of_thought"}, {"kind": "longest"})
    (part,) = _parts(runs)
    planned = plan_resume(str(runs[0].folder.path), runs_dir=runs[0].folder.path.parent).cells[-1]
    for item, question in zip(part["items"], planned.question_set.questions, strict=True):
        zero_shot, few_shot, reasoned, longest = item["answers"]
        (call,) = zero_shot["calls"]
        turns = [part["turns"][place] for place in call["turns"]]
        assert [role for role, _ in turns] == [turn["role"] for turn in replay(planned.program, question, ())[0][0]]
        assert render_question(question) in turns[-1][1]
        assert call["reply"] == "{Answer: 1}"
        assert len(few_shot["calls"][0]["turns"]) > len(call["turns"])
        assert reasoned["calls"][-1]["reply"] == "{Answer: 1}"
        assert "calls" not in longest
        assert not {"reply", "rationale"} & {*zero_shot, *few_shot, *reasoned}
    assert len(part["turns"]) == len({tuple(turn) for turn in part["turns"]}), "what prompts share stands once"


def test_votes_on_one_prompt_show_what_running_the_program_again_shows(runs_of) -> None:
    (run,) = runs_of({"kind": "zero_shot", "samples": 3})
    planned = plan_resume(str(run.folder.path), runs_dir=run.folder.path.parent).cells[-1]
    for question in planned.question_set.questions:
        said = run.folder.read_predictions()[question.key]
        found = conversation(planned.program, question, said)
        texts = [each.text for each in said.generations]
        assert [exchange.turns for exchange in found] == replay(planned.program, question, texts)[0]
        assert [exchange.reply for exchange in found] == texts


@pytest.mark.parametrize(
    "program",
    [
        {"kind": "chain_of_thought", "answer_format": "guided"},
        {"kind": "zero_shot", "orders": "cyclic"},
        {"kind": "zero_shot", "samples": 3},
        {"kind": "retrieve_then_answer", "retriever": {"kind": "bm25", "corpus": str(CORPUS)}},
    ],
)
def test_of_a_question_that_failed_the_first_prompt_is_shown(runs_of, program) -> None:
    (run,) = runs_of(program)
    planned = plan_resume(str(run.folder.path), runs_dir=run.folder.path.parent).cells[-1]
    question = planned.question_set.questions[0]
    shared = {"question": question.key, "program": "any", "spec_digest": "any"}
    failed = Prediction(**shared, status=Status.FAILED, failure=Failure(kind="LMTimeoutError", message="late"))
    too_long = Prediction(**shared, status=Status.UNANSWERED, reason=Reason.CONTEXT_OVERFLOW, passages_cut=10**6)
    for said in (failed, too_long):
        (sent,) = conversation(planned.build_preview([question]), question, said)
        assert question.stem in sent.turns[-1]["content"]
        assert sent.reply is None


def test_a_run_whose_prompts_have_changed_says_why_it_shows_none(runs_of, tmp_path) -> None:
    (run,) = runs_of({"kind": "zero_shot"})
    spec = run.folder.path / "spec.json"
    spec.write_text(spec.read_text().replace(run.record.spec_digest, "0" * 12))
    run.folder.__class__(run.folder.path).read_record()
    (answers,) = read_answers([run])
    assert "what its answers depend on has changed" in answers.conversations.missing
    assert not answers.conversations.of(next(iter(answers.predictions.values())))
