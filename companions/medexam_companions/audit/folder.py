"""The folder of an audit: a sheet for each rater, how to mark, and the key that only the organisers look into.

A sheet names neither runs nor questions: a row carries a code, and `key.json` says what the code stands for.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from medexam.datasets import draw_lot
from medexam.errors import RunFolderError
from medexam.experiments import WorkFolder
from medexam.files import make_private_folder, whole_folder
from medexam.frozen_model import FrozenModel
from medexam_companions.audit.items import AuditItem
from medexam_companions.audit.review_sheets import COMMENT, render_sheet

KEY = "key.json"
INSTRUCTIONS = "instructions.txt"
CODE = "code"
CORRECTNESS = "correctness"
COMPLETENESS = "completeness"
ASPECTS = (CORRECTNESS, COMPLETENESS)
COLUMNS = (CODE, "question", "reference", "answer", *ASPECTS, COMMENT)
SCALES: Mapping[str, tuple[str, ...]] = {
    CORRECTNESS: (
        "wrong, or harmful if acted on",
        "mostly wrong",
        "partly right",
        "right but for details",
        "fully right",
    ),
    COMPLETENESS: (
        "nothing of what the reference holds",
        "little of it",
        "about half of it",
        "most of it",
        "all of it",
    ),
}
"""What the marks 1 to 5 mean, in this order."""

_CONSONANTS = "bcdfghjklmnpqrstvwxz"
"""A code of these is no word, no number and no month to a spreadsheet."""


class KeyEntry(FrozenModel):
    """What a code stands for."""

    code: str
    run: str
    key: str
    """The question's key."""
    group: str
    scores: dict[str, float]
    """Automatic measure -> score of this answer."""
    shown: str
    """Digest of the words that the raters saw."""


class AuditKey(FrozenModel):
    """What `key.json` holds."""

    sample: str
    """Names the sample; every code of it begins so."""
    seed: int | None
    """Chose the sample; None where the reader of a page did."""
    runs: dict[str, str] = Field(default_factory=dict)
    """Run -> the folder that its answers were read from."""
    items: tuple[KeyEntry, ...] = Field(min_length=1)


@dataclass(frozen=True)
class AuditFolder(WorkFolder):
    """The files of one audit under `path`."""

    kind = "audit"
    record = KEY

    @contextmanager
    def drafted(self) -> Iterator["AuditFolder"]:
        """Yield a folder to fill, which takes this one's place at the end of the block; no sheets come without a key.

        Raises `RunFolderError` where that is not possible or the folder holds files.
        """
        try:
            if self.path.exists() and any(self.path.iterdir()):
                raise RunFolderError(
                    f"{self.path} is not empty, and may hold sheets that were filled in: choose a new folder with --out"
                )
            make_private_folder(self.path.parent)
            with whole_folder(self.path) as draft:
                draft.chmod(0o700)
                yield AuditFolder(draft)
        except OSError as error:
            raise RunFolderError(f"cannot make {self.path} ({error}): choose another folder with --out") from None

    def read_key(self) -> AuditKey:
        """Read what the codes stand for; raises `RunFolderError` where that cannot be read."""
        data = self.read_json(KEY)
        try:
            return AuditKey.model_validate(data)
        except ValidationError as error:
            detail = error.errors()[0]
            where = ".".join(str(part) for part in detail["loc"])
            raise RunFolderError(
                f"{self.path / KEY} is not an audit's key ({where}: {detail['msg']}): restore the file, or export again"
            ) from None

    def sheets(self) -> list[Path]:
        """List the CSV files that lie in the folder, by name; raises `RunFolderError` if there is none."""
        paths = sorted(path for path in self.path.glob("*.csv") if not path.name.startswith("."))
        if not paths:
            raise RunFolderError(f"{self.path} holds no sheet (*.csv): put the filled-in sheets there, or name --sheet")
        return paths


def write_sheets(
    folder: AuditFolder, items: Sequence[AuditItem], raters: int, seed: int, runs: Mapping[str, Path] | None = None
) -> list[Path]:
    """Write a sheet for each of `raters`, in an order of its own, the instructions and the key; return sheets' paths.

    `runs` says which folder each run's answers were read from. The folder must be new or empty. The same items, places
    and seed give the same files. Raises `RunFolderError` where nothing can be written.
    """
    with folder.drafted() as draft:
        names = _fill(draft, items, raters, seed, runs or {})
    return [folder.path / name for name in names]


def _fill(
    folder: AuditFolder, items: Sequence[AuditItem], raters: int, seed: int, runs: Mapping[str, Path]
) -> list[str]:
    """Write everything; return the names of the sheets."""
    sample = _name_sample(items, seed)
    shuffled_items = sorted(items, key=lambda item: draw_lot(seed, f"code/{item.run}/{item.key}"))
    width = max(3, len(str(len(shuffled_items))))
    items_by_code = {f"{sample}-{number:0{width}}": item for number, item in enumerate(shuffled_items, start=1)}
    names = [f"rater_{rater}.csv" for rater in range(1, raters + 1)]
    for rater, name in enumerate(names, start=1):
        order = sorted(items_by_code, key=lambda code, rater=rater: draw_lot(seed, f"rater_{rater}/{code}"))  # type: ignore[misc]
        rows = [_row(code, items_by_code[code]) for code in order]
        folder.write_bytes(name, render_sheet(COLUMNS, rows))
    folder.write_text(INSTRUCTIONS, _instructions())
    key = AuditKey(
        sample=sample,
        seed=seed,
        runs={run: str(path.resolve()) for run, path in runs.items()},
        items=tuple(
            KeyEntry(
                code=code,
                run=item.run,
                key=item.key,
                group=item.group,
                scores=dict(item.scores),
                shown=shown_digest(item),
            )
            for code, item in items_by_code.items()
        ),
    )
    folder.write_json(KEY, key.model_dump(mode="json"))
    return names


def shown_digest(item: AuditItem) -> str:
    """Hash the words that a rater sees of an answer into twelve hexadecimal digits."""
    return hashlib.sha256(json.dumps([item.question, item.reference, item.reply]).encode()).hexdigest()[:12]


def _row(code: str, item: AuditItem) -> tuple[str, ...]:
    return (code, item.question, item.reference, item.reply, *[""] * (len(ASPECTS) + 1))


def _name_sample(items: Sequence[AuditItem], seed: int) -> str:
    """Name the sample by five consonants that depend on every text of it."""
    texts = sorted((item.run, item.key, item.question, item.reference, item.reply) for item in items)
    number = int.from_bytes(hashlib.sha256(json.dumps([seed, texts]).encode()).digest())
    letters = []
    for _ in range(5):
        number, place = divmod(number, len(_CONSONANTS))
        letters.append(_CONSONANTS[place])
    return "".join(letters)


def _instructions() -> str:
    lines = [
        "How to mark",
        "",
        "Each row holds a question, the reference answer, and an answer to judge.",
        "Write a whole number from 1 to 5 under correctness and under completeness; leave empty what you cannot judge.",
        "Judge each answer by itself, without looking at another rater's sheet. A comment is welcome.",
        "An apostrophe before = + - @ at the beginning of a text is not part of it.",
        "Leave the codes as they are, and save the file as CSV in UTF-8. Its name becomes yours in the results.",
    ]
    for aspect, words in SCALES.items():
        lines += ["", f"{aspect.capitalize()}:"]
        lines += [f"  {mark}  {meaning}" for mark, meaning in enumerate(words, start=1)]
    return "\n".join(lines) + "\n"
