"""Opens the files of CasiMedicos-Arg, in their archive or in a folder, and reads IOB2 lines as labelled sentences.

It unpacks nothing: an archive's members are read in memory. What a sentence means is for
`medexam_companions.casimedicos.documents` to say.
"""

import tarfile
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from medexam.errors import DatasetError
from medexam.files import first_line, open_unpacked

ARCHIVE = "casimedicos-arg.tar.gz"
"""What its authors call the archive."""
LABELS = ("B-Claim", "B-Premise", "I-Claim", "I-Premise", "O")


class Sentence(NamedTuple):
    """The lines between two blank ones."""

    line: int
    """Where it begins in its file, from 1."""
    tokens: tuple[str, ...]
    """In Unicode's NFC: one Spanish document is stored with decomposed accents."""
    labels: tuple[str, ...]
    """One of `LABELS` for each token."""

    @property
    def text(self) -> str:
        """The tokens, joined by single spaces."""
        return " ".join(self.tokens)


def read_members(path: Path, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Read where each of the files `names`, such as `ES/train.tsv`, was found, and its text; in their order.

    `path` is the archive, or the folder of the languages that it was unpacked to. Raises `DatasetError` if a file is
    missing, unreadable or not UTF-8.
    """
    members = None if path.is_dir() else _read_archive(path, names)
    for name in names:
        source = str(path / name) if members is None else f"{path}: {name}"
        try:
            text = ((path / name).read_bytes() if members is None else members[name]).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(f"{source}: cannot be read ({error}): unpack the whole archive again") from None
        yield source, text


def _read_archive(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    content_by_name: dict[str, bytes] = {}
    try:
        with open_unpacked(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for member in archive:
                name = "/".join(Path(member.name).parts[-2:])
                if name in names and (stream := archive.extractfile(member)) is not None:
                    content_by_name[name] = stream.read()
    except (OSError, EOFError, tarfile.TarError, ValueError, OverflowError) as error:
        raise DatasetError(f"{path}: is not a complete tar archive ({first_line(error)}): copy it again") from None
    if missing := [name for name in names if name not in content_by_name]:
        raise DatasetError(f"{path}: lacks {', '.join(missing)}: is it {ARCHIVE}, and whole?")
    return content_by_name


def parse_sentences(text: str, source: str) -> Iterator[Sentence]:
    """Parse the sentences of an IOB2 file. A token and its label stand on a line, separated by a space or a tab; blank
    lines stand between sentences.

    What follows the label, the quality of its projection and comments, is left out. Line ends may be CRLF. Raises
    `DatasetError` naming `source` and the line that holds something else.
    """
    tokens: list[str] = []
    labels: list[str] = []
    for number, line in enumerate((text + "\n\n").split("\n"), start=1):
        if line.strip():
            fields = line.rstrip("\r").replace("\t", " ").split(" ")
            if len(fields) < 2 or not fields[0] or fields[1] not in LABELS:
                raise DatasetError(
                    f"{source}, line {number}: is {line[:60]!r}, not a token and one of {', '.join(LABELS)}: "
                    f"the file may be damaged; unpack the archive again"
                )
            tokens.append(unicodedata.normalize("NFC", fields[0]))
            labels.append(fields[1])
        elif tokens:
            yield Sentence(number - len(tokens), tuple(tokens), tuple(labels))
            tokens, labels = [], []
