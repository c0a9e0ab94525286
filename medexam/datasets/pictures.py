"""The pictures that questions refer to: found in the rows of a data set or as files beside it, scaled, and shown.

A file is looked for in the folder of the data and below it. A name that leads out of that folder, by `..` or by a link,
is an error. Nothing is fetched: an address is no file. The fingerprint in a run's identity covers the pictures' own
bytes, of the whole source, and not what is made of them.

A JPEG or PNG file in grey or RGB that is small enough and stands upright is shown byte for byte. Any other picture is
turned upright, put on white where it is transparent, scaled down by Lanczos' filter and written anew: as JPEG of
quality 90 if it was one, else as PNG.
"""

import base64
import hashlib
import io
import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from medexam.datasets.loading import load_rows
from medexam.datasets.locating import locate_files
from medexam.datasets.own.questions import Columns, parse_choice, read_questions
from medexam.datasets.own.tables import read_file
from medexam.errors import DatasetError
from medexam.questions import ExamSet, Question
from medexam.specs import DatasetSpec
from medexam.text import count_of

if TYPE_CHECKING:
    from PIL import Image

FOLDER = "images"
"""A folder beside the data in which pictures are looked for, too."""
RULE = 1
"""Version of the rule by which a picture becomes what is shown; raise it where other bytes are shown."""
_MOST_PIXELS = 100_000_000
"""A picture with more is taken for a fault, as a small file can unpack to any size."""
_SHOWN = 3
"""Missing pictures that a message names."""
_ORIENTATION = 0x0112
"""The tag of a photograph that says how it was held; 1 is upright."""


def show_pictures(
    exams: ExamSet, spec: DatasetSpec, longest_side: int, keys: Collection[str] | None = None
) -> tuple[ExamSet, dict[str, Any]]:
    """Give each selected question its picture; also return what a run's identity says of the pictures.

    `keys` are those of the questions that get their pictures; None: all that are selected. Raises `DatasetError` if no
    question of the source refers to a picture, if one that is needed is missing or not whole, or if a name leads out of
    the folder of the data.
    """
    needed_keys = {question.key for question in exams.questions} if keys is None else set(keys)
    digests: list[list[str | None]] = []
    picture_by_key: dict[str, str] = {}
    scaled: dict[str, str] = {}
    missing: list[str] = []
    for question, content in _read_originals(spec):
        digest = None if content is None else hashlib.sha256(content).hexdigest()
        digests.append([question.key, digest])
        if question.key not in needed_keys:
            continue
        if content is None or digest is None:
            missing.append(f"{question.image} of {question.key}")
            continue
        if digest not in scaled:
            scaled[digest] = scale_picture(content, longest_side, f"{question.image} of {question.key}")
        picture_by_key[question.key] = scaled[digest]
    if not digests:
        raise DatasetError(f"{exams.source}: no question refers to a picture: set program.images to hidden")
    if missing:
        names = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")
        raise DatasetError(
            f"{exams.source}: missing {count_of(len(missing), 'picture')}: {names}: put them beside the data, under "
            f"their names or in a folder {FOLDER}, or fetch them with `medexam data fetch NAME --images`; or set "
            "program.images to hidden, or dataset.images to without"
        )
    questions = tuple(
        question.model_copy(update={"picture": picture_by_key[question.key]})
        if question.key in picture_by_key
        else question
        for question in exams.questions
    )
    listing = json.dumps(sorted(digests, key=str)).encode()
    identity = {"fingerprint": hashlib.sha256(listing).hexdigest(), "longest_side": longest_side, "rule": RULE}
    return replace(exams, questions=questions), identity


def _read_originals(spec: DatasetSpec) -> Iterator[tuple[Question, bytes | None]]:
    """Read each question of the source that refers to a picture, whatever is selected, with the picture's bytes.

    None where the data set names a picture and does not hold it.
    """
    if spec.kind is None:
        place = (spec.name, spec.language, spec.path)
        rows = load_rows(*place, explained=spec.explained, as_published=spec.as_published).rows
        files = locate_files(*place)
        embedded, folder = read_embedded(files), files[0].parent
    else:
        table = read_questions(spec)
        rows, columns = parse_choice(table, spec)[0].rows, Columns(spec.columns, table, ("stem",))
        folder = Path() if spec.path is None else spec.path.expanduser().parent
    for question in (row.question for row in rows):
        if question.image is None:
            continue
        if spec.kind is None:
            image: Any = embedded.get((question.exam.name, question.number))
        else:
            # The number of a question of one's own is its row's, from 1.
            image = columns.value(table.rows[question.number - 1].record, "image")
        content = image.get("bytes") if isinstance(image, Mapping) else None
        yield question, content or _read_file(folder, question.image, shortened=spec.kind is None)


def read_embedded(paths: Sequence[Path]) -> Mapping[tuple[str, int], Mapping[str, Any]]:
    """Map booklet and number to the `{path, bytes}` of the pictures in tables of exams.

    Raises `DatasetError` for a file that is not whole.
    """
    tables = (read_file(path, raw_texts=True) for path in paths if path.suffix == ".parquet")
    records = (row.record for table in tables for row in table.rows if isinstance(row.record, Mapping))
    return {
        (record["name"], int(record["qid"])): record["image"]
        for record in records
        if isinstance(record["image"], Mapping)
    }


def _read_file(folder: Path, name: str, *, shortened: bool) -> bytes | None:
    """Read the file called `name` in `folder` or in its `images`; None if there is none.

    `shortened` looks for it without the first folders of its name, too: some published names begin where their authors
    kept them.
    """
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part != "."]
    leads_out = DatasetError(
        f"picture {name!r:.80} lies outside of {folder}, the folder of the data, and is not read: put it there and "
        "name it from there"
    )
    if not parts or PurePosixPath(name).is_absolute() or Path(name).is_absolute() or ".." in parts:
        raise leads_out
    for first in range(len(parts) if shortened else 1):
        for base in (folder, folder / FOLDER):
            path = base.joinpath(*parts[first:])
            try:
                is_file = path.is_file()
            except OSError:
                is_file = False
            if is_file and not path.resolve().is_relative_to(folder.resolve()):
                raise leads_out
            try:
                if is_file:
                    return path.read_bytes()
            except OSError as error:
                raise DatasetError(f"{path}: cannot be read ({error.strerror}): make it readable") from None
    return None


def scale_picture(content: bytes, longest_side: int, name: str) -> str:
    """Scale what is shown of a picture, as a data URL; `longest_side` in pixels, `name` for messages.

    Raises `DatasetError` if `content` is not a complete picture.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns of sizes that are refused below, and of damaged tags, which do not matter here.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content)) as picture:
                if picture.width * picture.height > _MOST_PIXELS:
                    raise DatasetError(f"picture {name}: has {picture.width} x {picture.height} pixels: scale it down")
                picture.load()
                kind = "JPEG" if picture.format == "JPEG" else "PNG"
                upright = picture.getexif().get(_ORIENTATION, 1) == 1 and picture.mode in ("L", "RGB")
                if picture.format != kind or not upright or max(picture.size) > longest_side:
                    target = io.BytesIO()
                    quality = {"quality": 90} if kind == "JPEG" else {}
                    _draw(picture, longest_side).save(target, kind, **quality)
                    content = target.getvalue()
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise DatasetError(f"picture {name}: is not a complete picture ({error}): copy it again") from None
    return f"data:image/{kind.lower()};base64,{base64.b64encode(content).decode('ascii')}"


def _draw(picture: "Image.Image", longest_side: int) -> "Image.Image":
    """Draw the picture upright, in grey or RGB, no longer than `longest_side`."""
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(picture)
    if upright.mode.startswith("I"):
        # 16 bits of grey, which a plain conversion would cut off at 255.
        upright = upright.convert("I").point(lambda value: value / 256).convert("L")
    if upright.has_transparency_data:
        layer = upright.convert("RGBA")
        upright = Image.new("RGBA", layer.size, "white")
        upright.alpha_composite(layer)
    if upright.mode not in ("L", "RGB"):
        upright = upright.convert("L" if upright.mode in ("1", "LA") else "RGB")
    upright.info.clear()
    upright.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
    return upright
