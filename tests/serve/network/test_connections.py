"""Connections over real TLS: whose certificates are believed, and where a redirect does not lead."""

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import openai
import pytest
import trustme
from dspy.lm15 import Config, Message, Request
from wire_server import Wire, serving

from asked import complete
from medexam.dspy_requests import CHOICE
from medexam.errors import CallError, EndpointUnreachableError, EngineError, SpecError
from medexam.serve import Endpoint, Engine, background_loop, build_engine, normalise_address
from medexam.serve.network.connections import open_client, open_model_client
from medexam.serve.network.endpoints import read_api_key
from medexam.serve.network.retry import CURABLE
from medexam.specs import EngineNeeds, ModelSpec

KEY = "a-key-that-nobody-else-shall-see"
HELLO = Request(model="m", messages=(Message.user("Hello"),), config=Config(temperature=0.0, max_tokens=4))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)


async def reach(wire: Wire, ca_bundle: Path | None = None) -> Engine:
    spec = ModelSpec(engine="vllm", endpoints=(wire.address,), ca_bundle=ca_bundle, api_key_env="MY_KEY")
    return await build_engine(spec)


async def refusal(wire: Wire, ca_bundle: Path | None = None) -> str:
    with pytest.raises((EndpointUnreachableError, SpecError)) as caught:
        await reach(wire, ca_bundle)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_server_of_a_private_authority(tls: ssl.SSLContext, bundle: Path) -> None:
    with serving(Wire(key=KEY), tls) as wire:
        engine = await reach(wire, bundle)
        reply = await complete(engine, HELLO)
        await engine.aclose()
    assert wire.address.startswith("https://")
    assert reply.text
    assert set(wire.keys) == {f"Bearer {KEY}"}


async def test_a_certificate_that_this_machine_does_not_know(tls: ssl.SSLContext) -> None:
    with serving(Wire(key=KEY), tls) as wire:
        said = await refusal(wire)
    assert said.startswith(f"the certificate of {wire.address} is not known to this machine")
    assert "issuer" in said
    assert "model.ca_bundle" in said
    assert wire.keys == []


async def test_a_certificate_of_another_authority(tls: ssl.SSLContext, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    with serving(Wire(), tls) as wire:
        assert f"is not known to {other}" in await refusal(wire, other)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), ("", "no certificate in PEM form"), ("-----BEGIN x", "no certificate in PEM form")],
)
async def test_a_bundle_that_cannot_be_used(content: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with serving(Wire()) as wire:
        said = await refusal(wire, path)
    assert said.startswith(f"model.ca_bundle {path} cannot be used")
    assert message in said
    assert wire.requests == []


async def test_a_server_that_sends_everything_to_another_host() -> None:
    with serving(Wire()) as thief, serving(Wire(moved={"/v1/models": f"{thief.address}/models?token=x"})) as wire:
        said = await refusal(wire)
    assert f"{wire.address}/models redirects to {thief.address}/models on another host" in said
    assert "token" not in said
    assert thief.requests == []


@pytest.mark.parametrize("choice", [False, True], ids=["chat", "completions"])
async def test_a_redirect_in_the_middle_of_a_run(choice: bool) -> None:
    messages = (*HELLO.messages, Message.assistant("So")) if choice else HELLO.messages
    path = "/completions" if choice else "/chat/completions"
    with serving(Wire()) as thief, serving(Wire()) as wire:
        engine = await reach(wire)
        wire.moved[f"/v1{path}"] = thief.address + path
        wire.requests.clear()
        with pytest.raises(CallError) as caught:
            await complete(engine, Request(model="m", messages=messages, config=HELLO.config))
        await engine.aclose()
    assert not isinstance(caught.value, CURABLE)
    assert wire.address in str(caught.value)
    assert thief.address in str(caught.value)
    assert thief.requests == []
    assert len(wire.bodies(f"/v1{path}")) == 1


async def test_a_redirect_of_tokenize_leads_nowhere() -> None:
    with serving(Wire()) as thief, serving(Wire()) as wire:
        wire.moved["/tokenize"] = thief.address.removesuffix("/v1") + "/tokenize"
        engine = await reach(wire)
        assert (await complete(engine, HELLO)).text
        await engine.aclose()
    assert thief.requests == []


async def test_a_redirect_on_the_same_host_is_not_followed_either() -> None:
    with serving(Wire(moved={"/v1/models": "/v2/models"})) as wire:
        said = await refusal(wire)
    assert f"redirects to {wire.address.removesuffix('/v1')}/v2/models, and redirects are not followed" in said
    assert all(path != "/v2/models" for path, _ in wire.requests)


def test_a_key_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o600)
    assert read_api_key(None, "MY_KEY", file=path) == KEY
    path.chmod(0o644)
    with pytest.raises(SpecError) as caught:
        read_api_key(None, "MY_KEY", file=path)
    assert KEY not in str(caught.value)


OWN = [
    "openai/tiny",
    "hosted_vllm/tiny",
    "custom_openai/tiny",
    "litellm_proxy/tiny",
    "groq/tiny",
    "deepseek/tiny",
    "openai/gpt-4o-mini",
    "openai/o1-pro",
    "openai/responses/tiny",
    "openai/gpt-3.5-turbo-instruct",
]
"""Models that litellm asks by its different ways: OpenAI's client, its own, the responses API, completions."""


@pytest.mark.parametrize("guided", [False, True], ids=["free", "guided"])
@pytest.mark.parametrize("name", OWN)
async def test_litellm_follows_no_redirect_of_an_endpoint(name: str, guided: bool) -> None:
    with serving(Wire()) as thief, serving(Wire(asked=(name.partition("/")[2],))) as wire:
        keys = {"endpoints": (wire.address,), "api_key_env": "MY_KEY"}
        spec = ModelSpec(engine="litellm", name=name, temperature=1.0, **keys)
        engine = await build_engine(spec)
        wire.moved |= {f"/v1{path}": thief.address + path for path in ("/chat/completions", "/completions")}
        wire.moved["/v1/responses"] = f"{thief.address}/responses"
        wire.requests.clear()
        config = replace(HELLO.config, temperature=None, extensions={CHOICE: ["1", "2"]} if guided else None)
        with pytest.raises(CallError) as caught:
            await complete(engine, Request(model="m", messages=HELLO.messages, config=config))
        await engine.aclose()
    said = caught.value.message
    assert thief.requests == []
    # The last request of the trial before may be noted late.
    assert len([body for _, body in wire.requests if "Hello" in str(body)]) == 1
    assert not isinstance(caught.value, CURABLE)
    assert said == (
        f"{wire.address}/chat/completions redirects to {thief.address}/chat/completions on another host, and redirects "
        "are not followed; write the address that is meant in model.endpoints"
    )


async def test_litellm_follows_no_redirect_on_the_same_host() -> None:
    with serving(Wire(moved={"/v1/chat/completions": "/v2/chat/completions"})) as wire:
        spec = ModelSpec(engine="litellm", name="openai/tiny", endpoints=(wire.address,))
        with pytest.raises(EndpointUnreachableError, match="and redirects are not followed"):
            await build_engine(spec)
    assert {path for path, _ in wire.requests} == {"/v1/chat/completions"}


async def test_a_redirect_while_litellm_is_tried_out() -> None:
    with serving(Wire()) as thief, serving(Wire()) as wire:
        wire.moved["/v1/chat/completions"] = f"{thief.address}/chat/completions"
        spec = ModelSpec(engine="litellm", name="openai/tiny", endpoints=(wire.address,))
        with pytest.raises(EndpointUnreachableError) as caught:
            await build_engine(spec, EngineNeeds(guided=True))
    assert str(caught.value).startswith(f"{wire.address}/chat/completions redirects to {thief.address}/chat")
    assert thief.requests == []


@pytest.mark.parametrize(
    "name", ["anthropic/tiny", "gemini/tiny", "ollama_chat/tiny", "openrouter/tiny", "cohere_chat/tiny", "azure/tiny"]
)
async def test_an_endpoint_that_litellm_would_ask_with_its_own_client(name: str) -> None:
    with serving(Wire()) as wire:
        spec = ModelSpec(engine="litellm", name=name, endpoints=(wire.address,), api_key_env="MY_KEY")
        with pytest.raises(EngineError) as caught:
            await build_engine(spec)
    provider = name.partition("/")[0]
    assert f"names {wire.address} and {name!r} means provider {provider!r}" in str(caught.value)
    assert "write openai/tiny, or leave model.endpoints out" in str(caught.value)
    assert wire.requests == []


async def test_the_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    far = Endpoint("http://gpu.invalid:8000/v1", KEY)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(Wire()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address.removesuffix("/v1"))
        monkeypatch.setenv("http_proxy", proxy.address.removesuffix("/v1"))
        async with open_client(far, 5.0) as client:
            await client.get(f"{far.base}/models")
        with pytest.raises(openai.NotFoundError):
            await background_loop().run_async(_list_models(far))
    assert [path for path, _ in proxy.requests] == [f"{far.base}/models"] * 2


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_server_on_this_machine_is_asked_without_the_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    with serving(Wire()) as wire, serving(Wire()) as proxy:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(variable, proxy.address.removesuffix("/v1"))
        near = Endpoint(wire.address.replace("127.0.0.1", name), KEY)
        async with open_client(near, 5.0) as client:
            await client.get(f"{near.base}/models")
        await background_loop().run_async(_list_models(near))
    assert [path for path, _ in wire.requests] == ["/v1/models"] * 2
    assert proxy.requests == []


async def test_a_server_that_has_an_ipv6_address_alone() -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"object": "list", "data": []}'
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        writer.write(head + body)
        await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(reply, "::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    async with server:
        written = f"http://[::1]:{server.sockets[0].getsockname()[1]}"
        endpoint = Endpoint(normalise_address(written), KEY)
        assert endpoint.base == f"{written}/v1"
        async with open_client(endpoint, 5.0) as client:
            assert (await client.get(f"{endpoint.base}/models")).is_success
        await background_loop().run_async(_list_models(endpoint))


async def _list_models(endpoint: Endpoint) -> None:
    async with open_model_client(endpoint, 5.0) as client:
        await client.models.list()
