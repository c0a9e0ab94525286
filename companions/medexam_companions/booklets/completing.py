"""What drafts get from elsewhere: pictures, and corrections made by hand."""

import io
from collections.abc import Mapping
from pathlib import Path

from medexam.errors import DatasetError
from medexam_companions.booklets.corrections import Correction
from medexam_companions.booklets.drafts import Draft
from medexam_companions.booklets.images import find_pictures, parse_links, read_booklet_picture
from medexam_companions.booklets.keys import list_numbers
from medexam_companions.booklets.pages.frames import Box
from medexam_companions.booklets.pages.opening import OpenBooklet

SHARPNESS = 3.0
"""Pixels to the point of a picture that is cut out of the booklet."""


def link_pictures(drafts: list[Draft], folder: Path | None, *, without: bool) -> None:
    """Give each linked question its picture from `folder`.

    Raises `DatasetError` if a picture is missing, or there is no folder; `without` builds such questions bare.
    """
    links = {draft.number: pictures[0] for draft in drafts if (pictures := parse_links(draft.stem))}
    if not links or (without and folder is None):
        return
    if folder is None:
        raise DatasetError(
            f"{list_numbers(list(links))} of the booklet are linked to pictures: give --images the folder that holds "
            f"them, or --without-images to build without"
        )
    paths = find_pictures(folder)
    lacking = {number: picture for number, picture in links.items() if picture not in paths}
    if lacking and not without:
        names = ", ".join(path.name for path in list(paths.values())[:3]) or "no picture"
        raise DatasetError(
            f"{folder}: lacks picture {', '.join(map(str, lacking.values()))} ({list_numbers(list(lacking))}); it "
            f"holds {names}: put the files there with the number last in their names, or give --without-images to "
            f"build without pictures"
        )
    for draft in drafts:
        if draft.number in links and draft.number not in lacking:
            draft.picture = read_booklet_picture(paths[links[draft.number]])


def cut_out_drawings(drafts: list[Draft], booklet: OpenBooklet, exam: str) -> None:
    """Give each question with drawings inside and no picture of its own those drawings, cut out of the booklet."""
    for draft in drafts:
        if draft.picture is None and draft.drawings:
            boxes = [box for box in draft.drawings if box.page == draft.drawings[0].page]
            content = io.BytesIO()
            booklet.crop(Box.around(boxes), SHARPNESS).save(content, "PNG")
            draft.picture = {"path": f"{exam}-{draft.number}.png", "bytes": content.getvalue()}


def correct(drafts: list[Draft], corrections: Mapping[int, Correction], source: Path | None) -> list[Draft]:
    """Put `corrections` into the drafts, and add those that the parser did not find.

    Raises `DatasetError` if a correction is for no question and gives none, or names no picture.
    """
    draft_by_number = {draft.number: draft for draft in drafts}
    for number, correction in corrections.items():
        if number not in draft_by_number:
            if correction.stem is None or not correction.options:
                raise DatasetError(
                    f"{source}: question {number} was not read from the booklet: give its stem and options to add "
                    "it, or remove the entry"
                )
            draft_by_number[number] = Draft(number, "", {}, ())
        _apply(draft_by_number[number], correction, source)
    return [draft_by_number[number] for number in sorted(draft_by_number)]


def _apply(draft: Draft, correction: Correction, source: Path | None) -> None:
    if correction.stem is not None:
        draft.stem = correction.stem
    options: dict[int, str | None] = {**draft.options, **(correction.options or {})}
    draft.options = {number: text for number, text in sorted(options.items()) if text is not None}
    if correction.answer is not None:
        draft.gold = correction.answer
    if correction.image is not None:
        path = correction.image if source is None else source.parent / correction.image
        try:
            draft.picture = {"path": path.name, "bytes": path.read_bytes()}
        except OSError as error:
            raise DatasetError(f"{source}: {draft.number}: image {path} cannot be read ({error.strerror})") from None
