"""What tells two models apart, and what does not."""

import pytest

from medexam.model_identity import SAME_NATS, Answerer, Behaviour, ModelIdentity

TOKENS = (1, 2, 3)
READ = (-1.0, -2.0)
NOTES = {"version": "vllm 0.32.0", "source": "/models/a", "max_context": 4096}


def behaviour(shift: float = 0.0, **fields: object) -> Behaviour:
    known = {"tokens": TOKENS, "logprobs": tuple(value - shift for value in READ), "reply": "x", "noise": 0.0}
    return Behaviour.model_validate({**known, **fields})


SERVED = ModelIdentity(
    engine="vllm",
    name="tiny",
    hub_id="org/model",
    commit="a" * 40,
    dialogue="d1",
    behaviour=behaviour(),
    notes=NOTES,
)
LOCAL = ModelIdentity(engine="embedded", name="a", content="sha256:1", dtype="float32")
HOSTED = ModelIdentity(engine="litellm", name="gpt-1", behaviour=Behaviour(reply="Fémur", noise=0.0))


@pytest.mark.parametrize(
    ("first", "change", "said"),
    [
        (SERVED, {"name": "other"}, "it is other, not tiny"),
        (SERVED, {"dialogue": "d2"}, "chat template and tokenizer d2, not d1"),
        (SERVED, {"dialogue": None}, "chat template and tokenizer untold, not d1"),
        (SERVED, {"hub_id": "org/model-AWQ"}, "its weights come from org/model-AWQ, not org/model"),
        (SERVED, {"commit": "b" * 40}, "its weights come from bbbb"),
        (SERVED, {"behaviour": behaviour(0.2)}, "differ by 0.200 nats a token"),
        (SERVED, {"behaviour": behaviour(tokens=(1, 2, 4))}, "its tokenizer splits a fixed text into other tokens"),
        (SERVED, {"behaviour": behaviour(logprobs=())}, "its log-probabilities can no more be had"),
        (SERVED, {"behaviour": None}, "its answers to a fixed text are no longer available"),
        (LOCAL, {"content": "sha256:2"}, "weights sha256:2, not sha256:1"),
        (LOCAL, {"dtype": "bfloat16"}, "dtype bfloat16, not float32"),
        (HOSTED, {"name": "gpt-1-2026-11"}, "it is gpt-1-2026-11, not gpt-1"),
        (HOSTED, {"behaviour": Behaviour(reply="Tibia", noise=0.0)}, "continues a fixed text with 'Tibia', not"),
        (HOSTED, {"behaviour": None}, "can no more be had"),
    ],
)
def test_another_model(first: ModelIdentity, change: dict, said: str) -> None:
    other = first.model_copy(update=change)
    assert len(found := first.differences(other)) == 1
    assert said in found[0]
    assert other.print != first.print


@pytest.mark.parametrize(
    ("first", "change"),
    [
        (SERVED, {"notes": {"version": "vllm 0.33.0", "source": "/mnt/b", "max_context": 8192}}),
        (SERVED, {"hub_id": None, "commit": None}),
        (SERVED, {"behaviour": behaviour(SAME_NATS / 2)}),
        (SERVED, {"behaviour": behaviour(0.2, noise=0.1)}),
        (SERVED, {"behaviour": behaviour(reply="y")}),
        (LOCAL, {"name": "a-moved-folder"}),
        (HOSTED, {"behaviour": Behaviour(reply="Tibia", noise=None)}),
    ],
    ids=[
        "notes",
        "a folder of its own",
        "rounding",
        "a server's own noise",
        "a tie in the continuation",
        "a folder's name",
        "unsteady",
    ],
)
def test_the_same_model(first: ModelIdentity, change: dict) -> None:
    assert first.differences(first.model_copy(update=change)) == []


def test_notes_are_no_part_of_the_print() -> None:
    moved = SERVED.model_copy(update={"notes": {**NOTES, "version": "vllm 0.33.0"}})
    assert moved.print == SERVED.print
    assert SERVED.changed_notes(moved) == {"version": "vllm 0.33.0"}


def test_a_provider_that_swaps_its_model_meanwhile_gets_another_print() -> None:
    admitted = Answerer("1a2b3c4d", "gpt-1")
    assert admitted.print_of("gpt-1", cut=True) == admitted.print_of(None, cut=False) == "1a2b3c4d"
    assert admitted.print_of("gpt-2", cut=False) not in {"1a2b3c4d", admitted.print_of("gpt-3", cut=False)}


def test_what_a_shorter_context_cut_gets_another_print() -> None:
    admitted = Answerer("1a2b3c4d", "tiny", shorter=True)
    assert admitted.print_of("tiny", cut=False) == "1a2b3c4d" != admitted.print_of("tiny", cut=True)


def test_the_identity_in_words() -> None:
    said = SERVED.describe()
    for part in ("tiny (vllm)", SERVED.print, "template and tokenizer d1", "-1.5000 nats", "'x'", "vllm 0.32.0"):
        assert part in said
