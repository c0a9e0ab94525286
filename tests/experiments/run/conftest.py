"""A document over the bundled sample whose model replies from a file."""

import pytest
import yaml


@pytest.fixture
def spec(tmp_path):
    """The document; `replies.yaml` in `tmp_path` holds the replies."""
    replies = tmp_path / "replies.yaml"
    replies.write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    return {
        "name": "scripted",
        "dataset": {"name": "headqa_sample", "limit": 12},
        "model": {"engine": "scripted", "path": str(replies)},
        "program": {"kind": "zero_shot"},
    }
