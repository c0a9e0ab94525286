"""Pictures of questions from Parquet bytes and from files, and what a run's identity says of them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawn_pictures import draw, write_own
from medexam.datasets import load_exam_set, scale_picture, show_pictures
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec

LONGEST_SIDE = 1024
HUB = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def shown(spec: DatasetSpec, asked=None, longest_side: int = LONGEST_SIDE):
    exams, known = show_pictures(load_exam_set(spec), spec, longest_side, asked)
    return {question.key: question.picture for question in exams.questions}, known


def own(path: Path, **more) -> DatasetSpec:
    return DatasetSpec(kind="choice", path=path, **more)


def test_files_beside_the_data_and_in_its_folder_of_images(tmp_path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(draw())
    (tmp_path / "b.jpg").write_bytes(draw(kind="JPEG"))
    pictures, known = shown(own(write_own(tmp_path, "a.png", "./b.jpg", None)))
    assert pictures == {
        "q1": scale_picture(draw(), 1024, ""),
        "q2": scale_picture(draw(kind="JPEG"), 1024, ""),
        "q3": None,
    }
    assert known["longest_side"] == 1024


def test_v1_pictures_are_found_without_the_first_folders_of_their_names(tmp_path, write_exam) -> None:
    name = "./data/MIR/Cuaderno_2013_1_M.images/MIR-2013-img1.png"
    spec = DatasetSpec(name="headqa_v1", path=write_exam({"image": name}, category="medicine"))
    for place in ("images/MIR-2013-img1.png", "data/MIR/Cuaderno_2013_1_M.images/MIR-2013-img1.png"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw())
        assert shown(spec)[0] == {"headqa-v1/2013/medicine/1": scale_picture(draw(), 1024, "")}
        path.unlink()
    with pytest.raises(DatasetError, match=r"missing 1 picture: \./data/MIR.* put them beside the data"):
        shown(spec)


def test_bytes_of_the_hubs_parquet(records, write_parquet) -> None:
    images = [{"bytes": draw(), "path": "1.png"}, {"bytes": draw(kind="JPEG"), "path": None}, None]
    rows = [record | {"image": image} for record, image in zip(records, images, strict=False)]
    pictures, _ = shown(DatasetSpec(name="headqa_v2", path=write_parquet(rows, image=HUB)))
    assert list(pictures.values()) == [
        scale_picture(draw(), 1024, ""),
        scale_picture(draw(kind="JPEG"), 1024, ""),
        None,
    ]


def test_bytes_of_ones_own_parquet(tmp_path) -> None:
    rows = [{"stem": f"Question {n}", "options": ["a", "b"], "answer": "a"} for n in (1, 2)]
    images = pa.array([{"bytes": draw(), "path": "x.png"}, None], HUB)
    pq.write_table(pa.Table.from_pylist(rows).append_column("image", images), tmp_path / "own.parquet")
    pictures, _ = shown(own(tmp_path / "own.parquet"))
    assert list(pictures.values()) == [scale_picture(draw(), 1024, ""), None]


@pytest.mark.parametrize(
    "name", ["../secret.png", "/etc/passwd", "a/../../secret.png", "..\\secret.png", "link.png", "."]
)
def test_a_name_never_leads_out_of_the_folder(tmp_path, name) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "secret.png").write_bytes(draw())
    (data / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(DatasetError, match=r"lies outside of .*, the folder of the data, and is not read"):
        shown(own(write_own(data, name)))


@pytest.mark.parametrize("name", ["https://example.org/a.png", "a" * 5000, "exam/1.png"])
def test_an_address_a_nonsense_name_and_part_of_a_name_are_missing_files(tmp_path, name) -> None:
    (tmp_path / "1.png").write_bytes(draw())
    with pytest.raises(DatasetError, match="missing 1 picture"):
        shown(own(write_own(tmp_path, name)))


def test_the_fingerprint_is_of_the_pictures_of_the_whole_source(tmp_path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.png").write_bytes(draw())
    path = write_own(tmp_path, "a.png", "b.png", None)
    _, whole = shown(own(path))
    _, part = shown(own(path, limit=1))
    _, small = shown(own(path), longest_side=64)
    assert whole == part
    assert (small["fingerprint"], small["longest_side"]) == (whole["fingerprint"], 64)
    words = load_exam_set(own(path)).fingerprint
    (tmp_path / "b.png").write_bytes(draw((50, 50)))
    assert shown(own(path))[1]["fingerprint"] != whole["fingerprint"]
    assert load_exam_set(own(path)).fingerprint == words


def test_only_the_pictures_that_are_needed_must_be_here(tmp_path) -> None:
    (tmp_path / "a.png").write_bytes(draw())
    spec = own(write_own(tmp_path, "a.png", "gone.png"))
    pictures, _ = shown(spec, asked=["q1"])
    assert pictures == {"q1": scale_picture(draw(), 1024, ""), "q2": None}
    with pytest.raises(DatasetError, match=r"gone\.png of q2: put them .* program\.images to hidden"):
        shown(spec)


def test_questions_without_any_picture_are_told(tmp_path) -> None:
    with pytest.raises(DatasetError, match=r"no question refers to a picture: set program\.images to hidden"):
        shown(own(write_own(tmp_path, None, None)))
