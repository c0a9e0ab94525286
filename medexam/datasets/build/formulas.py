"""Chemical structures that are drawn, given to a tool of the user's that turns a picture into SMILES.

The tool is a command; it gets the path of a PNG as its last word and prints one line. It knows no such tool itself.
"""

import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from medexam.errors import DatasetError

if TYPE_CHECKING:
    from PIL.Image import Image

SLOWEST_S = 120.0
"""Seconds that a tool may take for one picture."""


def read_formula(command: str, picture: "Image") -> str | None:
    """The line that `command` prints for `picture`; None when it fails, is too slow or prints nothing.

    Raises `DatasetError` when there is no such command.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "formula.png"
        picture.save(path)
        try:
            done = subprocess.run(  # noqa: S603 - the user's own command, without a shell
                [*shlex.split(command), str(path)], capture_output=True, text=True, timeout=SLOWEST_S, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        except (OSError, ValueError) as error:
            raise DatasetError(f"--formula-reader {command!r} cannot be started ({error}): correct it") from None
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None
