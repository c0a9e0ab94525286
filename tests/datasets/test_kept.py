"""What is read once within a scope, and how often it is read without one."""

from pathlib import Path

import pytest

from medexam.cli import run_command
from medexam.datasets import loading
from medexam.datasets.kept import keep, reads_kept
from medexam.specs import DatasetSpec

HEAD = Path(loading.__file__).parent / "sample" / "HEAD.json"
SAMPLE = DatasetSpec(name="headqa_v1", language="es", path=HEAD, limit=3)


def test_reads_once_in_a_scope_and_each_time_outside() -> None:
    read: list[int] = []

    @keep(lambda found: found < 10)
    def double(number: int) -> int:
        read.append(number)
        return 2 * number

    with reads_kept():
        with reads_kept():
            assert double(2) == 4
        assert double(2) == 4
        assert [double(7), double(7)] == [14, 14]  # not worth it
    assert read == [2, 7, 7]
    assert double(2) == 4
    assert read == [2, 7, 7, 2]


def test_a_fault_is_not_kept() -> None:
    @keep(bool)
    def fail(number: int) -> int:
        raise ValueError(number)

    with reads_kept():
        for _ in range(2):
            with pytest.raises(ValueError, match="1"):
                fail(1)


def test_a_data_set_is_read_once_in_a_scope() -> None:
    with reads_kept():
        assert loading.load_exam_set(SAMPLE) is loading.load_exam_set(SAMPLE.model_copy())
    assert loading.load_exam_set(SAMPLE) is not loading.load_exam_set(SAMPLE)


def test_a_run_is_sent_with_its_page_by_one_reading(
    monkeypatch: pytest.MonkeyPatch, runs_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = []
    find = loading.load_rows
    monkeypatch.setattr(loading, "load_rows", lambda *given, **named: read.append(given) or find(*given, **named))
    options = ["--set", "program=random", "--set", f"dataset.path={HEAD}", "--runs-dir", str(runs_dir)]
    monkeypatch.setattr("sys.argv", ["medexam", "run", "headqa_v1", *options])
    with pytest.raises(SystemExit) as ended:
        run_command()
    assert not ended.value.code, capsys.readouterr().err
    assert len(read) == 1, "to be asked, and to be sent to MLflow with its page and traces"
