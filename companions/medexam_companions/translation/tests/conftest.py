"""A translation by the scripted engine: real folders, real checks, replies from a table of prompts."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import yaml

from data_folders import full_data
from medexam.model_calls import Dialogue
from scripted_engines import MADE, SCRIPTED

__all__ = ["full_data"]


class Translated(NamedTuple):
    """What `medexam data translate --json` printed and asked."""

    document: dict[str, Any]
    asked: list[Dialogue]
    err: str

    @property
    def folder(self) -> Path:
        return Path(self.document["folder"])

    @property
    def counts(self) -> dict[str, dict[str, Any]]:
        """By set-up."""
        return {count["setup"]: count for count in self.document["setups"]}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The questions of the written data set."""
        return pq.read_table(self.document["path"]).to_pylist()

    @property
    def replies(self) -> list[dict[str, Any]]:
        paths = (self.folder / "replies").glob("*/predictions.jsonl")
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


@pytest.fixture
def untracked(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Options by which nothing reaches MLflow, and nothing waits for it."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    return ("--tracking-uri", "http://127.0.0.1:9")


@pytest.fixture
def script(tmp_path: Path):
    """`script(replies, "base")`: the words that give a role of a translation these replies."""

    def write(replies, role="model", file=None):
        path = tmp_path / (file or f"{role}.yaml")
        path.write_text(yaml.safe_dump(replies, allow_unicode=True), encoding="utf-8")
        return ("--set", f"{role}.engine={SCRIPTED}", "--set", f"{role}.args={{path: {path}}}")

    return write


@pytest.fixture
def translate(medexam, untracked, tmp_path: Path):
    """`translate(*words)`: a translation of four sample questions with four options."""

    def call(*words, limit=4, dataset="headqa_sample", code=0) -> Translated:
        MADE.clear()
        fixed = ("--limit", limit, "--set", "dataset.option_counts=[4]", "--json", "--runs-dir", tmp_path)
        ended, out, err = medexam("data", "translate", dataset, *fixed, *untracked, *words)
        assert ended == code, err
        asked = [dialogue for engine in MADE for dialogue in engine.dialogues]
        return Translated(json.loads(out) if out else {}, asked, err)

    return call
