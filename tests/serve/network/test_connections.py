"""Whose certificates are believed, which way a request takes, where a redirect does not lead, and who sees a key."""

import os
import shutil
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from engine_calls import CHAT, COMPLETIONS, ask, reaching, reply, spec_of
from wire_server import Wire, serving

from medexam.errors import CallError, EngineError, SpecError
from medexam.serve import build_engine

KEY = "a-key-that-nobody-else-shall-see"
HELLO = ask("Hello")


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


async def refusal(wire: Wire, **model: Any) -> str:
    """What ends the attempt to reach a server, in one line."""
    with pytest.raises((EngineError, SpecError)) as caught:
        await build_engine(spec_of(wire, **{"api_key_env": "MY_KEY", **model}))
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_server_of_a_private_authority(tls: ssl.SSLContext, bundle: Path, monkeypatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    with serving(Wire(key=KEY), tls) as wire:
        async with reaching(wire, api_key_env="MY_KEY") as engine:
            assert (await reply(engine, HELLO)).text
    assert wire.address.startswith("https://")
    assert set(wire.keys) == {f"Bearer {KEY}"}


async def test_a_certificate_that_nobody_here_knows_gets_no_key(tls: ssl.SSLContext) -> None:
    with serving(Wire(key=KEY), tls) as wire:
        assert "certificate verify failed" in await refusal(wire)
    assert wire.keys == []


async def test_a_server_that_sends_everything_to_another_host() -> None:
    with serving(Wire()) as thief, serving(Wire(moved={"/v1/models": f"{thief.address}/models?token=x"})) as wire:
        said = await refusal(wire)
    assert f"{wire.address}/models redirects to {thief.address}/models on another host" in said
    assert "token" not in said
    assert thief.requests == []


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_a_redirect_in_the_middle_of_a_run(path: str) -> None:
    with serving(Wire()) as thief, serving(Wire()) as wire:
        async with reaching(wire, api_key_env="MY_KEY") as engine:
            wire.moved[path] = thief.address + path.removeprefix("/v1")
            with pytest.raises(CallError) as caught:
                await reply(engine, ask(opening="So" if path == COMPLETIONS else ""))
    assert wire.address in str(caught.value)
    assert thief.address in str(caught.value)
    assert thief.requests == []
    assert len(wire.bodies(path)) == 1, "it is not asked again"


@pytest.mark.parametrize("engine", ["vllm", "litellm"])
async def test_a_redirect_on_the_same_host_is_not_followed_either(engine: str) -> None:
    with serving(Wire(moved={"/v1/models": "/v2/models", CHAT: "/v2/chat/completions"})) as wire:
        assert "and redirects are not followed" in await refusal(wire, engine=engine)
    assert not [path for path, _ in wire.requests if path.startswith("/v2")]


OWN = [
    "openai/tiny",
    "hosted_vllm/tiny",
    "custom_openai/tiny",
    "litellm_proxy/tiny",
    "groq/tiny",
    "deepseek/tiny",
    "openai/gpt-4o-mini",
    "openai/o1-pro",
    "openai/gpt-3.5-turbo-instruct",
]
"""Models that litellm asks by its different ways: OpenAI's client, its own, the responses API, completions."""


@pytest.mark.parametrize("choices", [None, ["1", "2"]], ids=["free", "guided"])
@pytest.mark.parametrize("name", OWN)
async def test_litellm_follows_no_redirect_of_an_endpoint(name: str, choices: list[str] | None) -> None:
    with (
        serving(Wire()) as thief,
        serving(Wire(models=(name.partition("/")[2],), tokenize=False)) as wire,
    ):
        async with reaching(wire, engine="litellm", name=name, temperature=1.0, api_key_env="MY_KEY") as engine:
            wire.moved |= {path: thief.address + path.removeprefix("/v1") for path in (CHAT, COMPLETIONS)}
            wire.moved["/v1/responses"] = f"{thief.address}/responses"
            with pytest.raises(CallError) as caught:
                await reply(engine, ask("Hello", temperature=None, choices=choices))
    assert thief.requests == []
    # The last request of the trial before may be noted late.
    assert len([body for _, body in wire.requests if "Hello" in str(body)]) == 1
    assert caught.value.message == (
        f"{wire.address}/chat/completions redirects to {thief.address}/chat/completions on another host, and redirects "
        "are not followed; write the address that is meant in model.endpoints"
    )


@dataclass
class Proxy(Wire):
    """A proxy of the environment: it is asked for whole addresses."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return super().reply(path.removeprefix("http://gpu.invalid:8000"), body)


def use_proxy(monkeypatch: pytest.MonkeyPatch, proxy: Wire) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(variable, proxy.address.removesuffix("/v1"))


async def test_the_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Proxy(tokenize=False)) as proxy:
        use_proxy(monkeypatch, proxy)
        engine = await build_engine(spec_of(endpoints=("http://gpu.invalid:8000/v1",)))
        await engine.aclose()
    assert {path for path, _ in proxy.requests} >= {f"http://gpu.invalid:8000{path}" for path in ("/v1/models", CHAT)}


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
async def test_a_server_on_this_machine_is_asked_without_the_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Wire()) as wire, serving(Proxy()) as proxy:
        use_proxy(monkeypatch, proxy)
        wire.address = wire.address.replace("127.0.0.1", name)
        async with reaching(wire) as engine:
            assert (await reply(engine, HELLO)).text == "hello"
    assert proxy.requests == []


async def test_a_key_is_sent_and_a_refused_one_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER", "s3cret")
    with serving(Wire(key=KEY)) as wire:
        async with reaching(wire, api_key_env="MY_KEY") as engine:
            await reply(engine, HELLO)
        assert set(wire.keys) == {f"Bearer {KEY}"}
        said = await refusal(wire, api_key_env="OTHER")
    assert "refuses the key" in said
    assert "model.api_key_env" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    ("value", "variable", "said"),
    [
        (None, "MY_KEY", "names MY_KEY, and that environment variable is not set"),
        ("canary-0123\nX-More: 1", "MY_KEY", ""),
        ("", "canary4567890", ""),
    ],
)
async def test_what_is_no_key_is_refused_without_a_request(value: str | None, variable: str, said: str, monkeypatch):
    monkeypatch.delenv("MY_KEY")
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with serving(Wire()) as wire:
        found = await refusal(wire, api_key_env=variable)
    assert said in found
    assert "canary" not in found
    assert wire.requests == []


WITHOUT_NETWORK = """
import asyncio, subprocess
from engine_calls import ask, reaching, reply
from medexam.errors import TransportError
from medexam.serve import TIMING
from wire_server import HeldWire, serving
async def main():
    TIMING.attempts = 1
    with serving(HeldWire()) as wire:
        async with reaching(wire) as engine:
            wire.free.clear()
            asked = asyncio.create_task(reply(engine, ask()))
            while not wire.requests:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
            try:
                await asyncio.wait_for(asked, 60)
            except TransportError as lost:
                print("lost:", lost, flush=True)
            wire.free.set()
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
asyncio.run(main())
"""


@pytest.mark.nightly
def test_a_machine_that_lost_its_network_is_given_up() -> None:
    apart = ("unshare", "--map-root-user", "--net")
    if not shutil.which("ip") or subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody make a network of their own")
    paths = os.pathsep.join(["tests/serve", *sys.path])
    command = [*apart, sys.executable, "-c", WITHOUT_NETWORK]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("lost:"), done.stdout + done.stderr
