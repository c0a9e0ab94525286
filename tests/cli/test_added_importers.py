"""Importers that installed packages add, by entry points of the group `medexam.importers`."""

import json
from pathlib import Path

import pytest

from medexam.plugins import added_names

CODE = """
from medexam.datasets import load_exam_set
from medexam.experiments import current_run
from stored_runs import write_run


class Importer:
    def __init__(self, dataset, runs_dir, *, most_unmatched):
        self.dataset, self.runs_dir = dataset, runs_dir

    @staticmethod
    def recognises(path):
        return path.suffix == ".numbers"

    def take(self, path, say, measure):
        numbers = json.loads(path.read_text())
        says = lambda question, gold: {"status": "answered", "answer": numbers[question.key]}
        program = {"kind": "blind", "option": 2}
        yield current_run(write_run(self.runs_dir / path.stem, load_exam_set(self.dataset), program, says), say)
"""
POINTS = {"absent": "no_such_module:Importer", "broken": "own_broken:Importer", "zebra": "own_importers:Importer"}


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    metadata = tmp_path / "site" / "own-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    lines = "\n".join(f"{name} = {target}" for name, target in POINTS.items())
    (metadata / "entry_points.txt").write_text(f"[medexam.importers]\n{lines}\n")
    (tmp_path / "site" / "own_broken.py").write_text("import no_such_library\n")
    (tmp_path / "site" / "own_importers.py").write_text(f"import json\n{CODE}")
    monkeypatch.syspath_prepend(tmp_path / "site")
    added_names.cache_clear()
    yield
    added_names.cache_clear()


def test_a_packages_importer_reads_the_files_that_it_recognises(medexam, caplog) -> None:
    Path("spec.yaml").write_text("{name: own, dataset: headqa_sample, program: {kind: blind, option: 1}}")
    assert medexam("run", "spec.yaml")[0] == 0
    (run,) = Path("runs").iterdir()
    keys = json.loads((run / "spec.json").read_text())["questions"]
    Path("first.numbers").write_text(json.dumps(dict.fromkeys(keys, 1)))
    code, out, err = medexam("compare", run, "first.numbers", "--json")
    assert code == 0, err
    one, other = json.loads(out)["runs"]
    assert (other["program"], other["metrics"]["measures"]["accuracy"]["value"]) == (
        "blind-2",
        one["metrics"]["measures"]["accuracy"]["value"],
    ), other
    assert "own_broken failed: ModuleNotFoundError: No module named 'no_such_library'; it is left out" in caplog.text
    assert "no_such_module" not in caplog.text, "a package that is not there"
