"""Whole texts that tests compare with files in `cases/`.

A change that is meant is written there anew: `MEDEXAM_SEAL=1 python -m pytest FILE`.
"""

import os
import re
from pathlib import Path

import medexam

CASES = Path(__file__).with_name("cases")
DIGEST = re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b")


def check_sealed(name: str, text: str, tmp_path: Path) -> None:
    """Compare a text with the file `name`, in which the test's folder, digests and medexam's version have names."""
    text = DIGEST.sub("DIGEST", text.replace(str(tmp_path), "TMP").replace(medexam.__version__, "VERSION"))
    path = CASES / name
    if os.environ.get("MEDEXAM_SEAL"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
