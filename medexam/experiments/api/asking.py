"""A plan is carried out, with its progress on the terminal and a copy in MLflow."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from medexam.errors import EngineError, TrackingError
from medexam.experiments.entry.carry_out import Carriers, carry_out
from medexam.experiments.entry.progress import RunProgress
from medexam.experiments.plan.cells import Plan
from medexam.experiments.store.repeats import is_repeat
from medexam.experiments.store.stored_run import StoredRun
from medexam.text import hide_secrets


def ask(plan: Plan, carriers: Carriers, *, progress: bool, track: bool | str) -> tuple[list[StoredRun], str | None]:
    """Return the runs of `plan` as they are then, repeats left out, and why asking ended early; None if it did not.

    `track` is an MLflow store; True: that of `MLFLOW_TRACKING_URI`, or the one beside the runs; False: none.
    """
    from medexam.experiments.track import track_failed, track_runs

    try:
        carried_out, stop, _ = carry_out(
            plan, carriers, partial(RunProgress, plan.cells, disable=not progress), write_notice
        )
    except EngineError as error:
        send_to_mlflow(track_failed, plan.cells, str(error), track=track, runs_dir=plan.runs_dir)
        raise
    runs = [run for run in carried_out if not is_repeat(run.folder)]
    send_to_mlflow(track_runs, runs, track=track, runs_dir=plan.runs_dir)
    return runs, stop


def send_to_mlflow(send: Callable[..., object], *arguments: object, track: bool | str, runs_dir: Path) -> None:
    """Call `send` with the MLflow store that `track` means, as `ask` takes it; an outage is only said."""
    if track:
        from medexam.experiments.track import default_tracking_uri

        try:
            send(*arguments, tracking_uri=track if isinstance(track, str) else default_tracking_uri(runs_dir))
        except TrackingError as error:
            write_notice(str(error))


def write_notice(line: str) -> None:
    """Tell the user, beside what functions return."""
    sys.stderr.write(f"medexam: {hide_secrets(line)}\n")
