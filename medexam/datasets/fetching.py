"""Brings data sets from the Hugging Face hub to the cache folder: the only reader that uses the network.

It writes tables of exams, which the readers know. It leaves pictures behind, unless they are asked for, and keeps their
names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam.datasets.exam_table import FIELDS, WHOLE, parse_image, write_exam_table
from medexam.datasets.rows import parse_whole_number
from medexam.errors import DatasetError
from medexam.files import cache_dir, first_line
from medexam.questions import Language
from medexam.specs.catalogue import check_language, find_entry

HUB_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """One language that was brought here."""

    language: Language
    path: Path
    questions: int
    origin: str
    """The hub id, with `@` and the commit where the hub said it."""


def fetch_exam_set(
    name: str,
    languages: Sequence[Language] | None = None,
    *,
    hub: str | None = None,
    folder: Path | None = None,
    images: bool = False,
) -> Iterator[Fetched]:
    """Bring `name` in `languages` (None: all that it is published in), yielding each as it arrives.

    `hub` is another hub id, or a local copy of the hub's folder, to read instead of the authors' own; `folder` is
    written instead of the cache folder; `images` keeps the bytes of pictures. Raises `DatasetError` if the hub cannot
    be reached or holds something else.
    """
    entry = find_entry(name)
    if entry.hub is None:
        if entry.origin is not None:
            raise DatasetError(
                f"{name} is not on the hub: download it from {entry.origin} and set MEDEXAM_DATA to the folder "
                f"that holds {entry.folder or name}"
            )
        raise DatasetError(f"{name} ships in the package: there is nothing to fetch")
    language_codes = tuple(languages) if languages else entry.languages
    for language in language_codes:
        check_language(name, language)
    origin = hub or entry.hub
    revision = _fetch_revision(origin)
    stated = f"{origin}@{revision}" if revision else origin
    for language in language_codes:
        records = _fetch_records(origin, language, revision)
        for record in records:
            record.update({field: parse_whole_number(record[field]) for field in WHOLE})
            if not images:
                record["image"] = parse_image(record["image"])
            elif isinstance(record["image"], str):
                record["image"] = {"bytes": None, "path": record["image"]} if record["image"] else None
        path = (folder or cache_dir()) / name / f"{language}.parquet"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_exam_table(path, records, stated, with_pictures=images)
        except OSError as error:
            raise DatasetError(
                f"cannot write {path} ({error}): set MEDEXAM_CACHE to a folder that can be written"
            ) from None
        yield Fetched(language=language, path=path, questions=len(records), origin=stated)


def _fetch_revision(hub: str) -> str | None:
    if Path(hub).is_dir():
        return None
    import httpx
    from huggingface_hub import HfApi
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        return HfApi().dataset_info(hub, timeout=HUB_TIMEOUT_S).sha
    except OfflineModeIsEnabled:
        return None
    except (OSError, ValueError, httpx.HTTPError) as error:
        raise _unreachable(hub, error) from None


def _fetch_records(hub: str, language: Language, revision: str | None) -> list[dict[str, Any]]:
    """Fetch every row of one language, all hub splits together, pictures as the hub's `{path, bytes}`."""
    try:
        import datasets
    except ImportError:
        raise DatasetError(
            "fetching needs the `datasets` library: pip install 'medexam[data]', or copy the files and set MEDEXAM_DATA"
        ) from None
    import httpx

    try:
        parts = datasets.load_dataset(hub, language, revision=revision)
    except (OSError, ValueError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
        raise _unreachable(f"{hub}, configuration {language}", error) from None
    records: list[dict[str, Any]] = []
    for split, part in parts.items():
        if missing := [field for field in FIELDS if field not in part.column_names]:
            raise DatasetError(f"{hub}, configuration {language}, split {split}: lacks the fields {', '.join(missing)}")
        if isinstance(part.features["image"], datasets.Image):
            part = part.cast_column("image", datasets.Image(decode=False))
        records += map(dict, part.select_columns(list(FIELDS)))
    return records


def _unreachable(name: str, error: Exception) -> DatasetError:
    return DatasetError(
        f"cannot download {name} from the Hugging Face hub ({first_line(error)}): check the network, HF_HUB_OFFLINE "
        f"and HF_ENDPOINT, or copy the files by hand and set MEDEXAM_DATA or dataset.path"
    )
