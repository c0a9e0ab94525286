"""How each run's numbers came about, as a table of its own."""

from collections.abc import Sequence

from medexam.experiments.store.protocol import read_protocol
from medexam.experiments.store.stored_run import StoredRun
from medexam.tables import Table

CAPTION = "Digests are the first digits of a SHA-256. `medexam compare --protocol` shows where two runs differ."


def protocol_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """Build one table a run."""
    return [
        Table(
            f"Protocol: {run.title}",
            ("What", "How"),
            tuple(read_protocol(run.record, run.environment).items()),
            text_columns=2,
            caption=CAPTION,
        )
        for run in runs
    ]
