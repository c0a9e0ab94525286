"""Fixtures of where data sets lie; a folder whose tests read them imports these in its `conftest.py`."""

import os
from pathlib import Path

import pytest

FULL_DATA = os.environ.get("MEDEXAM_DATA")


@pytest.fixture(autouse=True)
def only_what_a_test_brings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MEDEXAM_DATA", raising=False)
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def full_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    if not FULL_DATA:
        pytest.skip("MEDEXAM_DATA does not name a folder with the full data sets")
    monkeypatch.setenv("MEDEXAM_DATA", FULL_DATA)
    return Path(FULL_DATA)
