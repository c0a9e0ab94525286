"""Which picture a question is linked to, and the file that holds it.

Pictures come in a folder of their own, as the Ministry gives them, their number the last in the file's name.
"""

import io
import re
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError

from medexam.errors import DatasetError

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"})

_NUMBER = r"(?:n(?:[úu]m(?:ero)?)?\s*\.?\s*[º°ªo]?\s*\.?\s*)?(\d{1,3})"
_LINK = re.compile(
    r"(?:pregunta\s+)?(?:vinculad|asociad|relacionad|referid)[oa]s?\s+(?:a|con)\s+(?:las?|las\s+siguientes)\s+"
    rf"im[aá]gen(?:es)?\s*{_NUMBER}(?:\s*(?:,|y|e)\s*(?:la\s+)?(?:imagen\s+)?{_NUMBER})*",
    re.IGNORECASE,
)
_PARENTHESIS = re.compile(rf"\(\s*(?:ver\s+|v[ée]ase\s+)?(?:la\s+)?imagen\s*{_NUMBER}\s*\)", re.IGNORECASE)
MENTION = re.compile(
    r"(?:ver|véase|muestra|observa\w*|adjunta|aporta\w*)\s+(?:en\s+)?(?:la|las|una)?\s*(?:imagen|figura|fotografía)\b"
    r"|(?:imagen|figura|fotografía)\s+(?:adjunta|siguiente)|(?:siguiente|adjunta)\s+(?:imagen|figura|fotografía)",
    re.IGNORECASE,
)


BookletPicture = dict[str, Any]
"""A picture as tables of exams hold it: its name, `path`, and the `bytes` of its file."""


def parse_links(stem: str) -> tuple[int, ...]:
    """Parse the numbers of the pictures that a question is linked to: `Pregunta vinculada a la imagen n.º 3` and its
    forms.
    """
    for pattern in (_LINK, _PARENTHESIS):
        if match := pattern.search(stem):
            return tuple(int(number) for number in re.findall(r"\d+", match.group()))
    return ()


def find_pictures(folder: Path) -> dict[int, Path]:
    """Find the picture files in `folder` by number; raise `DatasetError` when it is none or two carry one number."""
    if not folder.is_dir():
        raise DatasetError(f"{folder}: is not a folder: give --images the folder that holds the exam's pictures")
    path_by_number: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        numbers = re.findall(r"\d+", path.stem)
        if path.suffix.lower() not in SUFFIXES or not numbers or path.name.startswith("."):
            continue
        number = int(numbers[-1])
        if number in path_by_number:
            raise DatasetError(
                f"{path} and {path_by_number[number].name} both carry number {number}: remove one of them"
            )
        path_by_number[number] = path
    return path_by_number


def read_booklet_picture(path: Path) -> BookletPicture:
    """Read the picture at `path`; raise `DatasetError` when it is none or damaged."""
    content = path.read_bytes()
    try:
        with Image.open(io.BytesIO(content)) as picture:
            picture.load()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise DatasetError(f"{path}: is not a complete picture ({error}): copy it again") from None
    return {"path": path.name, "bytes": content}
