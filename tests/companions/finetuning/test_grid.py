"""A grid of real, tiny encoders: shared stages, cells that resume, and scores as of single fine-tunings."""

import hashlib
import json
from pathlib import Path

import pytest

from medexam.companions.finetuning.actions import grid_tables
from medexam.companions.finetuning.encoder import finetune
from medexam.companions.finetuning.grid import GridSpec, grid_rows, load_grid, narrow_grid, plan_grid, run_grid
from medexam.companions.finetuning.settings import FinetuningSettings
from medexam.errors import DatasetError, SpecError
from retrievers.tiny_models import save_bert

TEXTS = ["the heart is blood", "the kidney and fever", "bone of the lung", "treat the nerve"]


pytestmark = pytest.mark.usefixtures("no_collection")


class Watcher:
    def __init__(self, stop_at: int | None = None) -> None:
        self.lines: list[str] = []
        self.stages = 0
        self.stop_at = stop_at

    def warns(self, line: str) -> None:
        self.lines.append(line)

    def stage_starts(self, name, lessons, steps) -> None:
        self.stages += 1
        if self.stages == self.stop_at:
            raise KeyboardInterrupt

    def step_ends(self, step, epoch, loss) -> None:
        pass


def _write(path, question, variants=()) -> None:
    rows = [
        {
            "id": f"{n}{'/' if variant else ''}{variant}",
            "question": f"{question} {variant[:1].lower()}".strip(),
            "context": text,
            "answers": [{"text": text[-5:], "answer_start": len(text) - 5}],
        }
        for n, text in enumerate(TEXTS)
        for variant in (variants or ("",))
    ]
    path.write_text(json.dumps(rows))


@pytest.fixture
def grid(tmp_path, monkeypatch):
    """Two encoders, three trainings and two variants: twelve cells."""
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        save_bert(tmp_path / f"base{number}", number)
    _write(tmp_path / "sqac.json", "what is")
    _write(tmp_path / "sqes.json", "treat")
    for name in ("train", "test"):
        _write(tmp_path / f"{name}.json", "what is", ("CQ#E", "Q#CE"))
    return GridSpec(
        encoders={"one": "base1", "two": "base2"},
        trainings={"CM": (), "SQAC+CM": ("sqac.json",), "ALL": ("sqac.json", "sqes.json")},
        train="train.json",
        validation="test.json",
        variants=("CQ#E", "Q#CE"),
        epochs=1,
        keep_weights=True,
    )


def _hash(folder) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_the_grid_is_learnt_once_and_resumes(grid, tmp_path) -> None:
    out = tmp_path / "out"
    cells = plan_grid(grid, out, "cpu")
    assert len(cells) == 12
    assert len({stage.settings.out for cell in cells for stage in cell.stages}) == 12 + 2 * 2

    # Killed in the last stage of the second cell of ALL: what was finished stays.
    mine = plan_grid(narrow_grid(grid, ["one"], ["ALL"]), out, "cpu")
    with pytest.raises(KeyboardInterrupt):
        list(run_grid(mine, Watcher(stop_at=3), keep_weights=True))
    assert [cell.finished for cell in mine] == [True, False]
    assert [stage.finished for stage in mine[1].stages] == [True, False]
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("finetuning.json")}

    watcher = Watcher()
    done = [cell for cell, _ in run_grid(mine, watcher, keep_weights=True)]
    assert done == [mine[1]]
    assert watcher.stages == 1
    assert watcher.lines[0] == "one, ALL, Q#CE: stage 2 of 2, train.json"
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert list(run_grid(mine, Watcher(stop_at=1), keep_weights=True)) == []

    # The same weights and scores as one fine-tuning with the same files together.
    single = FinetuningSettings(
        model="base1",
        train=tmp_path / "train.json",
        intermediate=(tmp_path / "sqac.json", tmp_path / "sqes.json"),
        validation=tmp_path / "test.json",
        variant="CQ#E",
        out=tmp_path / "single",
        epochs=1,
        intermediate_epochs=1,
        device="cpu",
    )
    whole = finetune(single, Watcher())
    assert list(whole.losses) == ["intermediate", "train"]
    assert list(whole.record["data"]) == ["intermediate 1", "intermediate 2", "train"]
    assert _hash(mine[0].folder) == _hash(single.out)
    assert mine[0].scores == pytest.approx(
        {name: getattr(whole.validated["squad"], name) for name in ("f1", "exact_match", "precision", "recall")}
    )
    record = json.loads((mine[0].folder / "finetuning.json").read_text())
    assert (record["data"]["train"]["questions"], record["validation"]["questions"]) == (4, 4)


def test_rows_are_those_of_the_papers_tables(grid, tmp_path) -> None:
    small = grid.model_copy(update={"encoders": {"one": "base1"}, "variants": ("CQ#E",), "keep_weights": False})
    cells = plan_grid(small, tmp_path / "out", "cpu")
    (cell,) = [cell for cell, _ in run_grid(cells[:1], Watcher(), keep_weights=False)]
    assert not list(cell.folder.glob("*.safetensors")), "its scores are kept, its weights are not"
    assert grid_rows(cells, "f1") == {"one CQ#E": [cell.scores["f1"], None, None, None]}
    list(run_grid(cells, Watcher(), keep_weights=False))
    ((*values, mean),) = grid_rows(cells, "f1").values()
    assert mean == pytest.approx(sum(values) / 3)
    (table, _), *others = grid_tables(cells)
    assert [other.title.partition(" of")[0] for other, _ in others] == ["Exact match", "Precision", "Recall"]
    assert table.headers == ("Encoder and variant", "CM", "SQAC+CM", "ALL", "Avg.")


def test_the_papers_grid_ships() -> None:
    paper = load_grid("casimedicos")
    assert (len(paper.encoders), list(paper.trainings), len(paper.variants)) == (
        12,
        ["CM", "SQAC+CM", "SQES+CM", "ALL"],
        4,
    )
    assert (paper.epochs, paper.window, paper.answer_tokens, paper.seed) == (20, 384, 512, 42)
    planned = plan_grid(paper, Path("out"), only_look=True)
    assert (len(planned), any(cell.finished for cell in planned)) == (192, False)
    # ALL learns from both files at once.
    assert {len(cell.stages) for cell in planned if cell.training == "ALL"} == {2}
    assert {len(cell.stages[0].settings.train) for cell in planned if cell.training == "ALL"} == {2}
    with pytest.raises(SpecError, match="name a YAML file of a grid, or casimedicos"):
        load_grid("nothing")


def test_another_file_or_number_is_another_cell(grid, tmp_path) -> None:
    before = {cell.label: cell.folder for cell in plan_grid(grid, tmp_path, "cpu")}
    more = {cell.label: cell.folder for cell in plan_grid(grid.model_copy(update={"epochs": 2}), tmp_path, "cpu")}
    assert not set(before.values()) & set(more.values())
    _write(tmp_path / "sqes.json", "where is")
    after = {cell.label: cell.folder for cell in plan_grid(grid, tmp_path, "cpu")}
    assert {label for label in before if before[label] != after[label]} == {label for label in before if "ALL" in label}


def test_a_file_for_each_variant(grid, tmp_path) -> None:
    for name in ("train", "test"):
        for variant in grid.variants:
            _write(tmp_path / f"{name}_{variant}.json", "what is")
    apart = grid.model_copy(update={"train": "train_{variant}.json", "validation": "test_{variant}.json"})
    cells = plan_grid(apart, tmp_path / "out", "cpu")
    assert {str(*cell.stages[-1].settings.train) for cell in cells} == {"train_CQ#E.json", "train_Q#CE.json"}


def test_mistakes_are_one_line(grid, tmp_path) -> None:
    with pytest.raises(DatasetError, match=r"no\.json: cannot be read"):
        plan_grid(grid.model_copy(update={"train": "no.json"}), tmp_path / "out")
    with pytest.raises(SpecError, match=r"--training MA: the grid has CM, SQAC\+CM, ALL"):
        narrow_grid(grid, trainings=["MA"])
    wrong = plan_grid(grid.model_copy(update={"variants": ("QP#CE",)}), tmp_path / "out", "cpu")
    with pytest.raises(DatasetError, match="holds no question of variant QP#CE: its variants are CQ#E, Q#CE"):
        list(run_grid(wrong[:1], Watcher(), keep_weights=True))
