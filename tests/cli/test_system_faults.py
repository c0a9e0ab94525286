"""What the system refuses is one line with the way out, and a defect stays a defect."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from medexam.cli.views import system_faults
from medexam.cli.views.system_faults import LEAST_MEMORY, check_memory_limit, describe_system_fault
from medexam.errors import MedExamError
from medexam.experiments.store.trust import is_own, sign
from medexam.files import state_dir


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MedExamError("a\nb"), "a b"),
        (MemoryError(), "too little memory (no detail): raise its limit"),
        (SystemError("error return without exception set"), "too little memory"),
        (RuntimeError("can't start new thread"), "too little memory"),
        (RuntimeError("Could not determine home directory."), "set HOME"),
        (RuntimeError("input(): lost sys.stdin"), "give --yes"),
        (OSError(errno.EMFILE, "Too many open files", "x"), "x (Too many open files): raise the limit of open files"),
        (OSError(errno.ENOSPC, "No space left on device"), "the output or a file (No space left on device): make room"),
        (PermissionError(errno.EACCES, "Permission denied", "runs"), "runs (Permission denied): make it readable"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 9), "xxxxxxxxx: the name is too long"),
    ],
)
def test_one_line_says_what_is_refused(error: Exception, words: str) -> None:
    found = describe_system_fault(error)
    assert found is not None
    assert words in found
    assert "\n" not in found


@pytest.mark.parametrize("error", [KeyError("x"), OSError(errno.ENOENT, "none", "x"), RuntimeError("x")])
def test_a_defect_is_none_of_the_systems(error: Exception) -> None:
    assert describe_system_fault(error) is None


@pytest.mark.skipif(system_faults.resource is None, reason="needs limits")
class TestMemoryLimits:
    @pytest.fixture
    def limit(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr(os, "environ", {})
        resource = system_faults.resource
        return lambda size: monkeypatch.setattr(resource, "getrlimit", lambda _: (size, resource.RLIM_INFINITY))

    def test_a_command_that_needs_more_is_refused_before_it_imports(self, limit) -> None:
        limit(LEAST_MEMORY - 1)
        with pytest.raises(MedExamError, match=r"needs 1,024 MiB of memory, and the limit is 1,023 MiB: raise it"):
            check_memory_limit("run")
        check_memory_limit("list")
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"

    def test_no_limit_changes_nothing(self, limit) -> None:
        limit(system_faults.resource.RLIM_INFINITY)
        check_memory_limit("run")
        assert "OPENBLAS_NUM_THREADS" not in os.environ


@pytest.mark.skipif(sys.platform == "win32", reason="users have homes there")
def test_a_user_without_a_home_signs_nothing_and_owns_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    def refuse(_: int) -> None:
        raise KeyError

    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", refuse)
    with pytest.raises(FileNotFoundError):
        state_dir()
    assert sign({"a": 1}) == {"a": 1}
    (tmp_path / "spec.json").write_text('{"signature": "x"}')
    assert not is_own(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_output_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "medexam", "schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "No space left on device): make room" in done.stderr
