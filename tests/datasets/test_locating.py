"""Where files are looked for, in which order, and what is said when they are nowhere."""

import json

import pytest

from medexam.datasets import check_exam_set, find_files, load_exam_set
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec
from table_cases import read_table


def test_path_wins_over_data_over_cache(monkeypatch, tmp_path, document, write_json) -> None:
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path / "data"))
    places = [tmp_path / place / "HEAD_EN.json" for place in ("own", "data/headqa_v1", "cache/headqa_v1")]
    for path in places:
        write_json(document, path)
    assert load_exam_set(DatasetSpec(name="headqa_v1", path=tmp_path / "own")).source == str(places[0])
    for path in places[1:]:
        assert load_exam_set(DatasetSpec(name="headqa_v1")).source == str(path)
        path.unlink()
    assert find_files("headqa_v1", "en") == ()


@pytest.mark.parametrize("names", [("en-train.parquet", "es-train.parquet"), ("data/v2_en.jsonl", "data/v2_es.jsonl")])
def test_a_folder_holds_a_language_by_its_word_in_the_names(tmp_path, names) -> None:
    for name in (*names, "scene.jsonl", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [find_files("headqa_v2", language, tmp_path) for language in ("en", "es")] == [
        (tmp_path / name,) for name in names
    ]


def test_a_missing_file_names_every_way(monkeypatch, tmp_path) -> None:
    with pytest.raises(DatasetError, match=r"set MEDEXAM_DATA to the folder that holds headqa_v2/ru\.parquet"):
        load_exam_set(DatasetSpec(name="headqa_v2", language="ru"))
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path / "data"))
    with pytest.raises(DatasetError) as caught:
        load_exam_set(DatasetSpec(name="headqa_v1", language="es"))
    message = str(caught.value)
    ways = [
        "dataset.path",
        "headqa_v1/HEAD.json",
        "$MEDEXAM_DATA",
        "fetch headqa_v1",
        str(tmp_path / "cache/headqa_v1"),
    ]
    assert all(way in message for way in ways), message
    assert "\n" not in message


@pytest.mark.parametrize(*read_table("refused_places"))
def test_what_is_not_there_is_refused(tmp_path, spec, said) -> None:
    (tmp_path / "HEAD.json").touch()
    if "path" in spec:
        spec = {**spec, "path": tmp_path / spec["path"]}
    with pytest.raises(DatasetError, match=said):
        load_exam_set(DatasetSpec.model_validate(spec))


@pytest.mark.parametrize(("place", "languages"), [("", ["it", "ru"]), ("it.jsonl", ["it"]), ("ru/train.jsonl", ["ru"])])
def test_languages_are_found_by_file_name(tmp_path, write_jsonl, records, place, languages) -> None:
    write_jsonl(records, "it.jsonl")
    write_jsonl(records, "ru/train.jsonl")
    report = check_exam_set("headqa_v2", path=tmp_path / place)
    assert [checked.language for checked in report.languages] == languages


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["headqa_v2", "--path", "questions.jsonl"], "say which with --language"),
        (["headqa_v1"], "fetch headqa_v1"),
        (["headqa"], "no data set is called 'headqa'"),
    ],
)
def test_a_language_that_no_name_tells_is_asked_for(medexam, write_jsonl, records, words, said) -> None:
    write_jsonl(records, "questions.jsonl")
    code, _, err = medexam("data", "check", *words)
    assert (code, said in err) == (2, True)


def test_list_tells_where_files_are(medexam, tmp_path, write_jsonl, records) -> None:
    write_jsonl(records, "cache/headqa_v2/gl.jsonl")
    sets = {described["name"]: described for described in json.loads(medexam("data", "list", "--json")[1])}
    assert {"headqa_sample", "headqa_v1", "headqa_v2", "headqa_sample_open"} <= {*sets}
    assert sets["headqa_v2"]["files"]["gl"] == [str(tmp_path / "cache/headqa_v2/gl.jsonl")]
    assert sets["headqa_v2"]["files"]["en"] == []
    assert len(sets["headqa_sample"]["files"]["es"]) == 1
    assert "gl in " in medexam("data", "list")[1]
