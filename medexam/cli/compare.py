"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

from medexam.cli.flags.compare import CompareSettings, SectionSettings
from medexam.cli.flags.result_files import ImportSettings
from medexam.cli.options import settings_as_flags
from medexam.cli.views.output import check_endings


@settings_as_flags
def compare(
    importing: ImportSettings,
    sections: SectionSettings,
    settings: CompareSettings,
) -> None:
    """Compare stored runs with the first one on the questions that all have scored; asks no model."""
    check_endings({f"--{name}": getattr(settings, name) for name in ("markdown", "latex")})
    from medexam.cli.actions.compare import compare_stored

    compare_stored(importing, sections, settings)
