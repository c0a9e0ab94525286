"""Stored runs over four small exams, sent by the command line to a real MLflow store and read by MLflow's client."""

import re
import sys

import pytest

from command_line import medexam, tracked
from small_exams import exam_files, make_run

__all__ = ["exam_files", "make_run", "medexam", "tracked"]


@pytest.fixture(autouse=True)
def _without_plots(monkeypatch) -> None:
    """As if matplotlib were not installed: the page that is sent with runs has no plots, which take a second."""
    import mlflow.tracking  # noqa: F401 - MLflow cannot be imported without matplotlib

    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def track(medexam, runs_dir, uri):
    """`track(folder, ...)` -> run id -> the id of its MLflow run, in the order in which they were sent."""

    def send(*folders, store=uri) -> dict[str, str]:
        code, out, err = medexam("track", *folders, "--tracking-uri", store)
        assert code == 0, err
        return dict(re.findall(r"(?m)^(.+) is MLflow run (\w+)$", out))

    return send


@pytest.fixture
def all_runs(client):
    """`all_runs()` -> every run of the store that is not deleted."""
    return lambda: client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
