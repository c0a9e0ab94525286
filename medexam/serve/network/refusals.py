"""Why a server cannot be used at all, and each way out.

This module words what was found; it asks nothing.
"""

from collections.abc import Sequence
from typing import Any

from medexam.errors import EndpointSilentError, EndpointUnreachableError
from medexam.serve.network.connections import certificate_fault
from medexam.serve.network.endpoints import Endpoint


def choose_card(endpoint: Endpoint, cards: Sequence[dict[str, Any]], name: str | None) -> dict[str, Any]:
    """The entry of `/models` with this name, or the only one where it is None; raises `EndpointUnreachableError`."""
    served = [str(card["id"]) for card in cards]
    if name is None and len(cards) == 1:
        return cards[0]
    for card in cards:
        if card["id"] == name:
            return card
    if name is None:
        raise EndpointUnreachableError(
            f"{endpoint.base} serves {len(served)} models ({', '.join(served) or 'none'}); name one in model.name"
        )
    raise EndpointUnreachableError(
        f"{endpoint.base} serves {', '.join(served) or 'no model'}, not {name}; "
        "correct model.name or model.endpoints, or leave model.name out to take the only one"
    )


def lost_server(endpoint: Endpoint, error: Exception) -> EndpointUnreachableError:
    """What a connection that failed means: `EndpointSilentError` unless its certificate is not believed."""
    found = certificate_fault(error)
    if found is None:
        reason = str(error) or type(error).__name__
        return EndpointSilentError(
            f"no server answers at {endpoint.base} ({reason}); start one with `medexam serve MODEL`, "
            "wait until it is healthy, or correct the endpoint"
        )
    known = f"known to {endpoint.ca_bundle}" if endpoint.ca_bundle else "known to this machine"
    return EndpointUnreachableError(
        f"the certificate of {endpoint.base} is not {known} ({found}); name a file with the certificate of its CA in "
        "model.ca_bundle"
    )
