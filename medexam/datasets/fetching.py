"""Brings data sets from the Hugging Face hub to the cache folder: the only reader that uses the network.

What it writes has the file formats that the readers know, so that a fetched set and a copied one are read alike. It
leaves pictures behind, unless they are asked for, and keeps their names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from medexam.datasets.exam_table import FIELDS, write_hub_records
from medexam.datasets.readers import WRITERS
from medexam.datasets.rows import Record
from medexam.errors import DatasetError
from medexam.files import cache_dir
from medexam.questions import Language
from medexam.specs.catalogue import BUILT, DatasetInfo, check_language, find_entry

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
    if images and name != BUILT.name:
        raise DatasetError(
            f"--images: {name} keeps its pictures as files: put them beside its data, in a folder images"
        )
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
    target = (folder or cache_dir()) / name
    for language in language_codes:
        records = _fetch_records(origin, language, revision)
        path = target / entry.file_names[language][0]
        _write(entry, path, records, language, stated, images=images)
        yield Fetched(language=language, path=path, questions=len(records), origin=stated)


def _fetch_revision(hub: str) -> str | None:
    """Fetch the commit that the hub serves now; None for a local folder or when the hub is off limits
    (`HF_HUB_OFFLINE`).
    """
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


def _fetch_records(hub: str, language: Language, revision: str | None) -> list[Record]:
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
    records: list[Record] = []
    for split, part in parts.items():
        if missing := [field for field in FIELDS if field not in part.column_names]:
            raise DatasetError(f"{hub}, configuration {language}, split {split}: lacks the fields {', '.join(missing)}")
        if isinstance(part.features["image"], datasets.Image):
            part = part.cast_column("image", datasets.Image(decode=False))
        records += part.select_columns(list(FIELDS))
    return records


def _unreachable(name: str, error: Exception) -> DatasetError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DatasetError(
        f"cannot download {name} from the Hugging Face hub ({reason}): check the network, HF_HUB_OFFLINE "
        f"and HF_ENDPOINT, or copy the files by hand and set MEDEXAM_DATA or dataset.path"
    )


def _write(
    entry: DatasetInfo, path: Path, records: list[Record], language: Language, origin: str, *, images: bool
) -> None:
    """Write the file whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if images:
            write_hub_records(path, records, language, origin, with_pictures=True)
        else:
            WRITERS[entry.name](path, records, language, origin)
    except OSError as error:
        raise DatasetError(
            f"cannot write {path} ({error}): set MEDEXAM_CACHE to a folder that can be written"
        ) from None
