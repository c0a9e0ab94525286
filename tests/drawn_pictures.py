"""Pictures that are drawn for tests, and questions of one's own that refer to them."""

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw


def draw(
    size: tuple[int, int] = (200, 120), kind: str = "PNG", mode: str = "RGB", colour: Any = "white", **save: Any
) -> bytes:
    """A picture with a circle in it."""
    picture = Image.new(mode, size, colour)
    if mode in ("RGB", "L"):
        ImageDraw.Draw(picture).ellipse((10, 10, size[0] // 2, size[1] - 10), outline="black", width=5)
    out = io.BytesIO()
    picture.save(out, kind, **save)
    return out.getvalue()


def write_own(folder: Path, *images: str | None) -> Path:
    """A JSONL file with a question for each name of a picture; None: a question without one."""
    rows = [
        {
            "id": f"q{number}",
            "stem": f"What is drawn in {number}?",
            "options": ["A circle", "A square", "Nothing"],
            "answer": "A circle",
            **({} if image is None else {"image": image}),
        }
        for number, image in enumerate(images, start=1)
    ]
    path = folder / "drawn.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path
