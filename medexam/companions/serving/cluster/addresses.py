"""By which address the nodes of a job reach each other, and on which network interface it lies."""

import contextlib
import ipaddress
import socket

import psutil

from medexam.toolkit.errors import EngineError

_ANY_PORT = 9


def resolve(name: str) -> str:
    """Resolve the address of a machine, IPv4 if it has one; raises `EngineError` if nobody knows the name."""
    try:
        entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise EngineError(f"{name}: no address is known for this node ({error}); ask the administrator") from None
    return str(min(entries, key=lambda entry: entry[0] != socket.AF_INET)[4][0])


def own_address(peer: str) -> str:
    """Find the address of this machine on the way to `peer`, an address; raises `EngineError` if no way leads there.

    The route decides, so that a name that stands for 127.0.1.1 in /etc/hosts does no harm.
    """
    family = socket.AF_INET6 if ":" in peer else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((peer, _ANY_PORT))  # sends nothing
        except OSError as error:
            raise EngineError(f"no route to the node {peer} ({error.strerror})") from None
        return str(probe.getsockname()[0])


def interface_of(address: str) -> str | None:
    """Find the network interface that has the address; None if it cannot be read."""
    return _interfaces().get(str(ipaddress.ip_address(address.partition("%")[0])))


def address_of(interface: str) -> str | None:
    """Find the address of a network interface, IPv4 if it has one; None if there is none by that name."""
    addresses = [address for address, name in _interfaces().items() if name == interface]
    return min(addresses, key=lambda address: ":" in address, default=None)


def interfaces() -> tuple[str, ...]:
    """List the names of this machine's network interfaces."""
    return tuple(name for _, name in socket.if_nameindex())


def every_address(host: str) -> str:
    """Choose what to listen on so that a machine of this name is reached: all of IPv4, or of IPv6 if it has nothing
    else.
    """
    with contextlib.suppress(EngineError):
        if ":" in resolve(host):
            return "::"
    return "0.0.0.0"  # noqa: S104 - other nodes ask, with a key


def _interfaces() -> dict[str, str]:
    """Map each address of this machine to its interface."""
    return {
        str(ipaddress.ip_address(entry.address.partition("%")[0])): name
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
    }
