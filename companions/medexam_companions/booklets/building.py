"""From a booklet, its key and its pictures to a data set: the steps in order, and the report on them.

Nothing is written before everything is known; what is written appears whole.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from medexam.errors import DatasetError
from medexam.questions import Discipline, Language
from medexam_companions.booklets.completing import correct, cut_out_drawings, link_pictures, read_formulas
from medexam_companions.booklets.corrections import Correction, read_corrections
from medexam_companions.booklets.drafts import Draft, draft_questions
from medexam_companions.booklets.exam_names import Cover, ExamName, check_cover, parse_cover, parse_name
from medexam_companions.booklets.folder import parquet_path, report_path, review_path, write_build, write_questions
from medexam_companions.booklets.key_fit import check_key_fit
from medexam_companions.booklets.keys import read_keys
from medexam_companions.booklets.pages.hyphens import Vocabulary, load_dictionary
from medexam_companions.booklets.pages.layout import BookletLayout, read_booklet_layout
from medexam_companions.booklets.pages.legible import check_legible
from medexam_companions.booklets.pages.numbering import read_numbers
from medexam_companions.booklets.pages.opening import OpenBooklet, PageProgress, open_booklet
from medexam_companions.booklets.report import Applied, BuildFinding, BuildReport, LineEnd
from medexam_companions.booklets.review import render_review
from medexam_companions.booklets.suspicious import find_doubts, find_flaw


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to build from what."""

    booklet: Path
    keys: tuple[Path, ...]
    """More than one must agree."""
    name: str
    """Such as `Cuaderno_2020_0_B`."""
    language: Language = "es"
    images: Path | None = None
    """The folder of the exam's pictures; None if it has none."""
    without_images: bool = False
    """Whether questions that are linked to pictures may be built without them."""
    corrections: Path | None = None
    formula_reader: str | None = None
    """A command that turns the picture of a structure into SMILES."""
    year: int | None = None
    """None: the name tells it."""
    discipline: Discipline | None = None
    """None: the name tells it."""


@dataclass(frozen=True, slots=True)
class Built:
    """A build that was written."""

    report: BuildReport
    parquet: Path
    review: Path
    report_path: Path


def build_exam(request: BuildRequest, out: Path, progress: PageProgress | None = None) -> Built:
    """Build one exam into the folder `out`, beside those that it holds already.

    Raises `DatasetError` if the booklet cannot be read, the key does not fit it, pictures are missing, or the folder
    cannot be written; then nothing is. `progress` hears how many pages are read, of how many.
    """
    exam = parse_name(request.name, request.year, request.discipline)
    corrections = read_corrections(request.corrections, exam.prefix, exam.name) if request.corrections else {}
    with open_booklet(request.booklet) as booklet:
        reading = _read_booklet(request, exam, booklet, progress)
        drafts = _complete(request, exam, reading, booklet, corrections)
        flaws = _find_flaws(drafts, corrections, exam)
        flawed = {finding.number for finding in flaws}
        usable_drafts = [draft for draft in drafts if draft.gold is not None and draft.number not in flawed]
        if not usable_drafts:
            reason = flaws[0].detail if flaws else "none has an official answer"
            raise DatasetError(f"{request.booklet}: no question could be built: {reason}")
        doubts = _find_doubts(drafts, reading.usual_options, corrections, exam, booklet)
        report = _make_report(request, exam, reading, drafts, usable_drafts, flaws, doubts, corrections)
        review = render_review(report, drafts, booklet)
    source = f"{report.booklet} (SHA-256 {report.booklet_sha256[:12]})"
    write_build(out, report, review, lambda path: write_questions(path, usable_drafts, exam, source))
    return Built(report, parquet_path(out, report), review_path(out, report), report_path(out, report))


@dataclass(frozen=True, slots=True)
class _BookletReading:
    """What the booklet itself says."""

    drafts: list[Draft]
    layout: BookletLayout
    cover: Cover
    version: str | None
    usual_options: int
    pages: int
    dated: str | None


def _read_booklet(
    request: BuildRequest, exam: ExamName, booklet: OpenBooklet, progress: PageProgress | None
) -> _BookletReading:
    pages = booklet.read_pages(progress)
    layout = read_booklet_layout(pages)
    language_words = load_dictionary(request.language)
    check_legible(request.booklet, layout.lines, language_words)
    numbered = read_numbers(layout)
    if not numbered.questions:
        raise DatasetError(
            f"{request.booklet}: no question was found: a booklet has numbered questions, each with options numbered "
            f"from 1; is this the booklet, and not the pictures or the key?"
        )
    cover = parse_cover("\n".join(line.text for line in numbered.before))
    stated = frozenset(field for field in ("year", "discipline") if getattr(request, field) is not None)
    check_cover(exam, cover, stated)
    words = Vocabulary((line.text for line in layout.lines), language_words)
    drafts = draft_questions(numbered, layout, words)
    version = exam.version or cover.version
    return _BookletReading(drafts, layout, cover, version, numbered.usual_options, len(pages), booklet.dated)


def _complete(
    request: BuildRequest,
    exam: ExamName,
    reading: _BookletReading,
    booklet: OpenBooklet,
    corrections: Mapping[int, Correction],
) -> list[Draft]:
    drafts = reading.drafts
    key = read_keys(request.keys, reading.version)
    draft_by_number = {draft.number: draft for draft in drafts}
    check_key_fit(key, draft_by_number, reading.cover.questions, reading.version, frozenset(corrections))
    for draft in drafts:
        draft.gold = key.answers[draft.number]
    if request.formula_reader is not None:
        read_formulas(drafts, booklet, request.formula_reader)
    link_pictures(drafts, request.images, without=request.without_images)
    cut_out_drawings(drafts, booklet, exam.name)
    return correct(drafts, corrections, request.corrections)


def _find_flaws(
    drafts: Sequence[Draft], corrections: Mapping[int, Correction], exam: ExamName
) -> tuple[BuildFinding, ...]:
    """List why questions with an official answer stay out of the data set."""
    findings = []
    for draft in drafts:
        correction = corrections.get(draft.number)
        if correction is not None and correction.leave_out:
            findings.append(_finding(draft, exam, "left_out_by_hand", correction.reason))
        elif draft.gold is not None and (flaw := find_flaw(draft)):
            findings.append(_finding(draft, exam, "not_whole", flaw))
    return tuple(findings)


def _find_doubts(
    drafts: Sequence[Draft],
    usual_options: int,
    corrections: Mapping[int, Correction],
    exam: ExamName,
    booklet: OpenBooklet,
) -> tuple[BuildFinding, ...]:
    """List what a human should look at. A question that one has corrected counts as looked at."""
    return tuple(
        _finding(draft, exam, kind, detail)
        for draft in drafts
        if draft.number not in corrections
        for kind, detail in find_doubts(draft, usual_options, "".join(map(booklet.read_again, draft.boxes)))
    )


def _finding(draft: Draft, exam: ExamName, kind: str, detail: str) -> BuildFinding:
    return BuildFinding(
        kind=kind, key=f"{exam.prefix}/{draft.number}", number=draft.number, page=draft.page, detail=detail
    )


def _make_report(
    request: BuildRequest,
    exam: ExamName,
    reading: _BookletReading,
    drafts: Sequence[Draft],
    usable_drafts: Sequence[Draft],
    flaws: tuple[BuildFinding, ...],
    doubts: tuple[BuildFinding, ...],
    corrections: Mapping[int, Correction],
) -> BuildReport:
    last = max([reading.cover.questions or 0, *(draft.number for draft in drafts)])
    return BuildReport(
        name=exam.name,
        year=exam.year,
        discipline=exam.discipline,
        language=request.language,
        version=reading.version,
        booklet=request.booklet.name,
        booklet_sha256=hashlib.sha256(request.booklet.read_bytes()).hexdigest(),
        dated=reading.dated,
        keys=tuple(path.name for path in request.keys),
        pages=reading.pages,
        columns=reading.layout.columns,
        announced=reading.cover.questions,
        printed=len(drafts),
        missing=tuple(sorted(set(range(1, last + 1)) - {draft.number for draft in drafts})),
        annulled=tuple(draft.number for draft in drafts if draft.gold is None),
        built=len(usable_drafts),
        with_images=sum(draft.picture is not None for draft in usable_drafts),
        by_option_count=dict(sorted(Counter(len(draft.options) for draft in usable_drafts).items())),
        left_out=flaws,
        suspicious=doubts,
        corrections=tuple(
            Applied(key=f"{exam.prefix}/{number}", number=number, changes=correction.changes, reason=correction.reason)
            for number, correction in sorted(corrections.items())
        ),
        hyphens=tuple(
            LineEnd(number=draft.number, text=hyphen.text, kept=hyphen.in_spelling, reason=hyphen.reason)
            for draft in drafts
            for hyphen in draft.hyphens
        ),
        headers=reading.layout.left_out,
    )
