"""Where the repeats of a run lie: run folders within its own, each asked the same questions once more.

They are no runs of their own in lists, reports and MLflow; a comparison reads from them how far answers vary.
"""

import re

from medexam.experiments.store.run_folder import RunFolder

REPEATS = "repeats"
_FORM = re.compile(r".*-repeat-(\d+)")


def repeat_folder(folder: RunFolder, number: int) -> RunFolder:
    """Return the folder of repeat `number` of a run, from 1."""
    return RunFolder(folder.path / REPEATS / f"{folder.name}-repeat-{number}", folder.spec_digest)


def find_repeats(folder: RunFolder) -> list[RunFolder]:
    """Find the repeats that were begun, by number."""
    repeats_dir = folder.path / REPEATS
    names = [path.name for path in repeats_dir.iterdir()] if repeats_dir.is_dir() else []
    numbered = sorted((int(match[1]), name) for name in names if (match := _FORM.fullmatch(name)))
    return [repeat for _, name in numbered if (repeat := RunFolder(repeats_dir / name)).exists()]


def is_repeat(folder: RunFolder) -> bool:
    """Return whether it is a repeat of another run."""
    return folder.path.parent.name == REPEATS
