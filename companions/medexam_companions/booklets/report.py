"""What a build found, for the report that lies beside the data set."""

from medexam.frozen_model import FrozenModel
from medexam.questions import Discipline, Language
from medexam_companions.booklets.pages.hyphens import LineEnd


class BuildFinding(FrozenModel):
    """One thing about one question."""

    kind: str
    """What sort of thing, such as `long_option`."""
    key: str
    """The question's key."""
    number: int
    page: int | None
    """Of the PDF, from 1; None for a question that was added by hand."""
    detail: str


class Applied(FrozenModel):
    """One correction made by hand."""

    number: int
    changes: tuple[str, ...]
    """Names of the fields that were changed."""
    reason: str


class BuildReport(FrozenModel):
    """How one booklet became questions."""

    name: str
    year: int
    discipline: Discipline
    language: Language
    version: str
    booklet: str
    booklet_sha256: str
    dated: str | None
    """The day that the booklet's file says it was last changed; None if it does not say."""
    key: str
    pages: int
    columns: int
    announced: int | None
    """Questions that the cover promises, those in reserve included; None if it does not say."""
    printed: int
    """Questions that were found in the booklet."""
    missing: tuple[int, ...]
    """Numbers that the booklet should have and that were not found."""
    annulled: tuple[int, ...]
    """Numbers without an official answer: removed."""
    built: int
    """Questions in the data set."""
    with_images: int
    by_option_count: dict[int, int]
    left_out: tuple[BuildFinding, ...]
    """Questions with an answer that could not be built, or that a correction leaves out."""
    suspicious: tuple[BuildFinding, ...]
    """What a human should look at; the questions are in the data set unless `left_out` has them too."""
    corrections: tuple[Applied, ...]
    hyphens: tuple[LineEnd, ...]
    headers: tuple[str, ...]
    """Headers and footers that were left out, `#` for their digits."""
