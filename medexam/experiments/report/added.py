"""Tables that installed packages add to a report."""

import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.store.stored_run import AnyRun
from medexam.plugins import added_names, load_object
from medexam.tables import Captioned

REPORT_TABLES = "medexam.report_tables"
"""The group: functions of runs that return what `--json` says of each of them, and tables."""
_log = logging.getLogger(__name__)

Added = tuple[list[dict[str, Any]], list[Captioned]]


def find_added_tables(runs: Sequence[AnyRun]) -> Added:
    """Return what packages say of each run, JSON-ready, and their tables."""
    documents: list[dict[str, Any]] = [{} for _ in runs]
    tables: list[Captioned] = []
    for name in added_names(REPORT_TABLES):
        new_documents, new_tables = _load(name)(runs)
        for document, new_document in zip(documents, new_documents, strict=True):
            document |= new_document
        tables += new_tables
    return documents, tables


@cache
def _load(name: str) -> Callable[[Sequence[AnyRun]], Added]:
    """Load what a package adds; where that fails, it is told once and adds nothing."""
    try:
        find: Callable[[Sequence[AnyRun]], Added] = load_object(name, REPORT_TABLES)
    except SpecError as error:
        _log.warning("medexam: warning: %s; its tables are left out", error)
        return lambda runs: ([{} for _ in runs], [])
    return find
