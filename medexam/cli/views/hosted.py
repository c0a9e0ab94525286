"""What `medexam doctor PROVIDER/MODEL` prints: the record of a hosted model, and the command that asks it."""

from collections.abc import Sequence
from typing import Any

from medexam.cli.views.output import print_json
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.shown import Block, Unbroken, print_blocks
from medexam.serve.diagnostics.hosted import HostedDiagnosis
from medexam.tables import Table


def print_hosted(diagnoses: Sequence[HostedDiagnosis], *, as_json: bool) -> None:
    """Print each model's record as a table, or all of them as JSON."""
    if as_json:
        print_json({"models": [_as_json(diagnosis) for diagnosis in diagnoses]})
        return
    blocks: list[Block] = []
    for diagnosis in diagnoses:
        record = diagnosis.capabilities
        source = "as it answered" if record.probed and diagnosis.fault is None else "by litellm's tables alone"
        refusals = {f"refuses {setting}": words for setting, words in record.refusals.items()}
        rows = tuple((record.describe() | refusals).items())
        blocks.append(Table(f"{record.model}, {source}", ("Way", "Verdict"), rows, text_columns=2))
        if diagnosis.command is not None:
            blocks += [Unbroken("To ask it a few questions:"), Unbroken(diagnosis.command)]
    print_blocks(Terminal(), blocks)


def _as_json(diagnosis: HostedDiagnosis) -> dict[str, Any]:
    record = diagnosis.capabilities
    return {
        **record.model_dump(mode="json"),
        "ways": record.describe(),
        "fault": diagnosis.fault,
        "command": diagnosis.command,
    }
