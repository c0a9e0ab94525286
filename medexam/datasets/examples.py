"""The examples of a `medexam.Evaluate`, as its run folder holds them: one JSON object a line, with inputs and labels.

An example is known by its content: the key is a digest of it. So a set of them has no fingerprint of its own, and two
evaluations share the examples that are equal.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.datasets.fingerprints import digest_files
from medexam.datasets.locating import find_own_file
from medexam.errors import DatasetError
from medexam.questions import Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec

EXAMPLES_FILE = "examples.jsonl"
"""The file in the run's folder."""
BY_CONTENT = "examples are known by their content"
"""Stands for the fingerprint of any set of examples: their keys tell two of them apart."""


@dataclass(frozen=True)
class ExampleRecord:
    """One example, as JSON."""

    key: str
    """Digest of inputs and labels; equal examples of one set are numbered behind it."""
    inputs: Mapping[str, Any]
    """What the module is called with."""
    labels: Mapping[str, Any]
    """The other fields, which the metric reads."""

    def to_line(self) -> str:
        """Write the example as a line of the file."""
        document = {"key": self.key, "inputs": self.inputs, "labels": self.labels}
        return json.dumps(document, ensure_ascii=False) + "\n"


def read_examples(path: Path) -> dict[str, ExampleRecord]:
    """Map key to example for each line of the file; raises `DatasetError` if it is missing or damaged."""
    try:
        lines = find_own_file(path).read_bytes().splitlines()
        records = (ExampleRecord(**json.loads(line)) for line in lines)
        return {record.key: record for record in records}
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"{path} holds no examples ({error}): restore it, or evaluate again") from None


def load_example_set(spec: DatasetSpec) -> TaskSet:
    """Load all examples that the spec's file holds; raises as `read_examples` does."""
    assert spec.path is not None  # noqa: S101 - the spec's own validator requires it
    return build_example_set(spec, read_examples(spec.path).values(), digest_files(spec))


def build_example_set(spec: DatasetSpec, records: Iterable[ExampleRecord], files_digest: str) -> TaskSet:
    """Build the set of these examples, in their order."""
    tasks = [
        (
            Task(key=record.key, group="all", language=spec.language, question="\n".join(_lines(record.inputs))),
            TaskGold(answers=_lines(record.labels)),
        )
        for record in records
    ]
    return TaskSet(
        name=spec.name,
        language=spec.language,
        version="own",
        source=str(spec.path),
        fingerprint=BY_CONTENT,
        golds_fingerprint=BY_CONTENT,
        questions=tuple(task for task, _ in tasks),
        golds={task.key: gold for task, gold in tasks},
        files_digest=files_digest,
    )


def _lines(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Write each field on a line; the value alone if there is one field."""
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in fields.items()
    }
    return tuple(texts.values()) if len(texts) == 1 else tuple(f"{name}: {text}" for name, text in texts.items())
