"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

from medexam.cli.flags.compare import CompareSettings, SectionSettings, WaySettings
from medexam.cli.flags.result_files import ImportSettings
from medexam.cli.options import settings_as_flags
from medexam.cli.views.output import check_endings
from medexam.errors import SpecError


@settings_as_flags
def compare(
    importing: ImportSettings,
    way: WaySettings,
    sections: SectionSettings,
    settings: CompareSettings,
) -> None:
    """Compare stored runs with the first one on the questions that all have scored; asks no model."""
    _check(way, sections, settings)
    check_endings({f"--{name}": getattr(settings, name) for name in ("markdown", "latex")})
    from medexam.cli.actions.compare import compare_stored

    compare_stored(importing, way, sections, settings)


def _check(way: WaySettings, sections: SectionSettings, settings: CompareSettings) -> None:
    """Raise `SpecError` for options that do not go together."""
    if way.languages and (settings.fail_if is not None or sections != SectionSettings()):
        raise SpecError(
            "--languages shows which questions are right in which language: leave out --fail-if, --equivalent-within, "
            "--ensemble, --strengths, --item-response, --cutoff and --overlap, or compare the runs without --languages"
        )
    if way.reading is not None and way.languages:
        raise SpecError("--reading goes without --languages: leave one out")
