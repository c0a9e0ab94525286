"""The command line in this process, and specs over scripted replies."""

import json
from pathlib import Path

import pytest
import yaml

from command_line import _untracked, medexam, tracked

__all__ = ["_untracked", "medexam", "tracked"]


@pytest.fixture
def spec(tmp_path):
    """`spec(replies, dataset=...)` writes spec.yaml and its replies, and gives its path; None leaves a part out."""

    def write(replies: object = "{Answer: 1}", **changes: object) -> Path:
        table = replies if isinstance(replies, dict) else {"*": replies}
        (tmp_path / "replies.yaml").write_text(yaml.safe_dump(table, sort_keys=False))
        document = {
            "name": "trial",
            "dataset": {"name": "headqa_sample", "limit": 6},
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": {"kind": "zero_shot"},
            **changes,
        }
        (path := tmp_path / "spec.yaml").write_text(
            yaml.safe_dump({key: value for key, value in document.items() if value is not None})
        )
        return path

    return write


@pytest.fixture
def run(medexam):
    """`run(SPEC, "--limit", 3)`: the documents of `medexam run --json`, which ends with `code`."""

    def call(*arguments: object, code: int = 0) -> list[dict]:
        ended, out, err = medexam("run", *arguments, "--json")
        assert ended == code, err
        return json.loads(out)

    return call


@pytest.fixture
def refused(medexam):
    """`refused("run", "nothere")`: the only line that a command prints which ends with 2."""

    def call(*arguments: object) -> str:
        code, out, err = medexam(*arguments)
        lines = [line for line in err.splitlines() if not line.startswith(("Preparing", "preparing"))]
        assert (code, out, len(lines)) == (2, "", 1), err
        assert lines[0].startswith("medexam: "), err
        assert "Traceback" not in err
        return lines[0]

    return call
