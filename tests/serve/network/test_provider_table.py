"""The table of docs/providers.md is what the wires show."""

import pytest
from provider_table import PAGE, SERVERS, provider_row, server_row
from provider_wire import ProviderWire
from provider_wires import WIRES


@pytest.fixture(scope="module")
def rows() -> list[str]:
    # The page's other tables have fewer columns.
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and line.count(" | ") > 3]


@pytest.mark.parametrize("kind", WIRES, ids=lambda kind: kind.model_name)
async def test_a_provider(kind: type[ProviderWire], rows: list[str]) -> None:
    assert await provider_row(kind) in rows


@pytest.mark.parametrize("name", SERVERS)
async def test_a_server(name: str, rows: list[str]) -> None:
    assert await server_row(name) in rows


def test_every_way_works_at_every_provider(rows: list[str]) -> None:
    assert len(rows) == 1 + len(WIRES) + len(SERVERS)
    assert all(line.split(" | ")[1:4] == ["yes"] * 3 and line.split(" | ")[4] != "no" for line in rows[1:])
