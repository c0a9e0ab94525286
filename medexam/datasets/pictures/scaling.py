"""The rule by which a picture becomes what a model is shown; it is part of a run's identity.

A JPEG or PNG file in grey or RGB that is small enough and stands upright is shown byte for byte. Any other picture is
turned upright, put on white where it is transparent, scaled down by Lanczos' filter and written anew: as JPEG of
quality 90 if it was one, else as PNG.
"""

import base64
import io
import warnings

from PIL import Image, ImageOps, UnidentifiedImageError

from medexam.errors import DatasetError

RULE = 1
"""Version of the rule; raise it where other bytes are shown."""
_MOST_PIXELS = 100_000_000
"""A picture with more is taken for a fault, as a small file can unpack to any size."""
_QUALITY = 90
_KEPT = {"JPEG": ("L", "RGB"), "PNG": ("L", "RGB")}
"""Format -> the modes, in Pillow's words, in which every model's server reads the file alike."""
_ORIENTATION = 0x0112
"""The tag of a photograph that says how it was held; 1 is upright."""


def scale_picture(content: bytes, longest_side: int, name: str) -> str:
    """Scale what is shown of a picture, as a data URL; `longest_side` in pixels, `name` for messages.

    Raises `DatasetError` if `content` is not a complete picture.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns of sizes that are refused below, and of damaged tags, which do not matter here.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(content)) as picture:
                if picture.width * picture.height > _MOST_PIXELS:
                    raise DatasetError(f"picture {name}: has {picture.width} x {picture.height} pixels: scale it down")
                picture.load()
                return _show(content, picture, longest_side)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise DatasetError(f"picture {name}: is not a complete picture ({error}): copy it again") from None


def _show(content: bytes, picture: Image.Image, longest_side: int) -> str:
    kind = picture.format or ""
    small = max(picture.size) <= longest_side
    if small and picture.mode in _KEPT.get(kind, ()) and picture.getexif().get(_ORIENTATION, 1) == 1:
        return _data_url(kind, content)
    file_format = "JPEG" if kind == "JPEG" else "PNG"
    drawing = _draw(picture, longest_side)
    out = io.BytesIO()
    drawing.save(out, file_format, **({"quality": _QUALITY} if file_format == "JPEG" else {}))
    return _data_url(file_format, out.getvalue())


def _draw(picture: Image.Image, longest_side: int) -> Image.Image:
    """Draw the picture upright, in grey or RGB, no longer than `longest_side`."""
    upright = ImageOps.exif_transpose(picture)
    if upright.mode.startswith("I"):
        # 16 bits of grey, which a plain conversion would cut off at 255.
        upright = upright.convert("I").point(lambda value: value / 256).convert("L")
    if upright.has_transparency_data:
        layer = upright.convert("RGBA")
        upright = Image.new("RGBA", layer.size, "white")
        upright.alpha_composite(layer)
    if upright.mode not in ("L", "RGB"):
        upright = upright.convert("L" if upright.mode in ("1", "LA") else "RGB")
    upright.info.clear()
    upright.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
    return upright


def _data_url(kind: str, content: bytes) -> str:
    return f"data:image/{kind.lower()};base64,{base64.b64encode(content).decode('ascii')}"
