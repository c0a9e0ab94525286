"""The blocks of a page, read as its scripts read them."""

import base64
import gzip
import json
from typing import Any

from medexam.experiments.report.page.blocks import Block


def unpack(block: Block) -> Any:
    """What was packed."""
    return json.loads(gzip.decompress(base64.b64decode(block.text)))
