"""Opens a text file of others in the encoding that it is written in, without holding its bytes and its text at once.

UTF-8 is tried first, then UTF-16 with its mark or with a zero beside each letter. What is left is Windows-1252, which
any bytes could be: it is taken only if all that it gives are texts of western Europe.
"""

import codecs
import re
from collections.abc import Iterator
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from medexam.inputs import UnreadableError, decode, open_unpacked

_CHUNK = 1 << 20
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The mark at the beginning of a file -> its encoding; that of UTF-32 begins like one of UTF-16."""
_LETTERS = "áéíóúüñçàèìòùâêîôûëïöäßãõœæ"
_BESIDE_WORDS = "¿¡«»‹›“”„‘’–—…•·ºª°µ€£§©®™±²³¹×÷¼½¾\xa0"  # noqa: RUF001 - as they are written
_OTHER = re.compile(f"[^\x09\x0a\x0d\x20-\x7e{_LETTERS}{_LETTERS.upper()}{_BESIDE_WORDS}]")
_UNLIKELY = re.compile(
    f"[{_LETTERS}]{{3}}|[{_LETTERS.upper()}]{{3}}|[a-z{_LETTERS}][{_LETTERS.upper()}¿¡©®±²³¹×÷¼½¾§£€°«»]+[a-z{_LETTERS}]"  # noqa: RUF001
)
"""What words of western Europe do not hold, and bytes of another encoding soon give."""


def open_text(path: Path, closing: ExitStack, newline: str | None = "") -> tuple[TextIO, str]:
    """A text file, packed or not, and what to say of its encoding: empty if that is UTF-8.

    Raises `OSError`, and `UnreadableError` that says what to do if it is damaged or in no encoding that can be told.
    """
    try:
        encoding = _find_encoding(path)
        stream = closing.enter_context(open_unpacked(path))
    except UnreadableError as error:
        raise UnreadableError(f"{error}: save it as UTF-8, or copy it again") from None
    said = "" if encoding == "utf-8-sig" else {"cp1252": "Windows-1252"}.get(encoding, encoding.upper()[:6])
    return closing.enter_context(TextIOWrapper(stream, encoding, newline=newline)), said


def _find_encoding(path: Path) -> str:
    with open_unpacked(path) as stream:
        head = stream.read(_CHUNK)
        encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "utf-8-sig")
        # English letters in UTF-16 have a zero beside them, and no text in UTF-8 holds one.
        if encoding == "utf-8-sig" and head.count(0) > len(head) / 4:
            encoding = "utf-16-be" if head[:1] == b"\0" else "utf-16-le"
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            for chunk in _chunks(head, stream):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            pass
        else:
            return encoding
    with open_unpacked(path) as stream:
        content = stream.read()
    if encoding == "utf-8-sig" and _is_western(content):
        return "cp1252"
    decode(content)
    raise UnreadableError(f"is not {encoding.upper()}")


def _chunks(head: bytes, stream: object) -> Iterator[bytes]:
    while head:
        yield head
        head = stream.read(_CHUNK)  # type: ignore[attr-defined]


def _is_western(content: bytes) -> bool:
    """Whether bytes that are no UTF-8 read as Spanish, Portuguese, French, German, Italian or English."""
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return _OTHER.search(text) is None and _UNLIKELY.search(text) is None
