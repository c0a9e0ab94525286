"""What a folder keeps of its questions: as they were asked, golds apart, and none where a licence forbids it."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

import medexam
from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, RunFolderError
from medexam.experiments import RunFolder, load_items
from medexam.measures import find_benchmark
from medexam.specs import DatasetSpec
from stored_runs import write_run
from table_cases import write_squad


def _keep(place, items, program, **dataset) -> RunFolder:
    return write_run(place / "run", items, program, lambda item, gold: None, dataset=dataset)


def test_questions_and_golds_come_back_as_they_were(tmp_path) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_sample"))
    folder = _keep(tmp_path, exams, {"kind": "longest"})
    kept = load_items(folder)
    assert vars(kept) | {"golds": dict(kept.golds)} == vars(exams) | {"golds": dict(exams.golds)}
    assert [name for name in pq.read_schema(folder.path / "items.parquet").names if name.startswith("gold_")] == [
        "gold_number",
        "gold_others",
    ]


def test_half_a_character_is_kept_as_its_escape(tmp_path) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_sample", limit=1))
    odd = exams.questions[0].model_copy(update={"stem": "a \ud800 b"})
    (kept,) = load_items(_keep(tmp_path, replace(exams, questions=(odd,)), {"kind": "longest"})).questions
    assert kept.stem == r"a \ud800 b"


def test_tasks_come_back_as_they_were(tmp_path) -> None:
    rows = [(f"{n}_CQ#E", "It is the heart. It beats.", "What?", "the heart") for n in (1, 2, 3)]
    path = str(write_squad(tmp_path / "en.jsonl", rows))
    own = {"kind": "spans", "name": "mine", "path": path}
    spec = DatasetSpec(**own)
    tasks = find_benchmark(spec).load(spec)
    folder = _keep(tmp_path, tasks, {"kind": "quote"}, **own)
    assert load_items(folder) == replace(tasks, golds=dict(tasks.golds))


def test_pictures_lie_beside_the_questions_once(tmp_path) -> None:
    exams = load_exam_set(DatasetSpec(name="headqa_sample", limit=3))
    shown = "data:image/png;base64,aGVsbG8="
    first, second, third = exams.questions
    seen = tuple(question.model_copy(update={"picture": shown}) for question in (first, second))
    folder = _keep(tmp_path, replace(exams, questions=(*seen, third)), {"kind": "longest"})
    (picture,) = (folder.path / "pictures").iterdir()
    assert (picture.read_bytes(), picture.suffix) == (b"hello", ".png")
    assert load_items(folder).questions == (*seen, third)


def test_a_run_without_its_questions_needs_the_data_set(ask, spec, replies, tmp_path) -> None:
    table = tmp_path / "own.jsonl"
    rows = [{"stem": word + " of these?", "options": ["left", "right"], "answer": "left"} for word in ("Which", "What")]
    table.write_text("\n".join(map(json.dumps, rows)))
    own = spec | {"dataset": {"kind": "choice", "path": str(table)}}
    ask(whole := own | {"name": "a"}, limit=1)
    (run,) = ask(own, keep_items=False)
    (again,) = ask(own)
    held = b"".join(path.read_bytes() for path in again.folder.iterdir() if path.is_file())
    assert (again.n, b"of these" in held, (again.folder / "items.parquet").exists()) == (2, False, False)
    assert load_items(RunFolder(run.folder)).questions[0].stem == "Which of these?"
    with pytest.raises(RunFolderError, match="holds them already"):
        ask(whole, keep_items=False)
    table.write_text("")
    assert medexam.load_run(run.folder).stored.note
    table.unlink()
    assert medexam.load_run(run.folder).accuracy == run.accuracy
    with pytest.raises(DatasetError, match=r"own\.jsonl"):
        load_items(RunFolder(run.folder))
