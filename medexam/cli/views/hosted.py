"""What `medexam doctor PROVIDER/MODEL` prints: the record of a hosted model, and the command that asks it."""

import sys
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from medexam.cli.views.output import print_json
from medexam.experiments.entry.terminal import Terminal
from medexam.serve.diagnostics.hosted import HostedDiagnosis


def print_hosted(diagnoses: Sequence[HostedDiagnosis], *, as_json: bool) -> None:
    """Print each model's record as a table, or all of them as JSON."""
    if as_json:
        print_json({"models": [_as_json(diagnosis) for diagnosis in diagnoses]})
        return
    console = Terminal()
    for diagnosis in diagnoses:
        record = diagnosis.capabilities
        source = "as it answered" if record.probed and diagnosis.fault is None else "by litellm's tables alone"
        table = Table("", "", show_header=False, title=f"{record.model}, {source}")
        for feature, verdict in record.describe().items():
            table.add_row(feature, verdict)
        for setting, words in record.refusals.items():
            table.add_row(f"refuses {setting}", words)
        console.print(table)
        if diagnosis.command is not None:
            sys.stdout.write(f"\nTo ask it a few questions:\n{diagnosis.command}\n")


def _as_json(diagnosis: HostedDiagnosis) -> dict[str, Any]:
    record = diagnosis.capabilities
    return {
        **record.model_dump(mode="json"),
        "ways": record.describe(),
        "fault": diagnosis.fault,
        "command": diagnosis.command,
    }
