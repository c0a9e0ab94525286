"""Addresses of this machine, asked of its routes and interfaces."""

import socket

import pytest

from medexam.companions.serving.cluster.addresses import address_of, every_address, interface_of, own_address, resolve
from medexam.errors import EngineError


def test_the_way_to_a_node_says_which_address_is_ours() -> None:
    assert own_address("127.0.0.1") == "127.0.0.1"
    loopback = interface_of("127.0.0.1")
    assert loopback is not None
    assert address_of(loopback) == "127.0.0.1"
    assert address_of("nothing0") is None
    assert interface_of("192.0.2.1") is None


def test_ipv6_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    six = [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kinds: six)
    assert resolve("n1") == "::1"
    assert every_address("n1") == "::"
    four = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 0))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kinds: [*six, four])
    assert resolve("n1") == "10.0.0.1"
    assert every_address("n1") == "0.0.0.0"


def test_the_way_to_a_node_by_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    assert own_address("::1") == "::1"
    assert interface_of("::1") == interface_of("127.0.0.1")


def test_a_name_that_nobody_knows() -> None:
    with pytest.raises(EngineError, match=r"no\.such\.node\.invalid: no address is known"):
        resolve("no.such.node.invalid")
