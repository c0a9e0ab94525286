"""Files of each kind that was once misread, through `init` and `plan`: right at once, asked for, or refused by name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from medexam.errors import DatasetError, SpecError
from table_cases import FOLDER

FILES = sorted(folder.name for folder in (FOLDER / "files").iterdir())


@pytest.fixture
def case(init, tmp_path: Path) -> Callable[[str], tuple[dict[str, Any], tuple[dict[str, Any], str, list[str]]]]:
    """`case(name)`: what is right of a file, and what `init` makes of it."""

    def read(name: str) -> tuple[dict[str, Any], tuple[dict[str, Any], str, list[str]]]:
        shutil.copytree(FOLDER / "files" / name, tmp_path, dirs_exist_ok=True)
        right = json.loads((tmp_path / "expected.json").read_text(encoding="utf-8"))
        return right, init(right["main"], *right["args"])

    return read


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_right_or_its_owner_is_asked(case, medexam, load_tree, name) -> None:
    right, (tree, out, opened) = case(name)
    edit = right.get("edit", {})
    assert bool(opened) == (edit is None or bool(edit)), out
    if opened and tree:
        with pytest.raises((DatasetError, SpecError)):
            load_tree(tree)
    if opened and not right["args"]:
        code, _, err = medexam("plan", right["main"])
        assert code
        assert "medexam init" in err
    if edit is None:
        return
    exams = load_tree(tree, edit)
    found = []
    for question in exams.questions:
        texts = [option.text for option in question.options]
        gold = exams.golds[question.key]
        found.append([question.stem, texts, sorted(number - 1 for number in (gold.number, *gold.others))])
    assert found == right["right"]
    assert right.get("context", "") in (exams.questions[0].context or "")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("c_meta", ("Explanation  explanation", "Difficulty   ignored: its name is harmless", "question     stem")),
        ("c_map", ("answer           answer", "answer_idx       ignored: says what the answer says")),
    ],
)
def test_run_says_how_it_reads_a_file_in_a_line_for_each_column(case, medexam, name, lines) -> None:
    right, (_, out, opened) = case(name)
    assert opened == []
    code, _, err = medexam("plan", right["main"], "--set", "model.engine=scripted")
    for line in lines:
        assert line in out
        assert f"medexam: {line}" in err, code


def test_a_column_that_comes_later_is_refused_by_the_spec_that_was_written(case, load_tree) -> None:
    _, (tree, _, _) = case("c_meta")
    path = Path(tree["path"])
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([f"{lines[0]},new", *(f"{line},x" for line in lines[1:])]), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"column 'new' is neither read nor listed in columns\.ignored"):
        load_tree(tree)
