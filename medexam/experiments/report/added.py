"""Tables that installed packages add to a report."""

from collections.abc import Callable, Sequence
from typing import Any

from medexam.experiments.store.stored_run import AnyRun
from medexam.plugins import load_added
from medexam.tables import Captioned

REPORT_TABLES = "medexam.report_tables"
"""The group: functions of runs that return what `--json` says of each of them, and tables."""

Added = tuple[list[dict[str, Any]], list[Captioned]]


def find_added_tables(runs: Sequence[AnyRun]) -> Added:
    """Return what packages say of each run, JSON-ready, and their tables."""
    documents: list[dict[str, Any]] = [{} for _ in runs]
    tables: list[Captioned] = []
    finders: dict[str, Callable[[Sequence[AnyRun]], Added]] = load_added(REPORT_TABLES)
    for find in finders.values():
        new_documents, new_tables = find(runs)
        for document, new_document in zip(documents, new_documents, strict=True):
            document |= new_document
        tables += new_tables
    return documents, tables
