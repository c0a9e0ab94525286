"""What `metrics.json` holds of a kind of evidence, by attribute."""

import json
from types import SimpleNamespace

from medexam.measures import Metrics


def figures(metrics: Metrics, kind: str) -> SimpleNamespace:
    """The figures as they are after JSON: lists for all sequences."""
    return json.loads(json.dumps(metrics.evidence[kind]), object_hook=lambda fields: SimpleNamespace(**fields))
