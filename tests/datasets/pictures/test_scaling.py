"""What is made of a picture before a model is shown it."""

import base64
import io

import pytest
from PIL import Image

from drawn_pictures import draw
from medexam.datasets import scale_picture
from medexam.errors import DatasetError


def opened(data_url: str) -> Image.Image:
    kind, _, data = data_url.partition(";base64,")
    picture = Image.open(io.BytesIO(base64.b64decode(data)))
    assert kind == f"data:image/{picture.format.lower()}"
    return picture


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_small_picture_is_shown_byte_for_byte(kind: str, mode: str) -> None:
    content = draw((200, 120), kind, mode)
    shown = scale_picture(content, 200, "p")
    assert base64.b64decode(shown.partition(",")[2]) == content


@pytest.mark.parametrize(("kind", "written"), [("PNG", "PNG"), ("JPEG", "JPEG"), ("GIF", "PNG"), ("BMP", "PNG")])
def test_a_large_picture_keeps_its_shape(kind: str, written: str) -> None:
    shown = opened(scale_picture(draw((2000, 1000), kind), 1024, "p"))
    assert (shown.format, shown.size, shown.mode) == (written, (1024, 512), "RGB")


def test_what_is_transparent_is_white() -> None:
    shown = opened(scale_picture(draw((30, 30), mode="RGBA", colour=(0, 0, 0, 0)), 1024, "p"))
    assert (shown.mode, shown.getpixel((5, 5))) == ("RGB", (255, 255, 255))


def test_a_photograph_is_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    shown = opened(scale_picture(draw((40, 20), "JPEG", exif=exif), 1024, "p"))
    assert (shown.size, shown.getexif().get(0x0112)) == ((20, 40), None)


def test_sixteen_bits_of_grey_keep_their_order() -> None:
    picture = Image.new("I;16", (3, 1))
    for place, value in enumerate((0, 32_768, 65_535)):
        picture.putpixel((place, 0), value)
    out = io.BytesIO()
    picture.save(out, "PNG")
    shown = opened(scale_picture(out.getvalue(), 1024, "p"))
    assert (shown.mode, [shown.getpixel((place, 0)) for place in range(3)]) == ("L", [0, 128, 255])


@pytest.mark.parametrize("mode", ["1", "P", "CMYK"])
def test_other_modes_become_grey_or_rgb(mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    assert opened(scale_picture(draw((20, 20), kind, mode, 0), 1024, "p")).mode in ("L", "RGB")


@pytest.mark.parametrize("content", [b"", b"no picture", draw((300, 300))[:200]])
def test_what_is_no_whole_picture_is_named(content: bytes) -> None:
    with pytest.raises(DatasetError, match=r"picture a\.png of q1: is not a complete picture"):
        scale_picture(content, 1024, "a.png of q1")


def test_a_small_file_of_too_many_pixels_is_refused() -> None:
    content = draw((20_000, 6_000), mode="1", colour=0)
    assert len(content) < 200_000
    with pytest.raises(DatasetError, match="20000 x 6000 pixels: scale it down"):
        scale_picture(content, 1024, "p")
