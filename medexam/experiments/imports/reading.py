"""Which harness wrote a file of results: known by its ending and what it opens with, never by its name."""

from dataclasses import replace
from pathlib import Path

from medexam.experiments.imports.every_eval_ever import find_samples, is_evaluation, is_sample, read_every_eval_ever
from medexam.experiments.imports.helm import is_helm, read_helm
from medexam.experiments.imports.inspect_logs import is_inspect, read_inspect
from medexam.experiments.imports.lines import read_lines
from medexam.experiments.imports.lm_eval import is_lm_eval, read_lm_eval
from medexam.experiments.imports.plain_table import read_plain_table
from medexam.experiments.imports.samples import Results, ResultsError
from medexam.inputs import UnreadableError, read_json


def read_results(path: Path, measure: str | None = None) -> list[Results]:
    """What the file holds, one entry for each run that it becomes; only that of `measure` if one is named.

    Raises `ResultsError` if the file is missing, damaged or of no known form, or if it has no such measure.
    """
    found = _read(path, measure)
    names = [each.measure for each in found]
    if measure is None:
        return found
    if measure not in names:
        raise ResultsError(f"{path}: has no measure {measure!r}: it has {', '.join(names)}; choose one by --measure")
    return [each for each in found if each.measure == measure]


def _read(path: Path, measure: str | None) -> list[Results]:
    if not path.is_file():
        raise ResultsError(f"{path}: is no file; give a file of results")
    name = path.name.removesuffix(".gz")
    if name.endswith(".eval"):
        return read_inspect(path)
    if name.endswith(".jsonl"):
        first = next(read_lines(path), None)
        if is_lm_eval(first) or is_sample(first):
            return read_lm_eval(path) if is_lm_eval(first) else read_every_eval_ever(path)
    if name.endswith(".json"):
        document = _load(path)
        if is_inspect(document):
            return read_inspect(path, document)
        if is_helm(document):
            return read_helm(path, document)
        if isinstance(document, dict) and is_evaluation(document):
            samples = find_samples(path, document)
            return [replace(each, beside=(samples,)) for each in read_every_eval_ever(samples)]
        if isinstance(document, dict) and "lm_eval_version" in document:
            raise ResultsError(f"{path}: holds no single answers; give the samples_*.jsonl beside it (--log_samples)")
    return read_plain_table(path, measure)


def _load(path: Path) -> object:
    try:
        return read_json(path)
    except (OSError, UnreadableError) as error:
        raise ResultsError(f"{path}: {error}; was the file copied whole?") from None
