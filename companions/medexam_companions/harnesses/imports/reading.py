"""Which harness wrote a file of results: known by its ending and what it opens with, never by its name."""

from pathlib import Path
from typing import Any

from medexam.files import UnreadableError, open_parquet, read_json
from medexam_companions.harnesses.imports.layout import read_layout
from medexam_companions.harnesses.imports.layouts import find_layout, layouts
from medexam_companions.harnesses.imports.plain_table import read_plain_table
from medexam_companions.harnesses.imports.samples import Results, ResultsError, read_lines
from medexam_companions.harnesses.imports.submission import is_submission, read_submission

_TOTALS = (
    *({"lm_eval_version"}, {"results", "versions"}, {"config_general", "results"}, {"score", "score:std"}),
    {"evaluation_id", "evaluation_results"},
)
"""Fields of files of scores alone, which harnesses write beside those of answers."""


def read_results(path: Path, measure: str | None = None) -> list[Results]:
    """Read what the file holds, one entry for each run that it becomes; only that of `measure` if one is named.

    Raises `ResultsError` if the file is missing, damaged or of no known form, or if it has no such measure.
    """
    results = _read(path, measure)
    names = [result.measure for result in results]
    if measure is not None and measure not in names:
        raise ResultsError(f"{path}: has no measure {measure!r}: it has {', '.join(names)}; choose one by --measure")
    return [result for result in results if measure in (None, result.measure)]


def _read(path: Path, measure: str | None) -> list[Results]:
    if is_submission(path):
        return [read_submission(path)]
    if not path.is_file():
        raise ResultsError(
            f"{path}: is neither a file nor a folder with an output of ClinIQLink, such as true_false.json; give a "
            "file of results"
        )
    ending = Path(path.name.removesuffix(".gz")).suffix
    head, document = _open(path, ending)
    layout = layouts()["inspect"] if ending == ".eval" else find_layout(document if head is None else head)
    if layout is not None:
        return read_layout(layout, path, document)
    if isinstance(document, dict) and any(fields <= document.keys() for fields in _TOTALS):
        raise ResultsError(
            f"{path}: has totals alone, no answers; give the file beside it that holds the samples, such as "
            "samples_*.jsonl (--log_samples), *_samples.jsonl, details_*.parquet or *_allresults.json"
        )
    return read_plain_table(path, measure)


def _open(path: Path, ending: str) -> tuple[Any, Any]:
    """Read the first line of a file of lines, or the names of a table's columns; and what a JSON document holds."""
    try:
        if ending == ".jsonl":
            return next(read_lines(path), None), None
        if ending == ".parquet":
            with open_parquet(path) as file:
                return dict.fromkeys(file.schema_arrow.names), None
        return None, read_json(path) if ending == ".json" else None
    except (OSError, UnreadableError) as error:
        raise ResultsError(f"{path}: {error}; was the file copied whole?") from None
