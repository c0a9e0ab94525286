"""Bringing data sets from the hub, with a local copy of the hub's folder in the hub's place."""

from pathlib import Path

import pyarrow as pa
import pytest

from drawn_pictures import draw
from medexam.datasets import check_exam_set, fetch_exam_set, load_exam_set, show_pictures
from medexam.errors import DatasetError
from medexam.specs import DatasetSpec

PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
README = """---
configs:
- {config_name: en, data_files: [{split: train, path: en/*.parquet}]}
- {config_name: es, data_files: [{split: train, path: es/*.parquet}]}
dataset_info:
- config_name: en
  features:
  - {name: name, dtype: string}
  - {name: year, dtype: int64}
  - {name: category, dtype: string}
  - {name: qid, dtype: int64}
  - {name: qtext, dtype: string}
  - {name: ra, dtype: int64}
  - {name: image, dtype: image}
  - {name: answers, list: [{name: aid, dtype: int64}, {name: atext, dtype: string}]}
---
"""


@pytest.fixture(autouse=True)
def quiet_library(monkeypatch, tmp_path) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    datasets.disable_progress_bars()


@pytest.fixture
def hub(tmp_path, records, spanish_records, write_parquet) -> Path:
    """A hub folder with two configurations, the English one with two pictures."""
    rows = [row | {"image": None} for row in records]
    rows[0]["image"] = {"bytes": draw(), "path": "1.png"}
    rows[1]["image"] = {"bytes": draw(), "path": None}
    write_parquet(rows, "hub/en/train-00000-of-00001.parquet", image=PICTURE)
    write_parquet(spanish_records, "hub/es/train-00000-of-00001.parquet")
    (tmp_path / "hub/README.md").write_text(README, encoding="utf-8")
    return tmp_path / "hub"


def test_v2_is_brought_and_then_read_from_the_cache(hub, tmp_path) -> None:
    fetched = list(fetch_exam_set("headqa_v2", ["en", "es"], hub=str(hub)))
    assert [(f.language, f.questions, f.path) for f in fetched] == [
        ("en", 120, tmp_path / "cache/headqa_v2/en.parquet"),
        ("es", 120, tmp_path / "cache/headqa_v2/es.parquet"),
    ]
    exam_set = load_exam_set(DatasetSpec(name="headqa_v2"))
    assert [question.image for question in exam_set.questions[:3]] == ["1.png", "embedded", None]
    assert exam_set.source == f"{fetched[0].path} ({hub})"
    assert [q.stem for q in exam_set.questions] == [q.stem for q in load_exam_set(DatasetSpec()).questions]
    spanish = load_exam_set(DatasetSpec(name="headqa_v2", language="es"))
    assert dict(spanish.golds) == dict(exam_set.golds)
    assert not list((tmp_path / "cache/headqa_v2").glob(".*"))


def test_pictures_are_kept_where_they_are_asked_for(hub, tmp_path) -> None:
    list(fetch_exam_set("headqa_v2", ["en"], hub=str(hub), folder=tmp_path / "bare"))
    list(fetch_exam_set("headqa_v2", ["en"], hub=str(hub), folder=tmp_path / "whole", images=True))
    specs = [DatasetSpec(name="headqa_v2", path=tmp_path / place / "headqa_v2") for place in ("bare", "whole")]
    bare, whole = map(load_exam_set, specs)
    assert (bare.questions, bare.fingerprint) == (whole.questions, whole.fingerprint)
    shown, _ = show_pictures(whole, specs[1], 1024)
    assert [question.picture is None for question in shown.questions[:3]] == [False, False, True]
    with pytest.raises(DatasetError, match="missing 2 pictures"):
        show_pictures(bare, specs[0], 1024)


def test_v1_is_brought_as_a_table(hub, tmp_path) -> None:
    (fetched,) = fetch_exam_set("headqa_v1", ["es"], hub=str(hub), folder=tmp_path / "own")
    assert fetched.path == tmp_path / "own/headqa_v1/es.parquet"
    report = check_exam_set("headqa_v1", path=fetched.path.parent)
    assert (report.passed, report.languages[0].version) == (True, "1.0")
    brought = load_exam_set(DatasetSpec(name="headqa_v1", language="es", path=fetched.path))
    assert brought.questions == load_exam_set(DatasetSpec(language="es")).questions


@pytest.mark.parametrize(
    ("name", "languages", "words"),
    [
        ("headqa_sample", None, "ships in the package"),
        ("headqa_v1", ["ru"], "published in en, es, not in ru"),
        ("headqa", None, "no data set is called 'headqa'"),
    ],
)
def test_what_cannot_be_fetched_is_refused(name, languages, words) -> None:
    with pytest.raises(DatasetError, match=words):
        list(fetch_exam_set(name, languages))


def test_a_hub_without_the_language_is_refused(hub) -> None:
    with pytest.raises(DatasetError, match="configuration ru"):
        list(fetch_exam_set("headqa_v2", ["ru"], hub=str(hub)))


def test_a_hub_with_other_fields_is_refused(tmp_path) -> None:
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub/README.md").write_text("---\nconfigs: [{config_name: en, data_files: a.jsonl}]\n---\n")
    (tmp_path / "hub/a.jsonl").write_text('{"name": "x", "question": "y"}\n')
    with pytest.raises(DatasetError, match="lacks the fields year, category, qid, qtext, ra, image, answers"):
        list(fetch_exam_set("headqa_v2", ["en"], hub=str(tmp_path / "hub")))


def test_a_hub_that_cannot_be_reached_is_said_in_one_line(monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DatasetError, match=r"^cannot read alesi12/head_qa_v2.*dataset.path or MEDEXAM_DATA.*$"):
        list(fetch_exam_set("headqa_v2", ["en"]))


def test_a_cache_that_cannot_be_written_is_refused(hub, tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatasetError, match="set MEDEXAM_CACHE"):
        list(fetch_exam_set("headqa_v2", ["es"], hub=str(hub), folder=tmp_path / "file"))
