"""Where files are looked for, in which order, and what is said when they are nowhere."""

from pathlib import Path

import pytest

from medexam.datasets import find_files, load_exam_set
from medexam.datasets.locating import find_languages, locate_files
from medexam.errors import DatasetError
from medexam.files import cache_dir
from medexam.specs import DatasetSpec


@pytest.fixture
def places(monkeypatch, tmp_path) -> dict[str, Path]:
    """One folder for each way, all empty."""
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path / "data"))
    found = {"path": tmp_path / "own", "data": tmp_path / "data/headqa_v1", "cache": tmp_path / "cache/headqa_v1"}
    for folder in found.values():
        folder.mkdir(parents=True)
    return found


def test_path_wins_over_data_over_cache(places) -> None:
    for folder in places.values():
        (folder / "HEAD_EN.json").touch()
    assert locate_files("headqa_v1", "en", places["path"]) == (places["path"] / "HEAD_EN.json",)
    assert locate_files("headqa_v1", "en") == (places["data"] / "HEAD_EN.json",)
    (places["data"] / "HEAD_EN.json").unlink()
    assert locate_files("headqa_v1", "en") == (places["cache"] / "HEAD_EN.json",)
    (places["cache"] / "HEAD_EN.json").unlink()
    assert find_files("headqa_v1", "en") == ()


def test_a_missing_file_names_every_way(places, tmp_path) -> None:
    with pytest.raises(DatasetError) as caught:
        load_exam_set(DatasetSpec(name="headqa_v1", language="es"))
    message = str(caught.value)
    ways = [
        "dataset.path",
        "headqa_v1/HEAD.json",
        "$MEDEXAM_DATA",
        str(tmp_path / "data"),
        "fetch headqa_v1",
        str(places["cache"]),
    ]
    assert all(way in message for way in ways), message
    assert "\n" not in message


def test_without_medexam_data_the_variable_is_named() -> None:
    with pytest.raises(DatasetError, match=r"set MEDEXAM_DATA to the folder that holds headqa_v2/ru\.parquet"):
        load_exam_set(DatasetSpec(name="headqa_v2", language="ru"))


@pytest.mark.parametrize(
    ("name", "language", "words"),
    [
        ("headqa_v1", "it", ["published in en, es, not in it", "headqa_v2"]),
        ("headqa_sample", "ru", ["published in en, es, not in ru"]),
    ],
)
def test_a_language_that_is_not_published_is_refused(name, language, words) -> None:
    with pytest.raises(DatasetError) as caught:
        load_exam_set(DatasetSpec(name=name, language=language))
    assert all(word in str(caught.value) for word in words)


def test_a_path_that_does_not_exist_is_refused(tmp_path) -> None:
    with pytest.raises(DatasetError, match=r"nowhere\.json does not exist: correct dataset\.path"):
        load_exam_set(DatasetSpec(name="headqa_v1", path=tmp_path / "nowhere.json"))


def test_a_folder_without_the_language_is_refused(tmp_path) -> None:
    (tmp_path / "HEAD.json").touch()
    with pytest.raises(DatasetError, match=r"no file for language en in .*HEAD_EN\.json"):
        load_exam_set(DatasetSpec(name="headqa_v1", path=tmp_path))


def test_languages_are_found_by_file_name(tmp_path, write_jsonl, records) -> None:
    write_jsonl(records, "it.jsonl")
    write_jsonl(records, "ru/train.jsonl")
    assert find_languages("headqa_v2", tmp_path) == ("it", "ru")
    assert find_languages("headqa_v2", tmp_path / "it.jsonl") == ("it",)
    assert find_languages("headqa_v2", tmp_path / "ru/train.jsonl") == ("ru",)
    assert find_languages("headqa_sample") == ("en", "es")
    (tmp_path / "questions.jsonl").touch()
    with pytest.raises(DatasetError, match="say which with --language"):
        find_languages("headqa_v2", tmp_path / "questions.jsonl")
    with pytest.raises(DatasetError, match="fetch headqa_v1"):
        find_languages("headqa_v1")
    with pytest.raises(DatasetError, match="no data set is called 'headqa'"):
        find_languages("headqa")


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path) -> None:
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("MEDEXAM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg/medexam"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache/medexam"
