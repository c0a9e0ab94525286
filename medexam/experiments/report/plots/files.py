"""The folder of `--plots`: one PNG for each picture of stored runs."""

from collections.abc import Sequence
from pathlib import Path

from medexam.errors import RunFolderError
from medexam.experiments.report.plots.pictures import build_pictures
from medexam.experiments.store.stored_run import ExamRun


def write_plots(runs: Sequence[ExamRun], folder: Path) -> list[Path]:
    """Write the pictures of `runs` into `folder`; the paths, in the pictures' order.

    Raises `RunFolderError` where `folder` cannot be written, and what `build_pictures` raises.
    """
    paths = []
    for picture in build_pictures(runs):
        path = folder / f"{picture.name}.png"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture.png)
        except OSError as error:
            raise RunFolderError(f"cannot write {path}: {error}; choose another folder with --plots") from None
        paths.append(path)
    return paths
