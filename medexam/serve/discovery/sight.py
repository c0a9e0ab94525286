"""A tiny picture, and whether a model reads it."""

import base64
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from medexam.serve.chat_messages import put_pictures
from medexam.serve.discovery.token_counts import counts_more

_TOKENS = 16
"""Some providers refuse fewer."""
_SIDE = 64
"""Pixels; some models take no picture that is smaller than a patch of theirs."""


def _png() -> bytes:
    """Build the PNG file of a grey square, without a library for pictures."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\x80" * 3 * _SIDE) * _SIDE
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


SQUARE = f"data:image/png;base64,{base64.b64encode(_png()).decode('ascii')}"
"""A grey square as a data URL."""


async def reads_pictures(ask: Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]) -> bool:
    """Return whether a model takes the square and reads it; `ask` sends the body of a chat request and returns the
    reply.

    An empty reply is a refusal. The same words without the picture must cost fewer prompt tokens, since a server may
    drop what it does not know, and still answer. One that counts no tokens is believed.
    """
    messages = [{"role": "user", "content": "Say hello."}]
    replies = []
    for pictures in ([SQUARE], []):
        body = {"messages": put_pictures(messages, pictures), "max_tokens": _TOKENS}
        replies.append(await ask(body))
        if not replies[0].get("choices"):
            return False
    return counts_more(*replies)
