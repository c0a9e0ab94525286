"""Importers that installed packages add, by entry points of the group `medexam.importers`."""

import json
from pathlib import Path

import pytest

CODE = """
import json
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
def _installed(install) -> None:
    install("medexam.importers", POINTS, {"own_broken": "import no_such_library\n", "own_importers": CODE})


def test_a_packages_importer_reads_the_files_that_it_recognises(medexam, caplog) -> None:
    Path("spec.yaml").write_text("{name: own, dataset: headqa_sample, program: {kind: blind, option: 1}}")
    assert medexam("run", "spec.yaml")[0] == 0
    (run,) = Path("runs").iterdir()
    keys = json.loads((run / "spec.json").read_text())["questions"]
    Path("first.numbers").write_text(json.dumps(dict.fromkeys(keys, 1)))
    assert medexam("import", "first.numbers", "--dataset", "headqa_sample")[0] == 0
    code, out, err = medexam("compare", "runs", "--baseline", run, "--json")
    assert code == 0, err
    one, other = json.loads(out)["runs"]
    assert (other["program"], other["metrics"]["measures"]["accuracy"]["value"]) == (
        "blind-2",
        one["metrics"]["measures"]["accuracy"]["value"],
    ), other
    assert "own_broken failed: ModuleNotFoundError: No module named 'no_such_library'; it is left out" in caplog.text
    assert "no_such_module" not in caplog.text, "a package that is not there"
