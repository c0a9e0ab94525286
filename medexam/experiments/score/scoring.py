"""Scores of a stored run as its data set is today, without asking a model.

The predictions hold no score, so a corrected gold or a new metric needs the data set and this module only.
"""

from medexam.benchmarks import find_benchmark
from medexam.experiments.score.own import score_all
from medexam.experiments.store.data_changes import load_stored
from medexam.experiments.store.run_folder import RunFolder
from medexam.experiments.store.stored_run import AnyRun, stored_run


def rescore(folder: RunFolder) -> AnyRun:
    """Score the run in `folder` anew; nothing is written.

    Raises `DatasetError` where the data set cannot be read, lacks a question that was asked, or holds other texts.
    """
    run = folder.read_record()
    items = load_stored(run)
    with folder.opened_predictions() as predictions:
        scored, own = score_all(folder, find_benchmark(run.cell.dataset), items, predictions)
        return stored_run(folder, scored.metrics, predictions if scored.metrics.failed else {}, own.warnings)
