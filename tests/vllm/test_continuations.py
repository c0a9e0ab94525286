"""Log-probabilities from a live server: its ways against each other, and against the weights in this process."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import replace

import dspy
import pytest
from typer.testing import CliRunner

from medexam.cli import app
from medexam.datasets import load_exam_set
from medexam.model_calls import ContinuationLogprobs, ContinuationRequest
from medexam.programs import build_program
from medexam.questions import Question
from medexam.serve import background_loop, build_engine
from medexam.specs import DatasetSpec, EngineNeeds, LikelihoodSpec, ModelSpec
from recorded import recorded

pytestmark = pytest.mark.vllm

TOKEN = 0.02
"""Nats a token within which two ways of one server agree."""


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    """The 100 shortest questions of HEAD-QA v1 in English, of all disciplines: every way reads them in seconds."""
    if "MEDEXAM_DATA" not in os.environ:
        pytest.skip("MEDEXAM_DATA names no full data sets")
    exams = load_exam_set(DatasetSpec(name="headqa_v1", language="en")).questions
    return sorted(exams, key=lambda q: (len(q.stem) + 4 * sum(len(o.text) for o in q.options), q.key))[:100]


def ask(model: ModelSpec, spec: LikelihoodSpec, questions: Sequence[Question]) -> list[dspy.Prediction]:
    async def answer() -> list[dspy.Prediction]:
        engine = await build_engine(model, EngineNeeds(logprobs=True))
        program = build_program(spec, "en")
        lm = dspy.LM("medexam/m", **recorded(engine), cache=False)
        try:
            with dspy.context(lm=lm, disable_history=True):
                return list(await asyncio.gather(*(program.acall(question=question) for question in questions)))
        finally:
            await engine.aclose()

    return asyncio.run(answer())


def compare(one: Sequence[dspy.Prediction], other: Sequence[dspy.Prediction]) -> tuple[float, float]:
    """The largest difference of an option's score, and the share of equal answers."""
    pairs = list(zip(one, other, strict=True))
    far = max(
        abs(a.scores.option_scores[n] - b.scores.option_scores[n]) for a, b in pairs for n in a.scores.option_scores
    )
    return far, sum(a.answer == b.answer for a, b in pairs) / len(pairs)


def likelihood(**fields) -> LikelihoodSpec:
    return LikelihoodSpec(kind="likelihood", **fields)


def test_echo_and_trie_and_the_weights_themselves_agree_on_100_questions(endpoint, questions) -> None:
    served = ModelSpec(engine="vllm", endpoints=(endpoint,))
    read = {way: ask(served, likelihood(read_by=way), questions) for way in ("echo", "trie")}
    here = ask(ModelSpec(engine="embedded", dtype="float32"), likelihood(), questions)
    assert all(said.answer is not None for said in (*read["echo"], *read["trie"], *here))
    far, same = compare(read["echo"], read["trie"])
    assert far < TOKEN
    assert same >= 0.99
    far, same = compare(read["echo"], here)
    assert same >= 0.97
    # A server in bfloat16 differs by what bfloat16 does to the same weights here, and not by more.
    if far > TOKEN:
        rounded = ask(ModelSpec(engine="embedded", dtype="bfloat16"), likelihood(), questions[:20])
        assert far < 3 * compare(here[:20], rounded)[0]


def test_a_walk_reads_what_a_prompt_for_each_place_reads(endpoint, questions) -> None:
    async def read() -> tuple[list[ContinuationLogprobs], list[ContinuationLogprobs]]:
        """On the loop that the engine's connections belong to."""
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(endpoint,)), EngineNeeds(logprobs=True))
        reader = engine._reader
        offers = reader.methods, replace(reader.methods, walkable=False)
        try:
            readings: tuple[list[ContinuationLogprobs], list[ContinuationLogprobs]] = ([], [])
            for question in questions[-6:]:
                prompt = f"Question: {question.stem}\nAnswer:"
                asked = ContinuationRequest(texts=tuple(f" {o.text}" for o in question.options), read_by="trie")
                # A prompt of which 30 tokens are computed anew for each place, so that walks pay.
                missing = (30 - len((await reader.tokenise(prompt, asked)).prompt)) % offers[0].block
                for offer, found in zip(offers, readings, strict=True):
                    reader.methods = offer
                    found.append(await reader.read(missing * "a " + prompt, asked, None))
        finally:
            await engine.aclose()
        return readings

    walked, stepped = background_loop().run(read())
    assert all(one.computed_tokens < other.computed_tokens for one, other in zip(walked, stepped, strict=True))
    for one, other in zip(walked, stepped, strict=True):
        for option, same in zip(one.continuations, other.continuations, strict=True):
            assert option.tokens == same.tokens
            assert option.logprobs == pytest.approx(same.logprobs, abs=TOKEN)


def test_labels_are_the_same_by_one_place_and_by_echo(endpoint) -> None:
    questions = load_exam_set(DatasetSpec(name="headqa_sample", language="es", limit=8)).questions
    served = ModelSpec(engine="vllm", endpoints=(endpoint,))
    one, other = (ask(served, likelihood(read="label", read_by=way), questions) for way in ("label", "echo"))
    far, same = compare(one, other)
    assert far < TOKEN
    assert same == 1.0
    for a, b in zip(one, other, strict=True):
        assert a.scores.label_mass == pytest.approx(b.scores.label_mass, rel=0.05)
        assert 0 < a.scores.label_mass <= 1.001


def test_the_doctor_compares_the_ways(endpoint) -> None:
    result = CliRunner().invoke(app, ["doctor", endpoint, "--burst", "0", "--json"])
    assert result.exit_code == 0, result.output
    reads = {read["way"]: read for read in json.loads(result.stdout)["endpoints"][0]["reads"]}
    assert set(reads) == {"echo", "trie", "label"}
    assert all(read["refusal"] is None for read in reads.values())
    assert all(read["difference"] < TOKEN for way, read in reads.items() if way != "echo")


def test_a_run_leaves_nothing_unanswered(endpoint, tmp_path) -> None:
    sets = [
        "dataset.name=headqa_sample",
        "program.kind=likelihood",
        "model.engine=vllm",
        f"model.endpoints=[{endpoint}]",
    ]
    command = ["run", "headqa_v1", "--limit", "12", "--json", "--runs-dir", str(tmp_path)]
    result = CliRunner().invoke(app, command + [part for one in sets for part in ("--set", one)])
    assert result.exit_code == 0, result.output
    (run,) = json.loads(result.stdout)
    metrics = run["metrics"]
    assert (metrics["n"], metrics["unanswered"]) == (12, 0)
    assert 0 <= metrics["option_scores"]["expected_calibration_error"] <= 1
    environment = json.loads((tmp_path / run["run_id"] / "environment.json").read_text())
    assert sum(environment["engine"]["details"]["read_by"].values()) == 12
