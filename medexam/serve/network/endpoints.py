"""Where a model server is, and the key it is asked with.

An address in a spec may be written in several ways; records, probes and requests need one. This module knows
addresses and keys; it opens no connection.
"""

import os
import re
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from medexam.errors import SpecError
from medexam.text import remember_secret

NO_KEY = "EMPTY"
"""What servers without keys are sent, because clients insist on one."""

_VERSION = re.compile(r"v\d+(alpha|beta)?\d*")
"""A part of a path that names a version of an API."""
_TAILS = ("/chat/completions", "/completions", "/models")


@dataclass(frozen=True)
class Endpoint:
    """One OpenAI-compatible server."""

    base: str
    """Base address of the OpenAI API: `http://host:8000/v1`."""
    key: str = field(repr=False)
    """Sent as bearer token; never logged."""

    @property
    def root(self) -> str:
        """The server itself, where `/version` and `/tokenize` are."""
        return self.base.removesuffix("/v1")


def normalise_address(address: str) -> str:
    """Complete an address: `host:8000`, `http://host:8000/` and `http://host:8000/v1` all become the last; raises
    `SpecError`.

    A path of one's own before `/v1`, as gateways have, is kept. So is a path with another version, such as
    `/v1beta/openai` or `/api/paas/v4`, as it is.
    """
    import httpx

    text = address.strip()
    text = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(text)
        _ = parts.port, httpx.URL(text)
        is_address = parts.hostname and parts.scheme in ("http", "https") and not re.search(r"[\s@?#]", text)
    except (ValueError, httpx.InvalidURL):
        is_address = False
    if not is_address:
        # Not repeated: it may hold a password.
        raise SpecError(
            "an endpoint is not the address of a server without user, '?' and '#': write it as "
            "http://127.0.0.1:8000/v1, and name the environment variable of a key in model.api_key_env"
        )
    path = parts.path.rstrip("/")
    for tail in _TAILS:
        path = path.removesuffix(tail)
    if not any(_VERSION.fullmatch(part) for part in path.split("/")):
        path += "/v1"
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def read_api_key(variable: str | None, usual: str | None = None) -> str | None:
    """Read the key from the variable that the spec names, else from the usual variable; None if that is not set.

    Raises `SpecError` if the spec's variable is not set, or one holds no key.
    """
    key = os.environ.get(variable or usual or "", "").strip()
    if not key and variable is not None:
        # A key that was written instead of a name is not shown: names are in capitals, as a rule.
        name = variable if variable.isupper() else "an environment variable"
        raise SpecError(f"model.api_key_env names {name}, and that environment variable is not set")
    if not key:
        return None
    # No message shows it from here on.
    remember_secret(key)
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SpecError(
            f"the environment variable {variable or usual}: a key is one word without special characters, and this is "
            "not; set it again"
        )
    return key


def make_key() -> str:
    """Make a new key of 256 random bits, in characters that a header and a shell take as they are."""
    key = secrets.token_urlsafe(32)
    remember_secret(key)
    return key
