"""How driver and child process speak over a pipe: frames of a length and a pickle, each call under a number."""

import pickle
import struct
from asyncio import StreamReader
from typing import IO, Any

_LENGTH = struct.Struct("!Q")


def pack_frame(message: Any) -> bytes:
    """Pack a message into a frame."""
    payload = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(payload)) + payload


def read_frame(stream: IO[bytes]) -> Any:
    """Read the next message; raises `EOFError` where the stream ends."""
    return _unpickle(_read(stream, _LENGTH.unpack(_read(stream, _LENGTH.size))[0]))


def _read(stream: IO[bytes], size: int) -> bytes:
    payload = stream.read(size)
    if len(payload) < size:
        raise EOFError
    return payload


async def receive_frame(stream: StreamReader) -> Any:
    """Receive the next message; raises `EOFError`, as `asyncio.IncompleteReadError` is, where the stream ends."""
    (size,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    return _unpickle(await stream.readexactly(size))


def travels(value: Any) -> bool:
    """Return whether a value arrives; exceptions whose arguments are not those of their class do not."""
    try:
        _unpickle(pickle.dumps(value))
    except Exception:
        return False
    return True


def _unpickle(payload: bytes) -> Any:
    return pickle.loads(payload)  # noqa: S301 - the other end of the pipe is this run's own


class Shared:
    """A value among the arguments of calls that is pickled once for all of them; what arrives is the value."""

    def __init__(self, value: Any) -> None:
        self._payload = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return pickle.loads, (self._payload,)
