"""The items of a stored run, found again in the data set as it is today."""

from dataclasses import replace

from medexam.benchmarks import find_benchmark
from medexam.errors import DatasetError
from medexam.experiments.store.data_changes import DataChange, describe_texts, find_data_change
from medexam.experiments.store.run_folder import RunRecord
from medexam.items import AnySet


def load_stored(record: RunRecord) -> AnySet:
    """The items that a run was last asked for, with what is expected; raises `DatasetError` as `as_asked` does."""
    whole = record.cell.dataset.whole
    return as_asked(record, find_benchmark(whole.name).load(whole))


def as_asked(record: RunRecord, data: AnySet) -> AnySet:
    """`data` with the items that the run was last asked for, in its order, without those that have lost their answer.

    `data` is everything that the run's data set holds. Raises `DatasetError` if an item is gone, and if the texts are
    no longer those that the run was asked.
    """
    if find_data_change(record, data) is DataChange.TEXTS:
        raise DatasetError(
            f"run {record.run_id} cannot be scored anew: {describe_texts(record, data)}; restore "
            f"{record.dataset_source}, or run its spec again to ask the texts as they are"
        )
    known = {item.key: item for item in data.questions}
    gone = [key for key in record.questions if key not in known and key not in data.left_out]
    if gone:
        raise DatasetError(
            f"{len(gone)} of {len(record.questions)} questions of run {record.run_id} are no longer in the data set "
            f"({gone[0]}): restore the file it was made from ({record.dataset_source}), or run the spec again"
        )
    return replace(data, questions=tuple(known[key] for key in record.questions if key in known))
