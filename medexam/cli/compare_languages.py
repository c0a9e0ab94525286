"""What `medexam compare --languages` prints: two runs that differ in language alone, question by question."""

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medexam.experiments.run_folder import RunFolder


def print_languages(folders: "Sequence[RunFolder]", *, as_json: bool) -> None:
    """Print what is right in both languages, in one and in neither; raises what `check_consistency` raises."""
    from medexam.experiments.language_consistency import build_consistency_tables, check_consistency

    found = check_consistency(folders)
    for line in found.comparison.corrected:
        sys.stderr.write(f"medexam: {line}\n")
    if as_json:
        sys.stdout.write(json.dumps(found.document(), ensure_ascii=False, indent=2) + "\n")
        return
    from rich.console import Console

    console = Console()
    for table in build_consistency_tables(found):
        console.print(table)
