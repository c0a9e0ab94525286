"""Runs are removed only while nobody writes them, and a run whose files go stops asking and says so."""

import shutil
from pathlib import Path

import pytest

from medexam.errors import RunFolderError
from medexam.experiments import RunFolder
from medexam.predictions import Prediction

SPEC = ("headqa_sample", "--limit", "3", "--set", "program.kind=longest")


@pytest.fixture
def folders(medexam, tmp_path) -> list[RunFolder]:
    """Two runs."""
    for language in ("en", "es"):
        code, _, err = medexam("run", *SPEC, "--set", f"dataset.language={language}")
        assert code == 0, err
    return [RunFolder(path) for path in sorted((tmp_path / "runs").glob("headqa*"))]


def test_a_run_that_is_written_is_not_removed_nor_are_those_beside_it(medexam, folders) -> None:
    idle, written = folders
    with written.locked():
        code, out, err = medexam("rm", idle.path, written.path, "--yes")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        f"medexam: run {written.name} is being written by another process, and nothing is removed: stop that process, "
        "or wait for it"
    )
    assert idle.exists()
    assert written.exists()
    code, _, err = medexam("rm", idle.path, written.path, "--yes")
    assert (code, err.splitlines()[-1]) == (0, "medexam: removed 2 runs")
    assert not idle.path.exists()


def test_a_link_is_removed_by_nobody_nor_what_it_leads_to(medexam, folders) -> None:
    run = folders[0].path
    link = run.with_name("linked")
    link.symlink_to(run.name)
    for name in (link, "linked"):
        code, _, err = medexam("rm", name, "--yes")
        assert code == 2
        assert f"is a link to {run}, and nothing is removed" in err
    assert (run / "spec.json").exists()
    assert link.is_symlink()


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_run_whose_file_is_gone_stops_at_its_next_flush(folders, tmp_path, how) -> None:
    folder = folders[0]
    answer = next(iter(folder.scan_predictions()))
    with pytest.raises(RunFolderError, match="moved while answers were written to it, so the run stops: 1 "):
        _write_and_lose(folder, answer, tmp_path, how)


def _write_and_lose(folder: RunFolder, answer: Prediction, tmp_path: Path, how: str) -> None:
    with folder.appending() as log:
        log.append(answer)
        log.flush()
        match how:
            case "removed":
                shutil.rmtree(folder.path)
            case "moved":
                folder.path.rename(tmp_path / "elsewhere")
            case "replaced":
                (folder.path / "predictions.jsonl").unlink()
                (folder.path / "predictions.jsonl").touch()
        log.append(answer)
        log.flush()
