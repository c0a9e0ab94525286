"""Opens a PDF and gives its pages: their text as glyphs, a second reading as a check, and pictures of their parts.

Places are in points from the lower left corner of the page as it is read.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medexam.errors import DatasetError
from medexam_companions.booklets.pages.accents import join_accents
from medexam_companions.booklets.pages.drawings import find_drawings
from medexam_companions.booklets.pages.frames import Box, Frame
from medexam_companions.booklets.pages.glyphs import PageText, read_glyphs

if TYPE_CHECKING:
    from PIL.Image import Image

PageProgress = Callable[[int, int], None]
"""Called with the pages that are read and the pages that there are."""
MIN_GLYPHS = 200
"""A booklet with less text than this is taken for a scan."""

_MARGIN = 4.0
"""Points."""
_END_OF_FILE = b"%%EOF"
_TAIL = 2048
_NO_PASSWORD = 4


class OpenBooklet:
    """A PDF that is open: its text, its words by another way, and pictures of its parts."""

    def __init__(self, path: Path, document: Any) -> None:
        self.path = path
        self._document = document
        self._pictures: dict[tuple[int, float], Image] = {}
        self._texts: dict[int, Any] = {}
        self._frames: dict[int, Frame] = {}

    def __len__(self) -> int:
        return len(self._document)

    @property
    def dated(self) -> str | None:
        """The day that the document says it was last changed, as 2021-03-24; None if it does not say."""
        for field in ("ModDate", "CreationDate"):
            value = self._document.get_metadata_value(field)
            if match := re.match(r"D?:?(\d{4})(\d{2})(\d{2})", value):
                return "-".join(match.groups())
        return None

    def read_pages(self, progress: PageProgress | None = None) -> tuple[PageText, ...]:
        """Read every page; `progress` hears how many are read, of how many.

        Raises `DatasetError` if a page is damaged or when the whole has hardly any text, as a scan has.
        """
        import pypdfium2

        pages = []
        for number in range(1, len(self._document) + 1):
            try:
                pages.append(self._read_page(number))
            except pypdfium2.PdfiumError as error:
                raise DatasetError(
                    f"{self.path}: page {number} cannot be read ({error}): the file may be truncated; copy it again"
                ) from None
            if progress is not None:
                progress(number, len(self._document))
        glyph_count = sum(len(page.glyphs) for page in pages)
        if glyph_count < MIN_GLYPHS:
            raise DatasetError(
                f"{self.path}: holds {glyph_count} characters of text on {len(pages)} pages: it is a scan, or its "
                "pages are pictures; add a text layer by OCR (`ocrmypdf -l spa IN.pdf OUT.pdf`) and build from that, "
                "or take the PDF that the Ministry publishes"
            )
        return tuple(pages)

    def read_again(self, box: Box) -> str:
        """Read the text in a part of a page as the PDF library orders it, to check how it was put together here."""
        if box.page not in self._texts:
            self._texts[box.page] = self._document[box.page - 1].get_textpage()
        text: str = self._texts[box.page].get_text_bounded(
            *self._frames[box.page].to_content.on_rect(box.x0, box.bottom, box.x1, box.top)
        )
        return text

    def crop(self, box: Box, scale: float) -> "Image":
        """Render a part of a page, `_MARGIN` points wider on each side, `scale` pixels to the point."""
        if (box.page, scale) not in self._pictures:
            page = self._document[box.page - 1]
            turn = (self._frames[box.page].turn - page.get_rotation()) % 360
            self._pictures[box.page, scale] = page.render(scale=scale, rotation=turn).to_pil()
        page_picture = self._pictures[box.page, scale]
        corners = (
            max((box.x0 - _MARGIN) * scale, 0),
            max(page_picture.height - (box.top + _MARGIN) * scale, 0),
            min((box.x1 + _MARGIN) * scale, page_picture.width),
            min(page_picture.height - (box.bottom - _MARGIN) * scale, page_picture.height),
        )
        left, top, right, bottom = (int(corner) for corner in corners)
        return page_picture.crop((left, top, max(right, left + 1), max(bottom, top + 1)))

    def _read_page(self, number: int) -> PageText:
        page = self._document[number - 1]
        frame, glyphs = read_glyphs(page, page.get_textpage(), number)
        self._frames[number] = frame
        return PageText(number, frame.width, frame.height, join_accents(glyphs), find_drawings(page, frame, glyphs))


@contextmanager
def open_booklet(path: Path) -> Iterator[OpenBooklet]:
    """Open the PDF at `path`, closed afterwards.

    Raises `DatasetError` if it is missing, no PDF, truncated or encrypted, or when the library is not installed.
    """
    try:
        import pypdfium2
    except ImportError:
        raise DatasetError(
            "reading a booklet needs the `pypdfium2` library: pip install 'medexam[companions]'"
        ) from None
    check_whole(path)
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _NO_PASSWORD or "password" in str(error).lower():
            raise DatasetError(
                f"{path}: is encrypted: decrypt it with its password (`qpdf --decrypt --password=... IN.pdf OUT.pdf`) "
                f"and build from that, or take the open PDF that the Ministry publishes"
            ) from None
        raise DatasetError(f"{path}: cannot be read as a PDF ({error}): copy it again") from None
    try:
        yield OpenBooklet(path, document)
    finally:
        document.close()


def check_whole(path: Path) -> None:
    """Raise `DatasetError` unless the file at `path` begins and ends as a PDF does."""
    try:
        with path.open("rb") as stream:
            head = stream.read(1024)
            stream.seek(0, 2)
            stream.seek(max(stream.tell() - _TAIL, 0))
            tail = stream.read()
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}): give the path of a PDF") from None
    if b"%PDF-" not in head:
        raise DatasetError(f"{path}: is not a PDF: give the booklet as the Ministry publishes it")
    if _END_OF_FILE not in tail:
        raise DatasetError(f"{path}: is truncated (a PDF ends with {_END_OF_FILE.decode()}): copy it again")
