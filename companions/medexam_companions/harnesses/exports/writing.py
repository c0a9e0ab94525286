"""Which files an export writes, by format."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from medexam.errors import RunFolderError, SpecError
from medexam.experiments import AnyRun
from medexam_companions.harnesses.exports.answers import ExportedRun
from medexam_companions.harnesses.exports.every_eval_ever import write_every_eval_ever
from medexam_companions.harnesses.exports.hub import write_hub
from medexam_companions.harnesses.exports.inspect_logs import write_inspect
from medexam_companions.harnesses.exports.lm_eval import write_lm_eval

_WRITERS: Mapping[str, Callable[[ExportedRun, Path], list[Path]]] = {
    "lm-eval": write_lm_eval,
    "inspect": write_inspect,
    "every-eval-ever": write_every_eval_ever,
}


def export_runs(runs: Sequence[AnyRun], to: str, folder: Path) -> list[Path]:
    """Write the runs' answers into `folder`. Return the files that were written.

    Raises `SpecError` for a run without answers, or in words if the format holds numbered options alone, and
    `RunFolderError` if a file cannot be written.
    """
    exported = [ExportedRun.read(run) for run in runs]
    in_words = [run for run in exported if run.in_words]
    if in_words and to not in ("hub", "lm-eval"):
        raise SpecError(
            f"{in_words[0].run.folder.name} is answered in words, and the format of --to {to} has numbered options: "
            "choose --to lm-eval or hub, or leave it out"
        )
    try:
        if to == "hub":
            return write_hub(exported, folder)
        return [path for run in exported for path in _WRITERS[to](run, folder)]
    except OSError as error:
        raise RunFolderError(
            f"cannot write {error.filename or folder}: {error.strerror}; choose another folder with --out"
        ) from None
