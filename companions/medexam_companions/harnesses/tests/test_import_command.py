"""`medexam import`, and `medexam compare` of the runs that it makes."""

import json
from pathlib import Path

LOGS = Path(__file__).parent / "imports" / "logs"
SAMPLES = next(LOGS.glob("samples_headqa_en_2*.jsonl"))
INSPECT = LOGS / "inspect_headqa.eval"
SPEC = "{name: own, dataset: headqa_sample, program: {kind: random}}"
CODE = """
import json
from medexam.datasets import load_exam_set
from medexam.experiments import current_run
from stored_runs import write_run

class Importer:
    recognises = staticmethod(lambda path: path.suffix == ".numbers")

    def __init__(self, dataset, runs_dir, *, most_unmatched):
        self.dataset, self.runs_dir = dataset, runs_dir

    def take(self, path, say, measure):
        numbers = json.loads(path.read_text())
        says = lambda question, gold: {"status": "answered", "answer": numbers[str(question.number)]}
        program = {"kind": "blind", "option": 2}
        yield current_run(write_run(self.runs_dir / path.stem, load_exam_set(self.dataset), program, says), say)
"""
PROGRAM = {"kind": "imported", "harness": "table", "task": "a", "measure": "b", "sha256": "c", "file": "d"}


def test_imported_runs_are_runs(medexam, tmp_path) -> None:
    code, out, err = medexam("import", SAMPLES, "--dataset", "headqa_sample", "--measure", "acc", "--json")
    (document,) = json.loads(out)
    folder = Path(document["run_dir"])
    assert (code, document["model"], document["imported"]["stated"]) == (0, "SmolLM2-135M-Instruct", 0.2)
    assert err == f"medexam: {folder.relative_to(tmp_path)}\n"
    _, listed, _ = medexam("list", "--json")
    assert [run["run_id"] for run in json.loads(listed)] == [folder.name]


def test_imported_runs_are_compared_with_others(medexam) -> None:
    Path("spec.yaml").write_text(SPEC)
    medexam("run", "spec.yaml")
    (run,) = Path("runs").glob("*random*")
    code, out, err = medexam("import", SAMPLES, INSPECT, "--dataset", "headqa_sample", "--measure", "acc", "--json")
    assert code == 2
    assert "has no measure 'acc'" in err
    code, _, err = medexam("compare", run, SAMPLES)
    assert (code, f"medexam import {SAMPLES} --dataset NAME" in err) == (2, True), err
    assert medexam("import", SAMPLES, INSPECT, "--dataset", "headqa_sample")[0] == 0
    code, out, err = medexam("compare", "runs", "--baseline", run, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["questions"] == 10
    baseline, *others = [one["program"] for one in found["runs"]]
    assert baseline == "random"
    assert sorted(others) == [
        *("inspect-headqa-choice-epoch-1", "inspect-headqa-choice-epoch-2"),
        *("lm_eval-headqa_en-acc", "lm_eval-headqa_en-acc_norm"),
    ]


def test_what_cannot_be_imported_is_refused_in_one_line(medexam) -> None:
    Path("spec.yaml").write_text(SPEC)
    for arguments, words in (
        (["import", SAMPLES], "name the data set"),
        (["import", SAMPLES, "--dataset", "casimedicos_spans"], "match no question"),
        (["import", SAMPLES, "--dataset", "headqa_sample", "--language", "es"], "--dataset and --language"),
        (["import", SAMPLES, "--dataset", "headqa_sample", "--set", "dataset.limit=3"], "the whole data set"),
        (["run", "spec.yaml", "--set", f"program={json.dumps(PROGRAM)}"], "there is no model to ask"),
    ):
        code, _, err = medexam(*arguments)
        assert (code, err.count("\n")) == (2, 1)
        assert words in err


def test_any_key_of_the_data_set_is_set_and_a_spec_names_it(medexam) -> None:
    Path("own.csv").write_text("question,A,B,answer\nWhich vitamin?,A,C,1\nWhich organ?,Liver,Heart,2\n")
    Path("answers.csv").write_text("question,answer\nWhich vitamin?,A. A\nWhich organ?,Heart\n")
    columns = {"stem": "question", "options": "[A, B]", "answer": "answer", "numbering": "one"}
    keys = {"kind": "choice", "path": "own.csv", **{f"columns.{name}": value for name, value in columns.items()}}
    settings = [word for key, value in keys.items() for word in ("--set", f"dataset.{key}={value}")]
    code, out, err = medexam("import", "answers.csv", "--json", *settings)
    assert code == 0, err
    (first,) = json.loads(out)
    assert first["metrics"]["measures"]["accuracy"]["value"] == 1.0
    dataset = "{kind: choice, path: own.csv, columns: {stem: question, options: [A, B], answer: answer}}"
    Path("own.yaml").write_text(f"name: own\ndataset: {dataset}\n")
    spec = ["import", "answers.csv", "--dataset", "own.yaml"]
    code, out, err = medexam(*spec, "--set", "dataset.columns.numbering=one", "--json")
    assert code == 0, err
    assert json.loads(out)[0]["metrics"] == first["metrics"]
    code, _, err = medexam(*spec, "--set", "dataset.columns.nmbering=one")
    assert (code, "did you mean 'numbering'?" in err) == (2, True)


def test_a_packages_importer_reads_the_files_that_it_recognises(medexam, install, caplog) -> None:
    points = {"broken": "own_broken:Importer", "zebra": "own_importers:Importer"}
    install("medexam.importers", points, {"own_broken": "import no_such_library\n", "own_importers": CODE})
    Path("ones.numbers").write_text(json.dumps(dict.fromkeys(range(300), 1)))
    code, out, err = medexam("import", "ones.numbers", "--dataset", "headqa_sample", "--json")
    assert code == 0, err
    assert json.loads(out)[0]["metrics"]["n"] == 120
    assert "own_broken failed: ModuleNotFoundError: No module named 'no_such_library'; it is left out" in caplog.text
