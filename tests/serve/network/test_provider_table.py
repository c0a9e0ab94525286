"""The list of docs/providers.md is what the wires show."""

import pytest
from provider_table import ENTRIES, PAGE, SERVERS, provider_row, server_row
from provider_wire import ProviderWire
from provider_wires import WIRES


@pytest.fixture(scope="module")
def rows() -> list[str]:
    entries = PAGE.read_text(encoding="utf-8").partition(ENTRIES)[2].partition("<!-- end -->")[0]
    return entries.split("\n")[1:-2]


@pytest.mark.parametrize("kind", WIRES, ids=lambda kind: kind.model_name)
async def test_a_provider(kind: type[ProviderWire], rows: list[str]) -> None:
    assert await provider_row(kind) in rows


@pytest.mark.parametrize("name", SERVERS)
async def test_a_server(name: str, rows: list[str]) -> None:
    assert await server_row(name) in rows


def test_every_way_works_at_every_provider(rows: list[str]) -> None:
    assert len(rows) == len(WIRES) + len(SERVERS)
    assert not [line for line in rows if ": no " in line]
