"""Whether the data of a stored run still are what its answers and its scores are of, and how that is told.

Scores are made anew where golds have changed. Answers to texts that have changed since are never scored on the new
ones.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import Any

from medexam.benchmarks import Benchmark, find_benchmark
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.questions import AnySet
from medexam.specs.identity import IDENTITY_SCHEMA, differing_keys

_TEXTS = {"dataset.fingerprint", "twins"}
"""What differs in the identities of two runs that were asked other texts and are alike in all else."""
_BY_CONTENT = (
    *_TEXTS,
    "model.weights",
    "model.dtype",
    "model.script",
    "program.version",
    "words",
    "retriever",
    "reader",
    "pictures",
)
"""What identities hold of things that may change while a spec still says the same."""


class DataChange(StrEnum):
    """What has changed in the data of a run since it was asked and last scored."""

    SAME = "same"
    GOLDS = "golds changed"
    """The questions are the same, and their scores have to be made anew."""
    TEXTS = "texts changed"
    """What was asked is no longer what the data hold."""


def find_data_change(record: RunRecord, data: AnySet) -> DataChange:
    """Find what has changed between a run and its data as they are now, whatever is selected from them.

    A run of schema 1 is always `SAME`: the fingerprint of its files does not tell golds from texts.
    """
    if record.schema == 1:
        return DataChange.SAME
    if record.dataset_fingerprint != data.fingerprint:
        return DataChange.TEXTS
    return DataChange.SAME if record.dataset_golds == data.golds_fingerprint else DataChange.GOLDS


def load_stored(record: RunRecord) -> AnySet:
    """Load the items that a run was last asked for, with what is expected; raises `DatasetError` as `as_asked` does."""
    full_dataset = record.cell.dataset.whole
    return as_asked(record, find_benchmark(full_dataset).load(full_dataset))


def as_asked(record: RunRecord, data: AnySet) -> AnySet:
    """Return `data` with the items that the run was last asked for, in its order, without those that have lost their
    answer.

    `data` is everything that the run's data set holds. Raises `DatasetError` if an item is gone, and if the texts are
    no longer those that the run was asked.
    """
    if find_data_change(record, data) is DataChange.TEXTS:
        raise DatasetError(
            f"run {record.run_id} cannot be scored again: {describe_texts(record, data)}; restore "
            f"{record.dataset_source}, or run its spec again to ask the texts as they are"
        )
    items_by_key = {item.key: item for item in data.questions}
    missing_keys = [key for key in record.questions if key not in items_by_key and key not in data.left_out]
    if missing_keys:
        raise DatasetError(
            f"{len(missing_keys)} of {len(record.questions)} questions of run {record.run_id} are no longer in the "
            f"data set ({missing_keys[0]}): restore the file it was made from ({record.dataset_source}), or run the "
            "spec again"
        )
    return replace(data, questions=tuple(items_by_key[key] for key in record.questions if key in items_by_key))


def asked_same_texts(record: RunRecord, other: RunRecord) -> bool:
    """Return whether two runs in one language were asked the same texts; taken for granted where one is of schema 1."""
    return 1 in (record.schema, other.schema) or record.dataset_fingerprint == other.dataset_fingerprint


def describe_texts(record: RunRecord, data: AnySet) -> str:
    """Describe how the texts of a run's data differ from those that it was asked."""
    return (
        f"the texts of its data have changed since it was asked (SHA-256 {record.dataset_fingerprint[:12]} then, "
        f"{data.fingerprint[:12]} in {data.source} now)"
    )


def describe_golds(folder: RunFolder, record: RunRecord, data: AnySet) -> str | None:
    """Describe in one line whose scores are made anew for golds that have changed; None where none has."""
    if find_data_change(record, data) is not DataChange.GOLDS:
        return None
    change_count = _count_changed(folder, record, data)
    count_note = "" if not change_count else f" ({change_count} of its {len(record.questions)} questions)"
    return (
        f"run {record.run_id}: golds of its data have changed since it was scored{count_note}; "
        "its scores are made again"
    )


def describe_earlier(folder: RunFolder, spec_digest: str, identity: Mapping[str, Any]) -> str | None:
    """Describe in one line why `folder`, not made yet, does not go on with the last run of a spec that reads the same.

    Something that the spec names has changed its content, or an earlier version made that run. None if there is no
    such run.
    """
    paths = folder.path.parent.glob(f"{folder.name.removesuffix(spec_digest)}*")
    for earlier_folder in sorted(map(RunFolder, paths), key=_begun, reverse=True):
        with suppress(RunFolderError):
            record = earlier_folder.read_record()
            if record.schema != IDENTITY_SCHEMA:
                return (
                    f"an earlier version of medexam made run {record.run_id} and did not record which model "
                    f"answered: it is kept, and run {folder.name} asks again"
                )
            keys = differing_keys(identity, record.identity)
            if keys and all(key.startswith(_BY_CONTENT) for key in keys):
                only_texts = _TEXTS.issuperset(keys)
                subject = "the texts of the data have" if only_texts else f"what the spec names has ({', '.join(keys)})"
                return (
                    f"{subject} changed since run {record.run_id} was asked, which is kept: "
                    f"run {folder.name} asks again"
                )
    return None


def _begun(folder: RunFolder) -> float:
    """Return when the run's folder was made or last filled; seconds since 1970."""
    return folder.path.stat().st_mtime


def _count_changed(folder: RunFolder, record: RunRecord, data: AnySet) -> int | None:
    """Count the items of the run's Parquet file that have another gold now, or none; None without a readable file."""
    from medexam.experiments.store.parquet import read_rows  # not above: planning imports no pyarrow

    rows = read_rows(folder, {"gold", "also_right"}.__contains__)
    if not rows or "gold" not in rows[0]:
        return None
    benchmark = find_benchmark(record.cell.dataset)
    return sum(row["question"] not in data.golds or _differs(benchmark, row, data.golds) for row in rows)


def _differs(benchmark: Benchmark[Any, Any, Any], row: Mapping[str, Any], golds: Mapping[str, Any]) -> bool:
    """Return whether a stored row holds another right answer, or other further ones, than there are now."""
    gold = golds[row["question"]]
    if "also_right" in row and list(gold.others) != (row["also_right"] or []):
        return True
    return bool(benchmark.expected(gold) != row["gold"])
