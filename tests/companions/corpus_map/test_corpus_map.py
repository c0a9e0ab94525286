"""Corpus maps from a real index by a small model of MedCPT's layout, drawn by matplotlib and sent to a real store."""

import shutil
import struct
import sys

import numpy as np
import pytest

from medexam.companions.corpus_map.drawing import DPI, WIDTH, draw_map, new_figure, write_map
from medexam.companions.corpus_map.placing import CorpusMap, PlacedGroups, make_map
from medexam.errors import MedExamError
from medexam.experiments import default_tracking_uri
from medexam.experiments.track.runs import attach_map, track
from medexam.questions import Discipline
from medexam.retrievers import Passage, build_corpus, build_encoder, build_index
from medexam.specs import DatasetSpec
from retrievers.tiny_models import WORDS, save_medcpt

SPEC = DatasetSpec(name="headqa_sample", limit=18)
SOURCES = {"clinic": 40, "lab": 20, "a": 3, "b": 3, "c": 2, "d": 2}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Seventy passages of six sources."""
    folder = tmp_path_factory.mktemp("map")
    rng = np.random.default_rng(0)
    sources = [source for source, count in SOURCES.items() for _ in range(count)]
    passages = [Passage(f"p{n}", "", " ".join(rng.choice(WORDS, 12)), source) for n, source in enumerate(sources)]
    encoder = build_encoder(save_medcpt(folder / "encoder"))
    build_index(build_corpus("words", passages, source="tests"), encoder, folder / "index")
    return folder / "index"


@pytest.fixture(scope="module")
def seen() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def drawn(index, seen, compiled_umap) -> CorpusMap:
    return make_map(index, SPEC, sample=60, seed=3, watch=lambda *step: seen.append(step))


def test_every_passage_and_question_has_its_place_and_group(drawn) -> None:
    assert drawn.passages.places.shape == (60, 2)
    assert drawn.questions.places.shape == (18, 2)
    assert drawn.questions.counts == {discipline.value: 3 for discipline in Discipline}
    assert drawn.passages.counts.keys() <= SOURCES.keys()
    assert len(drawn.passages.of("clinic", "lab")) == drawn.passages.counts["clinic"] + drawn.passages.counts["lab"]
    assert [question.key for question in drawn.exam.questions] == list(drawn.exam.golds)
    assert drawn.document()["passages"] == {"in_index": 70, "drawn": 60, "by_source": drawn.passages.counts}


def test_each_step_is_told_from_its_beginning_to_its_end(drawn, seen) -> None:
    steps = list(dict.fromkeys(what for what, *_ in seen))
    assert steps == [
        "load UMAP",
        "encode 18 questions with encoder",
        "fit 60 of 70 passages",
        "place 18 questions",
    ]
    for step in steps:
        told = [(done, total) for what, done, total in seen if what == step]
        assert told[0][0] == 0
        assert told[-1][0] == told[-1][1]


def test_the_picture_names_every_source_and_discipline(drawn) -> None:
    figure = new_figure()
    draw_map(figure, drawn)
    sources, disciplines, *small = figure.axes
    counts = drawn.passages.counts
    labels = [text.get_text() for text in sources.get_legend().get_texts()]
    assert labels == [f"{name} (n = {count:,})" for name, count in counts.items()]
    labels = [text.get_text() for text in disciplines.get_legend().get_texts()]
    assert labels[-6:] == [f"{discipline.value} (n = 3)" for discipline in Discipline]
    assert [axes.get_title() for axes in small] == labels[-6:]
    assert "60 of 70 passages of the corpus 'words' and 18 questions of headqa_sample (en)" in figure.get_suptitle()


def test_the_contours_hold_their_shares_of_a_group(drawn) -> None:
    from matplotlib.path import Path as Outline

    rng = np.random.default_rng(0)
    hills = np.concatenate([rng.normal(0, 1, (2000, 2)), rng.normal(8, 1, (2000, 2))])
    one = PlacedGroups(hills.astype(np.float32), ("one",) * 4000)
    figure = new_figure()
    draw_map(figure, CorpusMap(drawn.folder, drawn.manifest, drawn.exam, one, drawn.questions, 1.0, 0))
    lines = [drawing for drawing in figure.axes[0].collections if not drawing.filled]
    outermost, inner = (Outline(path.vertices, path.codes) for path in lines[0].get_paths())
    assert outermost.contains_points(hills).mean() == pytest.approx(0.9, abs=0.04)
    assert inner.contains_points(hills).mean() == pytest.approx(0.5, abs=0.06)


def test_the_file_is_a_png_and_nothing_else_is_left(drawn, tmp_path) -> None:
    path = tmp_path / "map.png"
    write_map(new_figure(), drawn, path)
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", data[16:20]) == (round(WIDTH * DPI),)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(MedExamError, match=r"cannot write .*choose another place with --out"):
        write_map(new_figure(), drawn, tmp_path / "absent" / "map.png")


def test_too_few_passages_and_a_missing_library_are_said(index, monkeypatch) -> None:
    with pytest.raises(MedExamError, match=r"15 passages are too few .* needs 16; .*--sample"):
        make_map(index, SPEC, sample=15, seed=0, watch=lambda *_: None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MedExamError, match=r"matplotlib: pip install 'medexam\[maps\]'"):
        new_figure()


def test_a_run_takes_the_picture_and_so_does_its_mlflow_run(make_run, empty_store, tmp_path) -> None:
    from mlflow import MlflowClient

    picture = tmp_path / "picture.png"
    picture.write_bytes(b"a picture")
    run, stranger = (
        make_run({"kind": "zero_shot"}, "rw", model={"engine": "embedded"}),
        make_run({"kind": "longest"}, "r"),
    )
    uri = default_tracking_uri(run.folder.path.parent)
    assert attach_map(run, picture, uri) is None
    assert not (run.folder.path.parent / "mlflow.db").exists(), "no store is made for a picture"
    shutil.copy(empty_store, run.folder.path.parent)
    (tracked,) = track([run], tracking_uri=uri)
    assert attach_map(run, picture, uri) == tracked.mlflow_run_id
    assert attach_map(run, run.folder.path / "map.png", uri) == tracked.mlflow_run_id
    assert attach_map(stranger, picture, uri) is None
    assert (stranger.folder.path / "map.png").read_bytes() == b"a picture"
    names = [file.path for file in MlflowClient(tracking_uri=uri).list_artifacts(tracked.mlflow_run_id)]
    assert "map.png" in names
