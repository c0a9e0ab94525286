"""A plot as SVG for the HTML page: in the colours of the page, with its fonts, and without any inline style.

The page's policy refuses inline styles, so each becomes attributes. Black is the colour of the page's text, white its
ground; greys are its lines and its quiet words. Colours of runs stay.
"""

import io
import re
from xml.etree import ElementTree as ET

from medexam.errors import MedExamError
from medexam.experiments.report.plots.pictures import STYLE
from medexam.experiments.report.plots.style import Plot
from medexam.library_logging import quiet_matplotlib
from medexam.text import visible

_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_COLORS = {
    "#000000": "currentColor",
    "#ffffff": "var(--ground)",
    "#737373": "var(--quiet)",
    "#999999": "var(--quiet)",
    "#b0b0b0": "var(--line)",
    "#cccccc": "var(--line)",
}
"""What matplotlib draws with -> the page's own."""
_FONT = re.compile(r"^(?P<words>.*?)(?P<size>[\d.]+)px ")


def render_svg(plot: Plot) -> str:
    """Render the plot as an `svg` element; raises `MedExamError` without matplotlib."""
    try:
        with quiet_matplotlib():
            import matplotlib.figure
            from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MedExamError("plots need matplotlib: pip install 'medexam[plots]'") from None
    buffer = io.BytesIO()
    with matplotlib.rc_context({**STYLE, "svg.fonttype": "none", "svg.hashsalt": plot.name}), quiet_matplotlib():
        figure = matplotlib.figure.Figure(figsize=plot.size)
        plot.draw(figure)
        # A figure that has a layout engine is drawn three times.
        ConstrainedLayoutEngine().execute(figure)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    # A name may hold characters that XML does not take.
    return _for_page(ET.fromstring(visible(buffer.getvalue().decode())), plot)  # noqa: S314 - written just now


def _for_page(root: ET.Element, plot: Plot) -> str:
    for element in root.iter():
        for name, value in _declarations(element.attrib.pop("style", "")):
            element.set(name, _COLORS.get(value.lower(), value))
        if "id" in element.attrib:
            element.set("id", f"{plot.name}-{element.get('id')}")
        if _LINK in element.attrib:
            target = element.attrib.pop(_LINK)
            element.set("href", f"#{plot.name}-{target[1:]}" if target.startswith("#") else target)
        if "clip-path" in element.attrib:
            element.set("clip-path", element.attrib["clip-path"].replace("url(#", f"url(#{plot.name}-"))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{_SVG}}}style", f"{{{_SVG}}}metadata"}:
                parent.remove(child)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"fill": "currentColor", "role": "img", "aria-label": plot.caption}
    ET.register_namespace("", _SVG)
    return ET.tostring(root, encoding="unicode")


def _declarations(style: str) -> list[tuple[str, str]]:
    """Parse a style as attributes; of a font, size and weight are kept, for the page has its own family."""
    attributes = []
    for declaration in filter(None, map(str.strip, style.split(";"))):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font":
            font = _FONT.match(value)
            if font is not None:
                attributes.append(("font-size", font["size"]))
                attributes += [
                    ("font-weight", word) for word in font["words"].split() if word in {"bold", "600", "700"}
                ]
        else:
            attributes.append((name, value))
    return attributes
