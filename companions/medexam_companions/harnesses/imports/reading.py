"""Which harness wrote a file of results: known by its ending and what it opens with, never by its name."""

from dataclasses import replace
from pathlib import Path

from medexam.inputs import UnreadableError, open_parquet, read_json
from medexam_companions.harnesses.imports.chat_logs import (
    find_opencompass,
    is_evalscope,
    is_opencompass,
    is_simple_evals,
    read_evalscope,
    read_opencompass,
    read_simple_evals,
)
from medexam_companions.harnesses.imports.every_eval_ever import (
    find_samples,
    is_evaluation,
    is_sample,
    read_every_eval_ever,
)
from medexam_companions.harnesses.imports.helm import is_helm, read_helm
from medexam_companions.harnesses.imports.inspect_logs import is_inspect, read_inspect
from medexam_companions.harnesses.imports.lighteval import is_lighteval, read_lighteval
from medexam_companions.harnesses.imports.lines import read_lines
from medexam_companions.harnesses.imports.lm_eval import is_lm_eval, read_lm_eval
from medexam_companions.harnesses.imports.lm_eval_early import find_write_out, read_write_out
from medexam_companions.harnesses.imports.plain_table import read_plain_table
from medexam_companions.harnesses.imports.samples import Results, ResultsError
from medexam_companions.harnesses.imports.words.submission import is_submission, read_submission


def read_results(path: Path, measure: str | None = None) -> list[Results]:
    """Read what the file holds, one entry for each run that it becomes; only that of `measure` if one is named.

    Raises `ResultsError` if the file is missing, damaged or of no known form, or if it has no such measure.
    """
    results = _read(path, measure)
    names = [result.measure for result in results]
    if measure is None:
        return results
    if measure not in names:
        raise ResultsError(f"{path}: has no measure {measure!r}: it has {', '.join(names)}; choose one by --measure")
    return [result for result in results if result.measure == measure]


def _read(path: Path, measure: str | None) -> list[Results]:
    if is_submission(path):
        return [read_submission(path)]
    if not path.is_file():
        raise ResultsError(
            f"{path}: is neither a file nor a folder with an output of ClinIQLink, such as true_false.json; give a "
            "file of results"
        )
    name = path.name.removesuffix(".gz")
    if name.endswith(".eval"):
        return read_inspect(path)
    if name.endswith(".jsonl"):
        return _read_lines(path, measure)
    if name.endswith(".parquet") and is_lighteval(_columns(path)):
        return read_lighteval(path)
    results = _read_document(path) if name.endswith(".json") else []
    return results or read_plain_table(path, measure)


def _read_lines(path: Path, measure: str | None) -> list[Results]:
    first = next(read_lines(path), None)
    if is_lm_eval(first):
        return read_lm_eval(path)
    if is_sample(first):
        return read_every_eval_ever(path)
    if is_evalscope(first):
        return read_evalscope(path, read_lines(path))
    return read_opencompass(path, list(read_lines(path))) if is_opencompass(first) else read_plain_table(path, measure)


def _read_document(path: Path) -> list[Results]:
    """Read what a JSON document holds; empty if no harness is known that writes the like."""
    document = _load(path)
    if is_inspect(document):
        return read_inspect(path, document)
    if is_helm(document):
        return read_helm(path, document)
    if isinstance(document, dict) and is_evaluation(document):
        samples = find_samples(path, document)
        return [replace(result, companions=(samples,)) for result in read_every_eval_ever(samples)]
    if isinstance(document, list) and document and is_lm_eval(document[0]):
        return read_lm_eval(path)
    if write_out := find_write_out(document):
        return read_write_out(path, write_out)
    if predictions := find_opencompass(document):
        return read_opencompass(path, predictions)
    if isinstance(document, dict) and is_simple_evals(document):
        return read_simple_evals(path, document)
    _refuse_scores(path, document)
    return []


def _refuse_scores(path: Path, document: object) -> None:
    """Raise `ResultsError` for a file of scores alone, with the name of the one that holds the answers."""
    fields = document.keys() if isinstance(document, dict) else ()
    if "lm_eval_version" in fields or {"results", "versions"} <= set(fields):
        raise ResultsError(f"{path}: has totals alone, no answers; give the samples_*.jsonl beside it (--log_samples)")
    if "score" in fields or "score:std" in fields:
        raise ResultsError(
            f"{path}: has totals alone, no answers; give the *_allresults.json of simple-evals beside it"
        )
    if {"config_general", "results"} <= set(fields):
        raise ResultsError(
            f"{path}: has totals alone, no answers; give the details_*.parquet of lighteval (--save-details)"
        )


def _columns(path: Path) -> list[str]:
    try:
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    except UnreadableError as error:
        raise ResultsError(f"{path}: {error}; was the file copied whole?") from None


def _load(path: Path) -> object:
    try:
        return read_json(path)
    except (OSError, UnreadableError) as error:
        raise ResultsError(f"{path}: {error}; was the file copied whole?") from None
