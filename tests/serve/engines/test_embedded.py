"""The embedded engine against transformers, called here for one prompt at a time."""

import asyncio
import gc
from math import exp
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_calls import ask, replies, reply, reply_blocking
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

import medexam as package
from medexam.datasets import load_exam_set
from medexam.errors import (
    ContextLengthError,
    UnsupportedFeatureError,
)
from medexam.model_calls import ContinuationRequest, Dialogue
from medexam.serve import EmbeddedEngine
from medexam.specs import DatasetSpec
from waiting import until

pytestmark = pytest.mark.model

SYSTEM = (
    "You are an expert in specialized scientific and health disciplines. Respond to the following multiple-choice "
    "question:\nProvide the answer in the following JSON format: {Answer: [number]}.\n"
    "For example, if the answer is 1, write: {Answer: 1}"
)
QUESTIONS = load_exam_set(DatasetSpec(name="headqa_sample", language="en", limit=40)).questions
STEMS = [question.stem for question in QUESTIONS]
DIGITS = ["1", "2", "3", "4"]
NATS = 1e-4
"""How far a log-probability may be from transformers' own."""


class Reference:
    """transformers alone: one prompt at a time, without a batch, padding or cache of ours."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def render(self, dialogue: Dialogue) -> str:
        turns = dialogue.messages
        written = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return str(written) + dialogue.opening

    def encode(self, text: str) -> torch.Tensor:
        ids: torch.Tensor = self.tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
        return ids

    def next_logprobs(self, text: str) -> torch.Tensor:
        with torch.inference_mode():
            logprobs: torch.Tensor = self.model(self.encode(text)).logits[0, -1].double().log_softmax(-1)
        return logprobs

    def token(self, word: str) -> int:
        (token,) = self.tokenizer(word, add_special_tokens=False).input_ids
        return int(token)

    def greedy(self, dialogue: Dialogue) -> list[int]:
        ids = self.encode(self.render(dialogue))
        with torch.inference_mode():
            written: list[int] = self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=dialogue.sampling["max_tokens"],
                do_sample=False,
                eos_token_id=2,
                pad_token_id=2,
            )[0, ids.shape[1] :].tolist()
        return written

    def continuation(self, prompt: str, text: str) -> list[float]:
        """The log-probability of each token of a text behind a prompt."""
        start, ids = self.encode(prompt).shape[1], self.encode(prompt + text)
        with torch.inference_mode():
            logprobs = self.model(ids).logits[0].float().log_softmax(-1)
        return [logprobs[place - 1, ids[0, place]].item() for place in range(start, ids.shape[1])]


@pytest.fixture(scope="module")
def tiny(tiny_llama: Path) -> Reference:
    return Reference(tiny_llama)


@pytest.fixture
def pair(tiny_engine: EmbeddedEngine, tiny: Reference) -> tuple[EmbeddedEngine, Reference]:
    """An engine, and transformers with the same weights."""
    return tiny_engine, tiny


def together(engine: EmbeddedEngine, dialogues: list[Dialogue]) -> list[Any]:
    return asyncio.run(replies(engine, dialogues))


def test_a_choice_is_the_likeliest_next_token(pair) -> None:
    # A digit after a space is two tokens: whichever side of the boundary the space is on, the digit is read.
    engine, reference = pair
    for opening, written in (("{Answer: ", "{}"), ("{Answer:", " {}"), ("", "{}")):
        choices = [written.format(digit) for digit in DIGITS]
        asked = [ask(stem, system=SYSTEM, opening=opening, choices=choices) for stem in STEMS[:8]]
        tokens = [reference.token(digit) for digit in DIGITS]
        for one, answer in zip(asked, together(engine, asked), strict=True):
            logprobs = reference.next_logprobs(reference.render(one._replace(opening=opening and "{Answer: ")))
            assert answer.text == choices[int(logprobs[tokens].argmax())]


def test_replies_of_a_batch_are_those_of_each_prompt_alone(pair) -> None:
    """More prompts than a batch has rows, and replies of different budgets."""
    engine, reference = pair
    asked = [ask(stem, system=SYSTEM, max_tokens=1 + 5 * n % 14) for n, stem in enumerate(STEMS)]
    for dialogue, answer in zip(asked, together(engine, asked), strict=True):
        written = reference.greedy(dialogue)
        assert answer.text == reference.tokenizer.decode(written, skip_special_tokens=True)
        assert answer.prompt_tokens == reference.encode(reference.render(dialogue)).shape[1]
        assert answer.completion_tokens == len(written)
        assert answer.finish_reason == ("stop" if written[-1] == 2 else "length")


@pytest.mark.parametrize("template", [False, True], ids=["plain", "dialogue"])
def test_log_probabilities_are_those_of_transformers(template: bool, pair) -> None:
    engine, reference = pair
    cases = [(f"{SYSTEM}\n{q.stem}\nAnswer:", tuple(f" {o.text}" for o in q.options)) for q in QUESTIONS[:4]]
    cases.append(("What pumps blood?\nAnswer:", (" The heart", " The heart muscle", " The heart", " Liver")))
    asked = []
    for prompt, texts in cases:
        wanted = ContinuationRequest(texts=texts, template=template)
        asked.append(ask(prompt, more={"continuations": wanted}))
    for (prompt, texts), dialogue, answer in zip(cases, asked, together(engine, asked), strict=True):
        assert answer.logprobs.read_by == "echo"
        read = reference.render(dialogue) if template else prompt
        for text, continuation in zip(texts, answer.logprobs.continuations, strict=True):
            assert list(continuation.logprobs) == pytest.approx(reference.continuation(read, text), abs=NATS)


def test_labels_are_read_at_one_place_and_their_mass_is_whole(tiny_engine, tiny) -> None:
    prompt = "Which organ makes insulin?\n1. The liver.\n2. The pancreas.\nAnswer:"
    asked = ask(prompt, more={"continuations": ContinuationRequest(texts=(" 1", " 2"), given_opening=True)})
    reading = reply_blocking(tiny_engine, asked).logprobs
    logprobs = tiny.next_logprobs(prompt + " ")
    expected = [logprobs[tiny.token(digit)].item() for digit in "12"]
    assert reading.read_by == "label"
    assert [one.total for one in reading.continuations] == pytest.approx(expected, abs=NATS)
    assert reading.mass == pytest.approx(sum(map(exp, expected)), rel=1e-3)


def test_choices_that_share_their_first_token_are_drawn_by_their_probability(tiny_engine, tiny) -> None:
    """`1` and `10`: probabilities of disjoint outcomes, computed here the long way."""
    asked = ask("How many fingers have two hands?", opening="{Answer: ", choices=["1", "10", "12", "2"])
    prompt = tiny.render(asked)
    one, two, zero = (tiny.token(digit) for digit in "120")
    first, second = tiny.next_logprobs(prompt).exp(), tiny.next_logprobs(prompt + "1").exp()
    shares = torch.stack([
        first[one] * (1 - second[zero] - second[two]), first[one] * second[zero], first[one] * second[two], first[two]
    ])  # fmt: skip
    shares /= first[one] + first[two]
    assert reply_blocking(tiny_engine, asked).text == asked.choices[int(shares.argmax())]
    draws = 600
    drawn = [one.text for one in together(tiny_engine, [
        asked._replace(sampling={**asked.sampling, "temperature": 1.0, "seed": seed}) for seed in range(draws)
    ])]  # fmt: skip
    for choice, share in zip(asked.choices, shares.tolist(), strict=True):
        assert drawn.count(choice) / draws == pytest.approx(share, abs=4 * (0.25 / draws) ** 0.5)


def test_stop_strings_end_the_reply_and_are_looked_for_in_the_reply_only(smollm2_engine) -> None:
    capital = "What is the capital of France?"
    free = reply_blocking(smollm2_engine, ask(capital, max_tokens=12))
    assert (free.text, free.finish_reason) == ("The capital of France is Paris.", "stop")
    cut = reply_blocking(smollm2_engine, ask(capital, max_tokens=12, stop=(" is", "Rome")))
    assert (cut.text, cut.finish_reason, cut.completion_tokens) == ("The capital of France", "stop", 5)
    opened = ask(capital, opening="The capital of France is", max_tokens=3, stop=("is Paris",))
    assert reply_blocking(smollm2_engine, opened).text.startswith(" Paris")


def test_what_is_drawn_depends_on_seed_and_prompt_and_not_on_the_batch(tiny_engine) -> None:
    drawn = {"temperature": 1.0, "top_p": 0.95, "max_tokens": 8, "stop": ("at",)}
    asked = [ask(text, seed=seed, **drawn) for text in ("Sing!", "Dance for a while, please!") for seed in (1, 2)]
    alone = [reply_blocking(tiny_engine, one).text for one in asked]
    assert [one.text for one in together(tiny_engine, asked)] == alone
    assert len(set(alone)) == 4
    assert not [text for text in alone if "at" in text]


def test_overflow_names_tokens_and_limit(tiny_engine) -> None:
    long = "word " * 9_000
    for asked in (ask(long, max_tokens=1), ask(long, choices=DIGITS), ask("Hi", max_tokens=9_000)):
        with pytest.raises(ContextLengthError, match=r"(9,?0\d\d tokens|reply of 9000).* context of 8192 tokens"):
            reply_blocking(tiny_engine, asked)


def test_a_bad_request_or_one_given_up_does_not_touch_its_neighbours(tiny_engine) -> None:
    async def run() -> list[Any]:
        fine = [reply(tiny_engine, ask("Hi", choices=DIGITS)), reply(tiny_engine, ask("Tell a story.", max_tokens=40))]
        bad = [ask("x " * 9_000), ask("Hi", more={"fields": {"logprobs": True}})]
        dropped = asyncio.create_task(reply(tiny_engine, ask("Never mind.", max_tokens=40)))
        asked = asyncio.gather(*fine, *(reply(tiny_engine, one) for one in bad), return_exceptions=True)
        await asyncio.sleep(0)
        dropped.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dropped
        return await asked

    choice, story, long, unsupported = asyncio.run(run())
    assert (choice.text in DIGITS, story.completion_tokens) == (True, 40)
    assert isinstance(long, ContextLengthError)
    assert isinstance(unsupported, UnsupportedFeatureError)


@pytest.mark.parametrize(
    "program",
    [
        {"kind": "zero_shot", "max_tokens": 4, "samples": 2},
        pytest.param({"kind": "likelihood"}, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_a_run_frees_its_model(program, tiny_llama, tmp_path) -> None:
    def count() -> int:
        return sum(type(one) is LlamaForCausalLM for one in gc.get_objects())

    gc.collect()
    gc.disable()
    before = count()
    try:
        model = {"path": str(tiny_llama), "temperature": 0.7, "dtype": "float32"}
        settings = {"limit": 4, "runs_dir": tmp_path, "progress": False, "track": False}
        (run,) = package.run("headqa_sample", model=model, program=program, **settings)
        assert run.complete
        # The thread that computed may be about to end.
        until(lambda: count() == before, "the end of the model")
    finally:
        gc.enable()
