"""The probe believes what it sees and says what to do about the rest."""

from pathlib import Path

import pytest
from wire_server import Wire, serving

from medexam.errors import AnswerFormatError, EndpointUnreachableError, SpecError
from medexam.serve import NO_KEY, TIMING, Capabilities, Endpoint, build_engine, normalise_address, probe_endpoint
from medexam.serve.discovery.finder import named_endpoints
from medexam.serve.network.endpoints import read_api_key
from medexam.specs import EngineNeeds, ModelSpec


async def probe(wire: Wire, name: str | None = None, key: str = NO_KEY) -> Capabilities:
    return await probe_endpoint(Endpoint(wire.address, key), name)


async def test_a_server_that_honours_everything() -> None:
    with serving(Wire()) as wire:
        seen = await probe(wire)
    assert seen.model_dump(exclude={"call_s", "endpoint", "dialogue", "behaviour", "sampling"}) == {
        "server_version": "vllm 0.32.0",
        "models": ("tiny",),
        "model": "tiny",
        "source": "none/tiny",
        "max_context": 4096,
        "system_turn": True,
        "repeated_turns": True,
        "empty_system_turn": True,
        "chat": True,
        "renders": True,
        "allowed_token_ids": True,
        "structured_outputs": True,
        "list_prompts": True,
        "several_replies": True,
        "limit": "max_tokens",
        "tokenizes": True,
        "echo_logprobs": 0,
        "named_logprobs": 128,
        "masked_logprobs": True,
        "prefix_block": 16,
        "prefix_told": False,
        "refusals": {},
        "sees": None,
        "takes_tools": None,
        "takes_schema": None,
    }
    assert seen.guided_by == "prefill"


@pytest.mark.parametrize(
    ("wire", "field", "guided_by"),
    [
        (Wire(system=False), "system_turn", "prefill"),
        (Wire(repeats=False), "repeated_turns", "prefill"),
        (Wire(empty=False), "empty_system_turn", "prefill"),
        (Wire(chat=False), "chat", None),
        (Wire(tokenize=False), "renders", "structured_outputs"),
        (Wire(allowed=False), "allowed_token_ids", "structured_outputs"),
        (Wire(structured=False), "structured_outputs", "prefill"),
        (Wire(lists=False), "list_prompts", "prefill"),
        (Wire(several=False), "several_replies", "prefill"),
        (Wire(tokenize=False, structured=False), "structured_outputs", None),
    ],
)
async def test_what_a_server_ignores_is_not_believed(wire: Wire, field: str, guided_by: str | None) -> None:
    with serving(wire):
        seen = await probe(wire)
    assert getattr(seen, field) is False
    assert seen.guided_by == guided_by


async def test_a_template_that_refuses_a_system_turn_is_found_out_without_tokenize() -> None:
    with serving(Wire(system=False, tokenize=False)) as wire:
        seen = await probe(wire)
    assert not seen.system_turn
    assert seen.repeated_turns


async def test_an_old_server_that_ignores_constraints_is_refused_for_guided_answers() -> None:
    with serving(Wire(allowed=False, structured=False, version="0.11.0")) as wire:
        with pytest.raises(AnswerFormatError, match=r"vllm 0\.11\.0.*answer_format to free"):
            await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,)), EngineNeeds(guided=True))
        engine = await build_engine(ModelSpec(engine="vllm", endpoints=(wire.address,)))
        assert engine.info().guided_by is None
        await engine.aclose()


async def test_nobody_there() -> None:
    with pytest.raises(EndpointUnreachableError, match=r"no server answers at http://127.0.0.1:9/v1 .*medexam serve"):
        await probe_endpoint(Endpoint("http://127.0.0.1:9/v1", NO_KEY), None)


async def test_another_model() -> None:
    with serving(Wire()) as wire, pytest.raises(EndpointUnreachableError, match="serves tiny, not huge; correct"):
        await probe(wire, "huge")


async def test_several_models_need_a_name() -> None:
    with serving(Wire(models=("tiny", "small"))) as wire:
        with pytest.raises(EndpointUnreachableError, match=r"serves 2 models \(tiny, small\); name one"):
            await probe(wire)
        assert (await probe(wire, "small")).model == "small"


async def test_endpoints_must_serve_one_model() -> None:
    with serving(Wire()) as one, serving(Wire(models=("other",))) as two:
        spec = ModelSpec(engine="vllm", endpoints=(one.address, two.address))
        with pytest.raises(EndpointUnreachableError, match="different models"):
            await build_engine(spec)


@pytest.mark.parametrize("status", [404, 500])
async def test_something_else_answers(status: int) -> None:
    refusing = Wire(refuse={"/v1/models": status})
    with serving(refusing), pytest.raises(EndpointUnreachableError) as caught:
        await probe(refusing)
    assert "not as an OpenAI-compatible server" in str(caught.value)
    assert "or name its model in model.name (doctor: --model)" in str(caught.value)


@pytest.mark.parametrize("wire", [Wire(models=()), Wire(refuse={"/v1/models": 404}), Wire(refuse={"/v1/models": 500})])
async def test_a_server_that_lists_no_models_is_asked_by_name(wire: Wire) -> None:
    wire.asked = ("tiny",)
    with serving(wire):
        seen = await probe(wire, "tiny")
        assert (seen.model, seen.models, seen.guided_by) == ("tiny", (), "prefill")
        spec = ModelSpec(engine="vllm", endpoints=(wire.address,), name="tiny")
        engine = await build_engine(spec, EngineNeeds(guided=True))
        assert engine.model == "tiny"
        await engine.aclose()


async def test_what_lists_no_models_and_answers_nothing_is_no_server() -> None:
    paths = ("/v1/models", "/v1/completions", "/v1/chat/completions", "/tokenize", "/version", "/metrics")
    silent = Wire(refuse=dict.fromkeys(paths, 404), tokenize=False)
    with serving(silent), pytest.raises(EndpointUnreachableError, match="not as an OpenAI-compatible server"):
        await probe(silent, "tiny")


async def test_what_is_refused_is_kept_with_the_servers_words() -> None:
    with serving(Wire(refused_fields=("structured_outputs",), owner="me", version=None)) as wire:
        seen = await probe(wire)
        assert seen.refusals == {"structured_outputs": "HTTP 400: structured_outputs is not configured"}
        assert (seen.structured_outputs, seen.server_version, seen.is_vllm) == (False, None, False)


@pytest.mark.parametrize(
    ("wire", "version", "is_vllm"),
    [
        (Wire(), "vllm 0.32.0", True),
        (Wire(owner="vllm"), "vllm 0.32.0", True),
        (Wire(owner="someone"), "version 0.32.0", False),
        (Wire(owner="sglang"), "sglang 0.32.0", False),
        (Wire(owner="llamacpp", version=None), "llama.cpp", False),
        (Wire(owner="someone", version=None), None, False),
    ],
)
async def test_which_server_it_is(wire: Wire, version: str | None, is_vllm: bool) -> None:
    with serving(wire):
        seen = await probe(wire)
    assert (seen.server_version, seen.is_vllm) == (version, is_vllm)


async def test_guided_answers_are_refused_with_what_the_server_said() -> None:
    refusing = Wire(refused_fields=("structured_outputs",), owner="me", version=None, tokenize=False)
    with serving(refusing), pytest.raises(AnswerFormatError) as caught:
        await build_engine(ModelSpec(engine="vllm", endpoints=(refusing.address,)), EngineNeeds(guided=True))
    said = str(caught.value)
    assert "refused structured_outputs (HTTP 400: structured_outputs is not" in said
    assert "model.engine litellm" in said
    assert "ignored" not in said
    assert "upgrade" not in said


async def test_a_server_that_dies_under_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING, "attempts", 2)
    with serving(Wire(tokenize=False, drop=True)) as wire, pytest.raises(EndpointUnreachableError) as caught:
        await probe(wire)
    assert "answered, then stopped answering when it was asked for" in str(caught.value)


async def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    with serving(Wire(key="s3cret")) as wire:
        with pytest.raises(EndpointUnreachableError, match=r"refuses the key .*model\.api_key_env"):
            await probe(wire)
        key = read_api_key("MY_KEY")
        assert key is not None
        assert (await probe(wire, key=key)).model == "tiny"
        assert "s3cret" not in repr(Endpoint(wire.address, key))


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    monkeypatch.setenv("USUAL", "u")
    assert read_api_key(None) is None
    assert read_api_key(None, "USUAL") == "u"
    with pytest.raises(SpecError, match="names MY_KEY, and that environment variable is not set"):
        read_api_key("MY_KEY", "USUAL")
    monkeypatch.setenv("MY_KEY", "canary-0123\n")
    assert read_api_key("MY_KEY") == "canary-0123", "the end of line of a file that was read into it"
    monkeypatch.setenv("MY_KEY", "canary-0123\nX-More: 1")
    for asked in (("MY_KEY", None), (None, "MY_KEY"), ("canary4567890", None)):
        with pytest.raises(SpecError) as caught:
            read_api_key(*asked)
        assert "canary" not in str(caught.value)
    with pytest.raises(SpecError, match=r"^api_key_file: no such key file"):
        read_api_key(None, file=Path("canary4567890"))


@pytest.mark.parametrize(
    "address",
    [
        "GPU1:8000",
        "http://gpu1:8000",
        "http://gpu1:8000/",
        " http://gpu1:8000/v1/ ",
        "http://gpu1:8000/v1/chat/completions",
        "http://gpu1:8000/v1/models",
    ],
)
def test_one_address_is_written_in_many_ways(address: str) -> None:
    assert normalise_address(address) == "http://gpu1:8000/v1"


def test_gateways_keep_their_path_and_doubles_are_dropped() -> None:
    assert normalise_address("https://host/llama/v1") == "https://host/llama/v1"
    assert [
        one.base for one in named_endpoints(ModelSpec(engine="vllm", endpoints=("a:1", "http://a:1/v1", "b:1")))
    ] == [
        "http://a:1/v1",
        "http://b:1/v1",
    ]
    assert Endpoint("https://host/llama/v1", "k").root == "https://host/llama"


@pytest.mark.parametrize("path", ["/v1beta/openai", "/api/paas/v4", "/openai/v1", "/api/v3", "/compatible-mode/v1"])
def test_a_path_with_a_version_is_kept(path: str) -> None:
    for tail in ("", "/", "/chat/completions"):
        assert normalise_address(f"https://Host{path}{tail}") == f"https://host{path}"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://gpu1", "only http"),
        ("http://", "not the address"),
        ("", "not the address"),
        ("http://gpu 1", "not the address"),
        ("http://gpu1:port", "its port is not a number"),
        ("http://gpu1:8000/v1?x=1", "no '\\?'"),
        ("http://me:secret@gpu1", "api_key_env"),
    ],
)
def test_addresses_that_are_none(address: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        normalise_address(address)
    assert "secret" not in str(caught.value)
