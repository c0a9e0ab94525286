"""Small symbol fonts, made here: private codes for glyphs of DejaVu Sans, with or without the glyphs' names."""

import io
import zlib
from pathlib import Path

import matplotlib
from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.ttLib.tables._c_m_a_p import CmapSubtable

from typesetting.pdf import Document

SOURCE = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"


def make_font(signs: dict[int, str], *, names: bool) -> bytes:
    """A TrueType font whose private codes print `signs`; `names` says whether its glyphs keep their names."""
    font = TTFont(SOURCE)
    options = subset.Options(glyph_names=names, notdef_outline=True, layout_features=[])
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(signs.values()))
    subsetter.subset(font)
    glyphs = font.getBestCmap()
    table = CmapSubtable.newSubtable(4)
    table.platformID, table.platEncID, table.language = 3, 0, 0
    table.cmap = {0xF000 + code: glyphs[ord(sign)] for code, sign in signs.items()}
    font["cmap"].tables = [table]
    content = io.BytesIO()
    font.save(content)
    return content.getvalue()


def add_font(
    document: Document, name: str, base: str, content: bytes, codes: list[int], told: dict[int, str] | None = None
) -> None:
    """Put a symbol font into `document` as `name`; what it prints is told as private characters, or as `told`."""
    first = 100 + len(document.objects)
    texts = told or {code: chr(0xF000 + code) for code in codes}
    units = {code: text.encode("utf-16-be", "surrogatepass").hex() for code, text in texts.items()}
    rows = "".join(f"<{code:02X}> <{unit}>\n" for code, unit in units.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /U def /CMapType 2 def\n"
        f"1 begincodespacerange <00> <FF> endcodespacerange {len(texts)} beginbfchar\n{rows}endbfchar\n"
        "endcmap CMapName currentdict /CMap defineresource pop end end"
    ).encode()
    packed = zlib.compress(content)
    widths = b" ".join(b"800" for _ in range(256))
    document.objects += [
        b"<< /Length %d /Length1 %d /Filter /FlateDecode >>\nstream\n%s\nendstream"
        % (len(packed), len(content), packed),
        b"<< /Type /FontDescriptor /FontName /%s /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 900 "
        b"/Descent -200 /CapHeight 700 /StemV 80 /FontFile2 %d 0 R >>" % (base.encode(), first),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(cmap), cmap),
    ]
    document.fonts[name] = (
        b"<< /Type /Font /Subtype /TrueType /BaseFont /%s /FirstChar 0 /LastChar 255 /Widths [%s] "
        b"/FontDescriptor %d 0 R /ToUnicode %d 0 R >>" % (base.encode(), widths, first + 1, first + 2)
    )
