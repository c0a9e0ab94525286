"""Whether the data set of a stored run still holds what the run was asked and scored with.

Scores are made anew where golds have changed. Answers to texts that have changed since are never scored on the new
ones: a report shows what was asked, and the run is not continued.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from medexam.datasets.fingerprints import digest_files
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments.store.items import read_items
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.measures.benchmarks.registry import find_stored_benchmark
from medexam.questions import AnySet
from medexam.specs.identity import differing_keys

_BY_CONTENT = (
    *("dataset.fingerprint", "translations", "prompts", "words", "pictures", "retriever", "reader"),
    *("model.weights", "model.dtype", "model.script"),
)
"""What identities hold of things that may change while a spec still says the same."""


@dataclass(frozen=True)
class CheckedItems:
    """What a run was asked, with the golds that its data set has now."""

    items: AnySet
    gold_note: str | None = None
    """Whose scores are made anew, because golds have changed; None where none has."""
    text_note: str | None = None
    """That the data set holds other texts by now; None where it does not, or is not at hand."""


def load_items(folder: RunFolder, keys: frozenset[str] | None = None, *, texts: bool = True) -> AnySet:
    """Load what the run was last asked, or the questions of `keys`: from its folder, else from the data set.

    Without `texts` those of questions with numbered options may be empty. Raises `RunFolderError` where the folder is
    damaged, and `DatasetError` as `as_asked` does.
    """
    record = folder.read_record()
    if record.keeps_items:
        return read_items(folder, keys, texts=texts)
    items = as_asked(record, _load_data(record))
    return items if keys is None else items.only(item.key for item in items.questions if item.key in keys)


def check_items(folder: RunFolder, *, texts: bool = True) -> CheckedItems:
    """Load what the run was last asked, and compare it with its data set if that is at hand and has changed.

    Code of the user's own is not run: what a benchmark of theirs loads is taken to be unchanged. `texts` and what is
    raised are as in `load_items`.
    """
    record, items = folder.read_record(), load_items(folder, texts=texts)
    if not record.keeps_items:
        return CheckedItems(items, describe_golds(folder, record, items))
    dataset = record.cell.dataset
    try:
        files_digest = items.files_digest if dataset.runs_code else digest_files(dataset)
        if files_digest == items.files_digest:
            return CheckedItems(items)
        data = _load_data(record)
    except DatasetError:
        return CheckedItems(items)
    if (text_note := describe_texts(record, data)) is not None:
        items = replace(items, files_digest=files_digest)
        return CheckedItems(items, text_note=f"{text_note}; the run is shown as it was asked")
    return CheckedItems(as_asked(record, data), describe_golds(folder, record, data))


def _load_data(record: RunRecord) -> AnySet:
    return find_stored_benchmark(record.cell.dataset, in_words=False).load(record.cell.dataset.whole)


def as_asked(record: RunRecord, data: AnySet) -> AnySet:
    """Return `data` with the items that the run was last asked for, in its order, without those that have lost their
    answer.

    `data` is everything that the run's data set holds. Raises `DatasetError` if an item is gone, and if the texts are
    no longer those that the run was asked.
    """
    if (text_note := describe_texts(record, data)) is not None:
        raise DatasetError(
            f"run {record.run_id} cannot be scored again: {text_note}; restore "
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


def describe_texts(record: RunRecord, data: AnySet) -> str | None:
    """Describe how the texts of a run's data differ from those that it was asked; None where they do not."""
    if record.dataset_fingerprint == data.fingerprint:
        return None
    return (
        f"the texts of its data have changed since it was asked (SHA-256 {record.dataset_fingerprint[:12]} then, "
        f"{data.fingerprint[:12]} in {data.source} now)"
    )


def describe_golds(folder: RunFolder, record: RunRecord, data: AnySet) -> str | None:
    """Describe in one line whose scores are made anew for golds that have changed; None where none has."""
    if record.dataset_golds == data.golds_fingerprint:
        return None
    count_note = ""
    if record.keeps_items:
        golds = read_items(folder).golds
        change_count = sum(key not in data.golds or golds[key] != data.golds[key] for key in golds)
        count_note = f" ({change_count} of its {len(record.questions)} questions)" if change_count else ""
    return (
        f"run {record.run_id}: golds of its data have changed since it was scored{count_note}; "
        "its scores are made again"
    )


def describe_replaced(folder: RunFolder, spec_digest: str, identity: Mapping[str, Any]) -> str | None:
    """Describe in one line why `folder`, not made yet, does not go on with the last run of a spec that reads the same.

    Something that the spec names has changed its content. None if there is no such run.
    """
    paths = folder.path.parent.glob(f"{folder.name.removesuffix(spec_digest)}*")
    for other in sorted(map(RunFolder, paths), key=lambda each: each.path.stat().st_mtime, reverse=True):
        with suppress(RunFolderError):
            record = other.read_record()
            keys = differing_keys(identity, record.identity)
            if keys and all(key.startswith(_BY_CONTENT) for key in keys):
                names = ("the texts of the data" if key == "dataset.fingerprint" else key for key in keys)
                return f"{', '.join(names)} changed since run {record.run_id} was asked: run {folder.name} asks again"
    return None
