"""The folder of an audit: a sheet for each rater, how to mark, and the key that only the organisers look into.

A sheet names neither runs nor questions: a row carries a code, and `key.json` says what the code stands for.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from medexam.datasets import draw_lot
from medexam.errors import RunFolderError
from medexam.experiments import WorkFolder
from medexam.files import whole_folder
from medexam.frozen_model import FrozenModel
from medexam.specs import describe_faults
from medexam_companions.audit.items import AuditItem
from medexam_companions.audit.review_sheets import COMMENT, render_sheet

KEY = "key.json"
INSTRUCTIONS = "instructions.txt"
CODE = "code"
CORRECTNESS = "correctness"
COMPLETENESS = "completeness"
ASPECTS = (CORRECTNESS, COMPLETENESS)
COLUMNS = (CODE, "question", "reference", "answer", *ASPECTS, COMMENT)
_CONSONANTS = "bcdfghjklmnpqrstvwxz"
"""A code of these is no word, no number and no month to a spreadsheet."""


class KeyEntry(FrozenModel):
    """What a code stands for."""

    code: str
    run: str
    key: str
    """The question's key."""
    digest: str
    """Digest of the answer that the raters saw; empty if it had no reply."""


class AuditKey(FrozenModel):
    """What `key.json` holds."""

    sample: str
    """Names the sample; every code of it begins so."""
    seed: int | None = None
    """Chose the sample; None where the reader of a page did."""
    runs: dict[str, str]
    """Run -> the folder that its answers were read from."""
    items: tuple[KeyEntry, ...] = Field(min_length=1)


@dataclass(frozen=True)
class AuditFolder(WorkFolder):
    """The files of one audit under `path`."""

    kind = "audit"
    record = KEY

    def read_key(self) -> AuditKey:
        """Read what the codes stand for; raises `RunFolderError` where that cannot be read."""
        data = self.read_json(KEY)
        try:
            return AuditKey.model_validate(data)
        except ValidationError as error:
            raise RunFolderError(
                f"{self.path / KEY} is not an audit's key ({describe_faults(error)}): restore the file, or export again"
            ) from None


def write_sheets(path: Path, items: Sequence[AuditItem], raters: int, seed: int, runs: Mapping[str, Path]) -> list[str]:
    """Write a sheet for each of `raters`, in an order of its own, the instructions and the key; return sheets' names.

    `runs` says which folder each run's answers were read from. The folder must be new or empty. The same items, places
    and seed give the same files. Raises `RunFolderError` if it is not, and `OSError`.
    """
    texts = sorted((item.run, item.key, item.question, item.reference, item.reply) for item in items)
    number = int.from_bytes(hashlib.sha256(json.dumps([seed, texts]).encode()).digest())
    sample = "".join(_CONSONANTS[number // len(_CONSONANTS) ** place % len(_CONSONANTS)] for place in range(5))
    shuffled = sorted(items, key=lambda item: draw_lot(seed, f"code/{item.run}/{item.key}"))
    width = max(3, len(str(len(shuffled))))
    by_code = {f"{sample}-{place:0{width}}": item for place, item in enumerate(shuffled, start=1)}
    entries = tuple(KeyEntry(code=code, run=i.run, key=i.key, digest=i.digest) for code, i in by_code.items())
    key = AuditKey(sample=sample, seed=seed, runs={run: str(runs[run].resolve()) for run in runs}, items=entries)
    sheets = [f"rater_{rater}" for rater in range(1, raters + 1)]
    if path.exists() and any(path.iterdir()):
        raise RunFolderError(
            f"{path} is not empty, and may hold sheets that were filled in: choose a new folder with --out"
        )
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    # No sheets come without a key.
    with whole_folder(path) as draft:
        draft.chmod(0o700)
        folder = AuditFolder(draft)
        for sheet in sheets:
            order = sorted(by_code, key=lambda code, sheet=sheet: draw_lot(seed, f"{sheet}/{code}"))  # type: ignore[misc]
            ordered = ((code, by_code[code]) for code in order)
            rows = [(code, i.question, i.reference, i.reply, "", "", "") for code, i in ordered]
            folder.write(f"{sheet}.csv", render_sheet(COLUMNS, rows))
        folder.write(INSTRUCTIONS, Path(__file__).with_name(INSTRUCTIONS).read_text(encoding="utf-8"))
        folder.write_json(KEY, key.model_dump(mode="json"))
    return [f"{sheet}.csv" for sheet in sheets]
