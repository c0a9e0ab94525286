"""`medexam compare --languages`: two runs that differ in language alone, question by question."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medexam.experiments.compare.languages import Consistency
    from medexam.experiments.store.run_folder import RunFolder


def compare_languages(folders: "Sequence[RunFolder]", *, as_json: bool, markdown: Path | None) -> "Consistency":
    """Print what is right in both languages, in one and in neither, and write what is asked for.

    Raises what `check_consistency` raises.
    """
    from medexam.cli.views.comparison import print_comparison
    from medexam.experiments.compare.languages import check_consistency
    from medexam.experiments.report.comparison_tables import headline
    from medexam.experiments.report.language_tables import build_consistency_tables, consistency_report

    found = check_consistency(folders)
    if markdown is not None:
        from medexam.experiments.report.comparison_markdown import write_markdown

        write_markdown(consistency_report(found), markdown)
        sys.stderr.write(f"wrote {markdown}\n")
    if as_json:
        sys.stdout.write(json.dumps(found.document(), ensure_ascii=False, indent=2) + "\n")
    else:
        print_comparison(found.comparison, headline(found.comparison), build_consistency_tables(found), [])
    return found
