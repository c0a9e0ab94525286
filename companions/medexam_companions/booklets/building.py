"""From a booklet, its key and its pictures to a data set: the steps in order, and the report on them.

Nothing is written before everything is known; what is written appears whole.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medexam.errors import DatasetError
from medexam_companions.booklets.commands import BuildRequest
from medexam_companions.booklets.completing import correct, cut_out_drawings, link_pictures
from medexam_companions.booklets.corrections import Correction, read_corrections
from medexam_companions.booklets.drafts import Draft, draft_questions
from medexam_companions.booklets.exam_names import ExamName, check_cover, parse_name
from medexam_companions.booklets.folder import write_build
from medexam_companions.booklets.key_fit import check_key_fit
from medexam_companions.booklets.keys import read_answer_key
from medexam_companions.booklets.pages.hyphens import Vocabulary, load_dictionary
from medexam_companions.booklets.pages.layout import read_booklet_layout
from medexam_companions.booklets.pages.legible import check_legible
from medexam_companions.booklets.pages.numbering import read_numbers
from medexam_companions.booklets.pages.opening import OpenBooklet, PageProgress, open_booklet
from medexam_companions.booklets.review import render_review
from medexam_companions.booklets.suspicious import find_doubts, find_flaw


def build_exam(request: BuildRequest, progress: PageProgress | None = None) -> dict[str, Any]:
    """Build one exam into the folder of the request, beside those that it holds already; return the report.

    `progress` hears how many pages are read, of how many. Raises `DatasetError` if the booklet cannot be read, the key
    does not fit it, or pictures are missing, and `OSError` if the folder cannot be written; then nothing is.
    """
    exam = parse_name(request.name)
    corrections = read_corrections(request.corrections, exam.prefix, exam.name) if request.corrections else {}
    with open_booklet(request.booklet) as booklet:
        layout = read_booklet_layout(booklet.read_pages(progress))
        language_words = load_dictionary(request.language)
        check_legible(request.booklet, layout.lines, language_words)
        numbered = read_numbers(layout)
        if not numbered.questions:
            raise DatasetError(
                f"{request.booklet}: no question was found: a booklet has numbered questions, each with options "
                f"numbered from 1; is this the booklet, and not the pictures or the key?"
            )
        announced = check_cover(exam, "\n".join(line.text for line in numbered.before))
        words = Vocabulary((line.text for line in layout.lines), language_words)
        drafts = _complete(request, exam, draft_questions(numbered, layout, words), announced, booklet, corrections)
        left_out = list(_find_flaws(drafts, corrections, exam))
        flawed = {finding["number"] for finding in left_out}
        usable_drafts = [draft for draft in drafts if draft.gold is not None and draft.number not in flawed]
        if not usable_drafts:
            reason = left_out[0]["detail"] if left_out else "none has an official answer"
            raise DatasetError(f"{request.booklet}: no question could be built: {reason}")
        last = max([announced or 0, *(draft.number for draft in drafts)])
        report = {
            "name": exam.name,
            "year": exam.year,
            "discipline": exam.discipline,
            "language": request.language,
            "version": exam.version,
            "booklet": request.booklet.name,
            "booklet_sha256": hashlib.sha256(request.booklet.read_bytes()).hexdigest(),
            "dated": booklet.dated,
            "key": request.key.name,
            "pages": len(booklet),
            "columns": layout.columns,
            "announced": announced,
            "printed": len(drafts),
            "missing": sorted(set(range(1, last + 1)) - {draft.number for draft in drafts}),
            "annulled": [draft.number for draft in drafts if draft.gold is None],
            "built": len(usable_drafts),
            "with_images": sum(draft.picture is not None for draft in usable_drafts),
            "by_option_count": dict(sorted(Counter(len(draft.options) for draft in usable_drafts).items())),
            "left_out": left_out,
            "suspicious": [
                _finding(draft, exam, kind, detail)
                for draft in drafts
                if draft.number not in corrections  # which a human has looked at
                for kind, detail in find_doubts(
                    draft, numbered.usual_options, "".join(map(booklet.read_again, draft.boxes))
                )
            ],
            "corrections": [
                {"number": number, "changes": list(correction.changes), "reason": correction.reason}
                for number, correction in sorted(corrections.items())
            ],
            "hyphens": [end for draft in drafts for end in draft.hyphens],
            "headers": layout.left_out,
        }
        review = render_review(report, drafts, booklet)
    write_build(request.out, report, review, usable_drafts)
    return report


def _complete(
    request: BuildRequest,
    exam: ExamName,
    drafts: list[Draft],
    announced: int | None,
    booklet: OpenBooklet,
    corrections: Mapping[int, Correction],
) -> list[Draft]:
    """Give the drafts their answers, pictures and corrections."""
    key = read_answer_key(request.key, exam.version)
    check_key_fit(key, drafts, announced, exam.version, corrections.keys())
    for draft in drafts:
        draft.gold = key.answers[draft.number]
    link_pictures(drafts, request.images, without=request.without_images)
    cut_out_drawings(drafts, booklet, exam.name)
    return correct(drafts, corrections, request.corrections)


def _find_flaws(
    drafts: Sequence[Draft], corrections: Mapping[int, Correction], exam: ExamName
) -> Iterator[dict[str, Any]]:
    """Yield why questions with an official answer stay out of the data set."""
    for draft in drafts:
        correction = corrections.get(draft.number)
        if correction is not None and correction.leave_out:
            yield _finding(draft, exam, "left_out_by_hand", correction.reason)
        elif draft.gold is not None and (flaw := find_flaw(draft)):
            yield _finding(draft, exam, "not_whole", flaw)


def _finding(draft: Draft, exam: ExamName, kind: str, detail: str) -> dict[str, Any]:
    key = f"{exam.prefix}/{draft.number}"
    return {"kind": kind, "key": key, "number": draft.number, "page": draft.page, "detail": detail}
