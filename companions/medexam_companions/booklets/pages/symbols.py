"""What the places of the well-known symbol fonts stand for: Symbol, Wingdings, Wingdings 2 and 3.

PDFs give such a place as a private character, U+F000 and the place. Sources: Adobe's Symbol encoding, and the Unicode
Consortium's names for the Wingdings sets (L2/11-196), arrows, bullets and check marks only.
"""

_SYMBOL = dict(
    zip(
        bytes(range(0x20, 0x7F)),
        " !∀#∃%&∋()*+,\u2212./0123456789:;<=>?"
        "≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_"
        "\u203eαβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}\u223c",  # noqa: RUF001
        strict=True,
    )
) | dict(
    zip(
        bytes([0xA0, *range(0xA1, 0xF0), *range(0xF1, 0xFF)]),
        "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√·¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭",  # noqa: RUF001
        strict=True,
    )
)
_WINGDINGS = {
    0x6C: "●", 0x6E: "■", 0x6F: "□", 0x71: "❑", 0x75: "◆", 0x76: "❖", 0x77: "◆", 0x9F: "•", 0xA7: "▪", 0xA8: "□",
    0xD8: "➢", 0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE3: "↖", 0xE4: "↗", 0xE5: "↙", 0xE6: "↘", 0xE7: "←",
    0xE8: "→", 0xE9: "↑", 0xEA: "↓", 0xEF: "⇐", 0xF0: "⇒", 0xF1: "⇑", 0xF2: "⇓", 0xF3: "⇔", 0xF4: "⇕", 0xFB: "✗",
    0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x97: "●", 0xA3: "□"}
_WINGDINGS_3 = {
    0x21: "←", 0x22: "→", 0x23: "↑", 0x24: "↓", 0x25: "↖", 0x26: "↗", 0x27: "↙", 0x28: "↘", 0x70: "▲", 0x71: "▼",
    0x72: "△", 0x73: "▽", 0x74: "◀", 0x75: "▶",
}  # fmt: skip
_FONTS: dict[str, dict[int, str]] = {
    "wingdings3": _WINGDINGS_3,
    "wingdings2": _WINGDINGS_2,
    "wingdings": _WINGDINGS,
    "webdings": {},
    "symbol": _SYMBOL,
}
_UNNAMED = _SYMBOL | {0x22: "→", 0xE0: "→"}
"""Of fonts that are none of these by name: Symbol's places, and the arrows of Wingdings that booklets use."""


def find_symbol(code: int, font: str) -> str:
    """Find the character at the private `code` of the font called `font`; empty if it is not known."""
    if not 0xF020 <= code <= 0xF0FF:
        return ""
    plain = font.lower().replace(" ", "").replace("-", "")
    table = next((table for name, table in _FONTS.items() if name in plain), _UNNAMED)
    return table.get(code - 0xF000, "")
