"""Files of each kind that was once misread, through `init` and `plan`: right at once, asked for, or refused by name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from medexam.datasets import load_exam_set
from medexam.errors import DatasetError, SpecError
from medexam.specs import DatasetSpec, validate
from table_cases import FOLDER

FILES = sorted(folder.name for folder in (FOLDER / "files").iterdir())


@pytest.fixture
def init(medexam, tmp_path: Path) -> Callable[[str], tuple[dict[str, Any], dict[str, Any], list[str], str]]:
    """`init(name)`: what is right of a file, the data set of the spec that is written, its open keys, and the print."""

    def write(name: str) -> tuple[dict[str, Any], dict[str, Any], list[str], str]:
        shutil.copytree(FOLDER / "files" / name, tmp_path, dirs_exist_ok=True)
        case = json.loads((tmp_path / "expected.json").read_text(encoding="utf-8"))
        code, out, err = medexam("init", case["main"], "--out", "own.yaml", *case["args"])
        spec = tmp_path / "own.yaml"
        if not spec.exists():
            return case, {}, ["refused"], err
        text = spec.read_text(encoding="utf-8")
        opened = [line.strip().partition(":")[0] for line in text.splitlines() if "# decide: " in line]
        assert code == (3 if opened else 0), err
        return case, yaml.safe_load(text)["dataset"], opened, out

    return write


def _load(tree: dict[str, Any], edit: dict[str, Any]) -> Any:
    columns = dict(tree.get("columns") or {})
    for key, value in edit.items():
        name = key.rpartition(".")[2]
        if name == "ignored":
            columns["ignored"] = [*(columns.get("ignored") or []), *value]
        elif key.startswith("columns."):
            columns[name] = value
        else:
            tree = {**tree, name: value}
    return load_exam_set(validate(DatasetSpec, {**tree, "columns": columns}))


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_right_or_its_owner_is_asked(init, medexam, name) -> None:
    case, tree, opened, out = init(name)
    edit = case.get("edit", {})
    assert bool(opened) == (edit is None or bool(edit)), out
    if opened and tree:
        with pytest.raises((DatasetError, SpecError)):
            _load(tree, {})
    if opened and not case["args"]:
        code, _, err = medexam("plan", case["main"])
        assert code
        assert "medexam init" in err
    if edit is None:
        return
    exams = _load(tree, edit)
    found = []
    for question in exams.questions:
        texts = [option.text for option in question.options]
        gold = exams.golds[question.key]
        found.append([question.stem, texts, sorted(number - 1 for number in (gold.number, *gold.others))])
    assert found == case["right"]
    assert case.get("context", "") in (exams.questions[0].context or "")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("c_meta", ("Explanation  explanation", "Difficulty   ignored: its name is harmless", "question     stem")),
        ("c_map", ("answer           answer", "answer_idx       ignored: says what the answer says")),
    ],
)
def test_run_says_how_it_reads_a_file_in_a_line_for_each_column(init, medexam, name, lines) -> None:
    case, _, opened, out = init(name)
    assert opened == []
    code, _, err = medexam("plan", case["main"], "--set", "model.engine=scripted")
    for line in lines:
        assert line in out
        assert f"medexam: {line}" in err, code


def test_a_column_that_comes_later_is_refused_by_the_spec_that_was_written(init) -> None:
    case, tree, _, _ = init("c_meta")
    path = Path(tree["path"])
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([f"{lines[0]},new", *(f"{line},x" for line in lines[1:])]), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"column 'new' is neither read nor listed in columns\.ignored"):
        _load(tree, case.get("edit", {}))
