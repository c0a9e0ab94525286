"""Every provider's wire: each way of asking is answered, what it takes is found out, and docs/providers.md says so."""

from typing import Any

import pytest
from provider_table import ENTRIES, PAGE, SERVERS, examine_provider, examine_server, provider_row, server_row
from provider_wires import ROWS, WIRES


@pytest.fixture(scope="module")
def entries() -> list[str]:
    return PAGE.read_text(encoding="utf-8").partition(ENTRIES)[2].partition("<!-- end -->")[0].split("\n")[1:-2]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["model"])
def test_a_provider(row: dict[str, Any], entries: list[str]) -> None:
    record, answers = examine_provider(WIRES[ROWS.index(row)])
    assert {name: record[name] for name in row["right"]} == row["right"]
    assert record["fault"] is None
    guided = {} if record["guided_by"] is None else {"guided": "3"}
    assert answers == {**dict.fromkeys(("free", "few-shot", "CoT"), "{Answer: 1}"), **guided}
    assert provider_row(record) in entries


@pytest.mark.parametrize("name", SERVERS)
def test_a_server(name: str, entries: list[str]) -> None:
    record, answers = examine_server(name)
    assert answers == dict.fromkeys(("free", "few-shot", "CoT"), "hello")
    assert server_row(name, record) in entries


def test_nothing_else_stands_in_the_list(entries: list[str]) -> None:
    assert len(entries) == len(WIRES) + len(SERVERS)
