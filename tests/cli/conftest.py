"""The command line in this process, specs over scripted replies, and packages with entry points."""

import pytest

from command_line import _untracked, medexam, refused, run, spec, tracked
from medexam.plugins import added_names

__all__ = ["_untracked", "medexam", "refused", "run", "spec", "tracked"]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """`install(group, points, modules)`: a package of these entry points and modules is installed during the test."""

    def write(group, points, modules) -> None:
        metadata = tmp_path / "site" / "own-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
        lines = "\n".join(f"{name} = {target}" for name, target in points.items())
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
        for name, code in modules.items():
            (tmp_path / "site" / f"{name}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path / "site")
        added_names.cache_clear()

    yield write
    added_names.cache_clear()
